import { randomUUID } from 'node:crypto';
import t from 'tap';
import { agentCalls, agentReads, agentWrites } from '../../support/agent_calls.ts';
import {
  agentPath,
  claim,
  expectSuccess,
  type Fields,
  fingerprint,
  type HeldRun,
  IN_ONE_PLACE,
  ownerPath,
  pullItems,
  readTask,
  refusalOf,
  runNext,
  runTask,
  sqlOf,
  startRun,
  UNDER_EACH_OTHER,
  workerOf,
} from '../../support/api_fixtures.ts';
import { OWNER_TOKEN, startTestApp } from '../../support/app.ts';
import { createSecondProfile, createTestOrganization, type TestOrganization } from '../../support/fixtures.ts';
import type { Client } from '../../support/http.ts';
import { brokenInvariants } from '../../support/invariants.ts';

const started = await startTestApp(t, { config: { ownerAuth: { mode: 'token', tokens: [OWNER_TOKEN] } } });
const app = { ...started, owner: started.owner.as(OWNER_TOKEN) };
const sql = sqlOf(app);
const UNAUTHORIZED = '401 agent_unauthorized';

/** A place of its own for each test: an operator, and a department. */
async function orgs(): Promise<{ operator: TestOrganization; growth: TestOrganization }> {
  const operator = await createTestOrganization(sql, {
    key: 'operator',
    maxConcurrentRuns: 50,
    limits: { maxConcurrentRuns: 50 },
  });
  const fields = { key: 'growth', kind: 'department', maxConcurrentRuns: 50 };
  return { operator, growth: await createSecondProfile(sql, operator, fields) };
}

const agentOf = (held: HeldRun) => app.owner.as(held.executionToken);
const plan = (...operations: Fields[]) => ({ kind: 'plan', operations });
const make = (key: string, fields: Fields = {}) => ({ op: 'create_task', key, title: key, ...fields });
const verdict = (given: 'passed' | 'failed') => ({
  kind: 'verification',
  verdict: given,
  summary: `It ${given}`,
  evidence: [],
});

async function outcomeBody(held: HeldRun, outcome: unknown, fields: Fields = {}): Promise<Fields> {
  const task = await readTask(app, { ...held, profileId: '', profileKey: '' }, held.taskId);
  const { version: taskVersion, graphRevision } = task;
  return { runId: held.runId, taskVersion, graphRevision, idempotencyKey: 'k-1', outcome, ...fields };
}

async function stage(held: HeldRun, outcome: unknown, fields: Fields = {}, client: Client = agentOf(held)) {
  const path = agentPath(held, `/tasks/${held.taskId}/outcomes`);
  return client.post<Fields>(path, await outcomeBody(held, outcome, fields));
}

async function planRun(org: TestOrganization, fields: Fields = {}): Promise<HeldRun> {
  return runTask(app, org, { kind: 'initiative', ...fields });
}

t.test('a plan is handed in with the token of its run, and applied when that completes', async (t) => {
  const { operator, growth } = await orgs();
  const held = await planRun(operator);
  const reply = await stage(
    held,
    plan(make('one', { ownerProfileKey: 'growth' }), make('two', { dependsOn: ['one'] })),
  );
  t.match(expectSuccess(reply, 201), {
    taskId: held.taskId,
    runId: held.runId,
    kind: 'plan',
    idempotencyKey: 'k-1',
    status: 'staged',
  });
  t.same((await app.owner.get<unknown[]>(ownerPath(operator, `/tasks?parentId=${held.taskId}`))).data, []);
  t.same(expectSuccess(await workerOf(app, held).complete()), { status: 'succeeded' });
  t.match(await readTask(app, operator, held.taskId), {
    status: 'blocked',
    phase: 'execute',
    state: { blockers: [{ kind: 'children' }] },
  });
  const run = await app.owner.get<{ output: { result: { tasks: { key: string; identifier: string }[] } } }>(
    ownerPath(operator, `/runs/${held.runId}`),
  );
  t.match(run.data, {
    mode: 'plan',
    status: 'succeeded',
    output: { result: { kind: 'planned', tasks: [{ key: 'one' }, { key: 'two' }] } },
  });
  const [one, two] = run.data.output.result.tasks;
  t.match(await readTask(app, growth, one?.identifier ?? ''), {
    status: 'pending',
    createdByRunId: held.runId,
    ownerAgentProfileId: growth.profileId,
  });
  t.match(await readTask(app, growth, two?.identifier ?? ''), { status: 'blocked' });
});

t.test('sent again it returns the same, and two at once too', async (t) => {
  const { operator } = await orgs();
  const held = await planRun(operator);
  const body = await outcomeBody(held, plan(make('one')));
  const path = agentPath(held, `/tasks/${held.taskId}/outcomes`);
  const both = await Promise.all([agentOf(held).post(path, body), app.service.post(path, body)]);
  const [first, second] = both.map((reply) => expectSuccess(reply, 201));
  t.same(first, second);
  t.equal(refusalOf(await stage(held, plan(make('other')))), '409 state_conflict differs');
  t.equal(
    refusalOf(await stage(held, plan(make('one')), { idempotencyKey: 'k-2' })),
    '409 state_conflict already_staged',
  );
});

