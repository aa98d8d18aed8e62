import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import t, { type Test } from 'tap';
import type { Task } from '../../../../api/tasks/schema.ts';
import { workerApi } from '../../../../scripts/worker/api.ts';
import { readOptions } from '../../../../scripts/worker/options.ts';
import { pullLoop } from '../../../../scripts/worker/pull_loop.ts';
import { makeTask, ownerPath, readTask, sqlOf } from '../../../support/api_fixtures.ts';
import { SERVICE_TOKEN, startTestApp } from '../../../support/app.ts';
import { createSecondProfile, createTestOrganization, type TestOrganization } from '../../../support/fixtures.ts';
import { brokenInvariants } from '../../../support/invariants.ts';
import { until } from '../../../support/wait.ts';

t.setTimeout(180_000);

const app = await startTestApp(t);
const sql = sqlOf(app);

/** An operator that verifies what a department makes. */
async function orgs(): Promise<TestOrganization> {
  const operator = await createTestOrganization(sql, { key: 'operator', maxConcurrentRuns: 5 });
  return createSecondProfile(sql, operator, { key: 'growth', kind: 'department', maxConcurrentRuns: 5 });
}

/** The reference worker, with a script for what it does, until `reached`. */
async function work(t: Test, org: TestOrganization, script: string, reached: () => Promise<boolean>): Promise<string> {
  const scratch = await mkdtemp(path.join(tmpdir(), 'worker-modes-test-'));
  const file = path.join(scratch, 'agent.mjs');
  await writeFile(
    file,
    `import { readFileSync, writeFileSync, existsSync } from 'node:fs';\nconst env = process.env;\n${script}`,
  );
  const argv = [
    '--exec',
    `'${process.execPath}' '${file}'`,
    '--url',
    app.url,
    '--token',
    SERVICE_TOKEN,
    '--kind',
    'task',
  ];
  const options = readOptions([...argv, '--organization', org.organizationId, '--scratch', path.join(scratch, 'runs')]);
  if (!options) throw new Error('no options');
  const drain = new AbortController();
  const lines: string[] = [];
  const worker = { api: workerApi(options), options, print: (line: string) => void lines.push(line) };
  const working = pullLoop({ ...worker, drain: drain.signal, stop: drain.signal });
  t.teardown(async () => {
    drain.abort();
    await working;
    await rm(scratch, { recursive: true, force: true });
  });
  await until('the worker gets there', reached, 60_000).catch((error: unknown) => {
    throw new Error(`${error}\n${lines.join('\n')}`);
  });
  return lines.join('\n');
}

const write = (name: string, value: string) => `writeFileSync(env.${name}, JSON.stringify(${value}));`;
const isOver = (org: TestOrganization, task: Task) => async () =>
  (await readTask(app, org, task.id)).status === 'completed';

t.test('an initiative is planned, its tasks are done, verified where they ask for it, and it completes', async (t) => {
  const org = await orgs();
  const task = await makeTask(app, org, { kind: 'initiative', title: 'Quarter' });
  const script = `
    const brief = existsSync(env.INPUT_DIR + '/task.json') ? JSON.parse(readFileSync(env.INPUT_DIR + '/task.json')) : {};
    if (env.BUSINESS_RUNNER_MODE === 'plan') {
      ${write(
        'PLAN_FILE',
        `{ operations: [
          { op: 'create_task', key: 'a', title: 'First' },
          { op: 'create_task', key: 'b', title: 'Second', dependsOn: ['a'], spec: { verification: 'agent' } } ] }`,
      )}
    } else if (env.BUSINESS_RUNNER_MODE === 'verify') {
      const text = readFileSync(env.INPUT_DIR + '/outputs/a.txt', 'utf8');
      const verdict = brief.contract ? 'passed' : 'failed';
      const [, asked] = /\\n## The result to verify\\n\\n([^#]*?)\\n\\n/.exec(readFileSync('TASK.md', 'utf8')) ?? [];
      ${write('VERDICT_FILE', `{ verdict, summary: 'Read ' + text, evidence: [{ kind: 'note', text: asked }] }`)}
    } else {
      writeFileSync(env.OUTPUT_DIR + '/a.txt', 'done');
      ${write('RESULT_FILE', `{ summary: 'Done by hand' }`)}
    }`;
  const output = await work(t, org, script, isOver(org, task));
  t.match(output, /submitted: a plan of 2 operations/);
  t.match(output, /submitted: failed/);
  t.match(output, /submitted: passed/);
  const { data: below } = await app.owner.get<Task[]>(ownerPath(org, `/tasks?parentId=${task.id}`));
  const second = below.find((child) => child.title === 'Second');
  t.match(second, {
    status: 'completed',
    agentRunCount: 4,
    result: {
      completion: {
        checks: [
          {
            ...{ evaluator: 'agent', status: 'passed', summary: 'Read done' },
            evidence: [{ text: '- Done by hand\n- `inputs/outputs/a.txt`' }],
          },
        ],
      },
    },
  });
});

t.test('a plan that is refused, or missing, fails its run with the reason', async (t) => {
  for (const [written, code] of [
    [
      write('PLAN_FILE', `{ operations: [{ op: 'create_task', key: 'a', title: 'A', dependsOn: ['T-99'] }] }`),
      'outcome_refused',
    ],
    [write('PLAN_FILE', `{ steps: [] }`), 'result_invalid'],
    ['', 'outcome_missing'],
  ] as const) {
    const org = await orgs();
    const task = await makeTask(app, org, { kind: 'initiative', spec: { budget: { maxAttemptsPerPhase: 1 } } });
    const failed = async () => (await readTask(app, org, task.id)).status === 'failed';
    await work(t, org, written, failed);
    t.match(await readTask(app, org, task.id), { state: { error: { code } } });
  }
});

t.test('the database is consistent after all of it', async (t) => {
  t.same(await brokenInvariants(sql), {});
});
