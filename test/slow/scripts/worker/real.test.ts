import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import t, { type Test } from 'tap';
import { SERVICE_TOKEN, startTestApp, type TestApp } from '../../../support/app.ts';
import { bareEnvironment } from '../../../support/environment.ts';
import { openFolder } from '../../../support/folders.ts';
import { until } from '../../../support/wait.ts';
import { HEARTBEAT_WAIT_MS, heartbeats } from './heartbeats.ts';

// Processes are started, and a machine that is busy takes its time.
t.setTimeout(180_000);

type Task = {
  id: string;
  identifier: string;
  status: string;
  state: { blockers: { kind: string }[]; activeRunIds: string[] };
  result: { summary: string; artifacts: { path: string; mediaType: string; size: number }[] } | null;
};
type Run = {
  id: string;
  status: string;
  attempt: number;
  model: string;
  usage: object;
  logState: string;
  error: object | null;
};

const root = path.resolve(import.meta.dirname, '../../../..');

async function setUp(t: Test, app: TestApp) {
  const organizationId = randomUUID();
  const home = `/organizations/${organizationId}`;
  await app.owner.post(home, { slug: `o-${organizationId}`, name: 'Test' });
  const profile = { key: 'operator', name: 'Operator', kind: 'operator' };
  t.equal((await app.owner.post(`${home}/agent-profiles`, profile)).status, 201);
  const scratch = await mkdtemp(path.join(tmpdir(), 'worker-real-test-'));
  t.teardown(() => rm(scratch, { recursive: true, force: true }));

  const create = async (spec: object = {}, fields: object = {}): Promise<Task> => {
    const body = { title: 'A task', ownerProfileKey: 'operator', spec, ...fields };
    const created = await app.owner.post<Task>(`${home}/tasks`, body);
    t.equal(created.status, 201, JSON.stringify(created.body));
    return created.data;
  };
  const task = async ({ id }: Task) => (await app.owner.get<Task>(`${home}/tasks/${id}`)).data;
  const runs = async ({ id }: Task) => (await app.owner.get<Run[]>(`${home}/runs`, { query: { taskId: id } })).data;
  const lines: string[] = [];
  const worker = (command: string, ...argv: string[]): ChildProcess => {
    const given = ['--exec', command, '--url', app.url, '--organization', organizationId, '--scratch', scratch];
    const child = spawn(process.execPath, ['scripts/worker/main.ts', '--no-env-file', ...given, ...argv], {
      cwd: root,
      env: bareEnvironment({ BUSINESS_RUNNER_SERVICE_TOKEN: SERVICE_TOKEN }),
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    child.stdout?.on('data', (chunk) => lines.push(String(chunk)));
    t.teardown(() => void child.kill('SIGKILL'));
    return child;
  };
  const ended = async (child: ChildProcess): Promise<number | null> => (await once(child, 'exit'))[0];
  return { home, organizationId, create, task, runs, worker, ended, said: () => lines.join('') };
}

t.test('the reference worker against the real API', async (t) => {
  const app = await startTestApp(t);

  await t.test('inputs of every kind arrive, outputs come back and are served', async (t) => {
    const { home, create, task, runs, worker, ended } = await setUp(t, app);
    const spec = {
      inputs: [
        { kind: 'inline', path: 'a/inline.txt', text: 'Größe' },
        { kind: 'upload', path: 'upload.csv' },
      ],
      acceptanceCriteria: [
        {
          kind: 'output_file',
          path: 'all.json',
          checks: [{ kind: 'json_pointer', pointer: '/csv', operator: 'contains', value: 'x,y' }],
        },
      ],
    };
    const gate = await create();
    const given = await create(spec, { dependsOn: [gate.id] });
    const upload = await app.owner.put(`${home}/tasks/${given.id}/inputs/upload.csv`, Buffer.from('x,y\n1,2\n'));
    t.equal(upload.status, 201, JSON.stringify(upload.body));
    t.equal(await ended(worker('true', '--once')), 0);
    const command = [
      'printf \'{"inline":"%s","csv":"%s"}\' "$(cat $INPUT_DIR/a/inline.txt)" "$(head -1 $INPUT_DIR/upload.csv)" > $OUTPUT_DIR/all.json',
      `echo '{"inputTokens":12,"costMinorUnits":7}' > $USAGE_FILE`,
      'curl -sf -H "Authorization: Bearer $BUSINESS_RUNNER_TOKEN" $BUSINESS_RUNNER_URL/internal/agent/organizations/$(sed -n \'s/.*"organizationId": "\\(.*\\)",/\\1/p\' run.json | head -1)/status > $OUTPUT_DIR/status.json',
    ].join(' && ');
    t.equal(await ended(worker(command, '--once', '--model', 'some-model')), 0);
    const done = await task(given);
    t.match(done, {
      status: 'completed',
      result: {
        summary: 'The command succeeded and uploaded 2 files.',
        artifacts: [
          { path: 'all.json', mediaType: 'application/json' },
          { path: 'status.json', mediaType: 'application/json' },
        ],
      },
    });
    const [run] = await runs(given);
    t.match(run, { status: 'succeeded', attempt: 1, model: 'some-model', logState: 'complete' });
    t.match(run?.usage, { inputTokens: 12, costMinorUnits: 7 });
    const served = await app.owner.fetch(`${home}/runs/${run?.id}/artifacts/0/content`);
    t.same(await served.json(), { inline: 'Größe', csv: 'x,y' });
    const logs = await app.owner.get<{ items: { label: string }[] }>(`${home}/runs/${run?.id}/logs`);
    t.ok(logs.data.items.some((item) => item.label === 'Stored all.json'));
  });

  await t.test('a failing command is tried again, and the attempts are counted', async (t) => {
    const { create, task, runs, worker, ended } = await setUp(t, app);
    const given = await create({ budget: { maxAttemptsPerPhase: 1 } });
    t.equal(await ended(worker('exit 3', '--once')), 1);
    t.equal((await task(given)).status, 'failed');
    t.match(await runs(given), [
      { status: 'failed', error: { code: 'command_failed', message: 'The command ended with exit status 3' } },
    ]);
  });

  await t.test('nothing of what it says of a task moves the terminal', async (t) => {
    const { create, task, worker, ended, said } = await setUp(t, app);
    const given = await create({}, { title: 'Clear\u001b[2J the \u202escreen' });
    const command = `printf 'out\\033]0;title\\007\\n'; printf '{"label":"note\\\\u009b1m"}\\n' >> $PROGRESS_FILE`;
    t.equal(await ended(worker(command, '--once')), 0);
    t.equal((await task(given)).status, 'completed');
    for (const shown of ['Clear\\u001b[2J the \\u202escreen', 'out\\u001b]0;title\\u0007', 'note\\u009b1m']) {
      t.ok(said().includes(shown), `${shown} in ${said()}`);
    }
    t.notMatch(said(), /[^\P{Cc}\n]|[\u202a-\u202e]/u);
  });

  await t.test('a question blocks the task, a wait puts it off', async (t) => {
    const { create, task, worker, ended } = await setUp(t, app);
    const asking = await create();
    const question = '{"kind":"needs_input","question":"Which quarter?","options":["Q3"]}';
    t.equal(await ended(worker(`echo '${question}' > $RESULT_FILE`, '--once')), 0);
    t.match(await task(asking), { status: 'blocked', state: { blockers: [{ kind: 'human' }] } });
    const waiting = await create();
    const wait = '{"kind":"waiting","until":"2099-01-01T00:00:00.000Z","reason":"rates"}';
    t.equal(await ended(worker(`echo '${wait}' > $RESULT_FILE`, '--once')), 0);
    t.match(await task(waiting), { status: 'waiting' });
  });

  await t.test('SIGTERM drains: what runs is finished, nothing new is taken', async (t) => {
    const { create, task, worker, ended, said } = await setUp(t, app);
    const running = await create({}, { priority: 5 });
    const left = await create();
    const gate = path.join(await openFolder(t), 'open');
    const child = worker(`until [ -e '${gate}' ]; do sleep 0.05; done`);
    await until('the task runs', async () => (await task(running)).status === 'running');
    child.kill('SIGTERM');
    await until('it drains', () => said().includes('draining'));
    writeFileSync(gate, '');
    t.equal(await ended(child), 0);
    t.equal((await task(running)).status, 'completed');
    t.equal((await task(left)).status, 'pending');
  });
});

t.test('a cancelled run is stopped by the heartbeat that waits', async (t) => {
  // The next one would be sent after twenty seconds, and no other call hears of the cancel.
  const app = await startTestApp(t, { config: { leaseSeconds: 9_000 } });
  const { home, create, task, runs, worker, ended, said } = await setUp(t, app);
  const given = await create();
  const child = worker('echo "it runs"; sleep 300', '--once');
  await until('the command runs', () => said().includes('it runs'));
  const [run] = await runs(given);
  await until('its log arrived', async () => {
    const logs = await app.owner.get<{ items: { label: string }[] }>(`${home}/runs/${run?.id}/logs`);
    return logs.data.items.some((item) => item.label === 'Command started');
  });
  t.same(heartbeats(app), [], 'the first heartbeat still waits');
  t.equal((await app.owner.post(`${home}/tasks/${given.id}/cancel`)).status, 200);
  t.equal(await ended(child), 1);
  const [first] = heartbeats(app);
  t.ok(Number(first?.['ms']) < HEARTBEAT_WAIT_MS, 'and does not wait to its end');
  t.match(said(), /cancelled: The run was cancelled/);
  t.equal((await task(given)).status, 'cancelled');
  t.match(await runs(given), [{ status: 'cancelled' }]);
});

t.test('a worker that is killed leaves no command behind', async (t) => {
  const app = await startTestApp(t);
  const { create, worker, said } = await setUp(t, app);
  await create();
  const child = worker('echo "pid $$"; sleep 300');
  const [, pid] = await until('the command runs', () => /pid (\d+)/.exec(said()));
  child.kill('SIGKILL');
  await until('the command ended', () => {
    try {
      process.kill(Number(pid), 0);
      return false;
    } catch {
      return true;
    }
  });
  t.pass('it ended with its worker');
});