t.test('an outcome of another run, version or revision is refused', async (t) => {
  const { operator } = await orgs();
  const held = await planRun(operator);
  const other = await planRun(operator);
  const refused = async (fields: Fields) => refusalOf(await stage(held, plan(make('a')), fields));
  t.equal(await refused({ runId: other.runId }), '409 state_conflict wrong_run');
  t.equal(await refused({ taskVersion: 1 }), '409 state_conflict stale');
  t.equal(await refused({ graphRevision: 77 }), '409 state_conflict stale');
  t.equal(refusalOf(await stage(held, verdict('passed'))), '409 state_conflict wrong_mode');
  t.equal(refusalOf(await stage(held, plan(make('a')), {}, agentOf(other))), UNAUTHORIZED);
  t.equal(refusalOf(await stage(held, plan(make('a')), {}, app.owner)), UNAUTHORIZED, 'an owner is no agent');
  const unknown = agentPath(held, `/tasks/${randomUUID()}/outcomes`);
  t.equal(refusalOf(await app.service.post(unknown, await outcomeBody(held, plan(make('a'))))), '404 not_found');
});

const wrongOutcomes: Readonly<Record<string, readonly [outcome: unknown, path: string]>> = {
  'no kind': [{}, 'outcome.kind'],
  'an unknown kind': [{ kind: 'dream' }, 'outcome.kind'],
  'an unknown operation': [plan({ op: 'delete_task', task: 'T-1' }), 'outcome.operations.0.op'],
  'an unknown field': [plan(make('a', { colour: 'red' })), 'outcome.operations.0.colour'],
  'a key that is none': [plan(make('a b')), 'outcome.operations.0.key'],
  'a task without a title': [plan({ op: 'create_task', key: 'a' }), 'outcome.operations.0.title'],
  'a wrong spec': [plan(make('a', { spec: { verification: 'x' } })), 'outcome.operations.0.spec.verification'],
  'inputs that cannot lie together': [
    plan(make('a', { spec: UNDER_EACH_OTHER })),
    'outcome.operations.0.spec.inputs.1.path',
  ],
  'outputs that cannot lie together': [
    plan(make('a', { spec: IN_ONE_PLACE })),
    'outcome.operations.0.spec.acceptanceCriteria.1.path',
  ],
  'too many operations': [plan(...Array.from({ length: 1001 }, (_, n) => make(`k${n}`))), 'outcome.operations'],
  'a verdict that is none': [{ ...verdict('passed'), verdict: 'maybe' }, 'outcome.verdict'],
  'a verdict without a word': [{ ...verdict('passed'), summary: '' }, 'outcome.summary'],
  'evidence outside': [
    { ...verdict('passed'), evidence: [{ kind: 'file', runId: randomUUID(), path: '../a' }] },
    'outcome.evidence.0.path',
  ],
  'an unknown profile': [plan(make('a', { ownerProfileKey: 'nobody' })), 'outcome.operations.0.ownerProfileKey'],
  'an unknown key': [plan(make('a', { dependsOn: ['b'] })), 'outcome.operations.0.dependsOn.0'],
};

t.test('what is malformed, or names what is not there, is 400 with its path', async (t) => {
  const { operator } = await orgs();
  const held = await planRun(operator);
  const before = await fingerprint(app);
  for (const [name, [outcome, path]] of Object.entries(wrongOutcomes)) {
    const reply = await stage(held, outcome);
    t.match([reply.status, reply.code], [400, 'validation_failed'], name);
    const issues = reply.status >= 400 ? (reply.body as { error: { issues?: { path: string }[] } }).error.issues : [];
    t.ok(
      issues?.some((issue) => issue.path === path),
      `${name}: ${JSON.stringify(issues)}`,
    );
  }
  t.equal(refusalOf(await stage(held, plan(make('a', { dependsOn: ['a'] })))), '409 state_conflict cycle');
  t.equal(await fingerprint(app), before);
});

t.test('a verify run reads, hands in its verdict, and does nothing else', async (t) => {
  const { operator, growth } = await orgs();
  const made = await runTask(app, growth, { spec: { verification: 'agent' } });
  await workerOf(app, made).put('report.md', '# Report');
  expectSuccess(await workerOf(app, made).completeWith('report.md'));
  t.match(await readTask(app, growth, made.taskId), {
    status: 'pending',
    phase: 'verify',
    result: null,
    state: { verification: { runId: made.runId, result: { artifacts: [{ path: 'report.md' }] } } },
  });
  const item = await claim(app, operator);
  t.match(item, { mode: 'verify', agentProfile: { key: 'operator' }, task: { id: made.taskId, phase: 'verify' } });
  const judge = await startRun(app, item);
  const agent = agentOf(judge);
  for (const [name, call] of Object.entries(agentReads(agent, operator, made.taskId))) {
    t.equal((await call()).status, 200, name);
  }
  for (const [name, call] of Object.entries(agentWrites(agent, operator, made.taskId))) {
    t.equal(refusalOf(await call()), UNAUTHORIZED, name);
  }
  t.equal(await (await workerOf(app, judge).input('outputs/report.md')).text(), '# Report');
  const brief = JSON.parse(await (await workerOf(app, judge).input('task.json')).text());
  t.match(brief, { mode: 'verify', verification: { runId: made.runId } });
  const uri = `org://${operator.organizationId}/runs/${made.runId}/outputs/report.md`;
  const claims = { uri, size: 8, mediaType: 'text/markdown' };
  const evidence = [{ kind: 'file', runId: made.runId, path: 'report.md', ...claims }];
  for (const claim of [{ size: 9 }, { sha256: '0'.repeat(64) }, { uri: `${uri}.md` }]) {
    const claimed = evidence.map((file) => ({ ...file, ...claim }));
    const differing = await stage(judge, { ...verdict('passed'), evidence: claimed });
    t.equal(refusalOf(differing), '400 validation_failed differs_from_stored');
  }
  expectSuccess(await stage(judge, { ...verdict('passed'), evidence }), 201);
  t.same(expectSuccess(await workerOf(app, judge).complete()), { status: 'succeeded' });
  t.match(await readTask(app, growth, made.taskId), {
    status: 'completed',
    result: {
      completion: { checks: [{ evaluator: 'agent', evidence: [{ path: 'report.md', mediaType: 'text/markdown' }] }] },
    },
  });
  for (const [name, call] of Object.entries(agentCalls(agent, operator, made.taskId))) {
    t.equal(refusalOf(await call()), UNAUTHORIZED, `${name} after its end`);
  }
});

t.test('a verdict that comes after a cancel is too late', async (t) => {
  const { operator, growth } = await orgs();
  const made = await runTask(app, growth, { spec: { verification: 'agent' } });
  expectSuccess(await workerOf(app, made).complete());
  const judge = await runNext(app, operator);
  const body = await outcomeBody(judge, verdict('passed'));
  expectSuccess(await app.owner.post(ownerPath(growth, `/tasks/${made.taskId}/cancel`)));
  const path = agentPath(judge, `/tasks/${judge.taskId}/outcomes`);
  t.equal(refusalOf(await agentOf(judge).post(path, body)), UNAUTHORIZED);
  t.equal(refusalOf(await app.service.post(path, body)), '409 state_conflict wrong_run');
  t.same(expectSuccess(await workerOf(app, judge).complete()), { status: 'cancelled' });
  t.match(await readTask(app, growth, made.taskId), { status: 'cancelled' });
});

t.test('a plan run that hands in nothing has failed, and is tried again', async (t) => {
  const { operator } = await orgs();
  const held = await planRun(operator);
  const worker = workerOf(app, held);
  t.same(expectSuccess(await worker.complete()), { status: 'failed' });
  t.same(expectSuccess(await worker.complete()), { status: 'failed' }, 'sent again');
  t.match((await app.owner.get(ownerPath(operator, `/runs/${held.runId}`))).data, {
    status: 'failed',
    error: { code: 'outcome_missing', retryable: true },
  });
  t.match(await readTask(app, operator, held.taskId), { status: 'pending', phase: 'plan' });
});

t.test('the result that the service has staged is the one to complete with', async (t) => {
  const { operator } = await orgs();
  const held = await runTask(app, operator);
  const result = { kind: 'completed', summary: 'Exactly this' };
  t.equal(refusalOf(await stage(held, { kind: 'execution', result })), UNAUTHORIZED);
  expectSuccess(await stage(held, { kind: 'execution', result }, {}, app.service), 201);
  t.equal(refusalOf(await workerOf(app, held).complete()), '400 validation_failed differs_from_staged');
  expectSuccess(await workerOf(app, held).heartbeat());
  t.same(expectSuccess(await workerOf(app, held).complete(result)), { status: 'succeeded' });
});

t.test('after a failure the next plan run is told what failed, and what is beside it', async (t) => {
  const { operator, growth } = await orgs();
  const held = await planRun(operator);
  expectSuccess(
    await stage(held, plan(make('one', { ownerProfileKey: 'growth' }), make('two', { dependsOn: ['one'] }))),
    201,
  );
  expectSuccess(await workerOf(app, held).complete());
  const failing = await runNext(app, growth);
  expectSuccess(await workerOf(app, failing).fail({ code: 'no_paper', message: 'No paper' }));
  const [item] = await pullItems(app, { organizationIds: [operator.organizationId] });
  t.match(item, {
    mode: 'plan',
    task: {
      replanCount: 1,
      state: {
        replan: { reason: 'child_failed', taskId: failing.taskId, error: { code: 'no_paper' } },
        children: [
          { status: 'failed', title: 'one' },
          { status: 'blocked', title: 'two' },
        ],
      },
    },
  });
});

t.test('the database is consistent after all of it', async (t) => {
  t.same(await brokenInvariants(sql), {});
});
