import t from 'tap';
import {
  COMPLETED,
  claim,
  expectSuccess,
  type Fields,
  fingerprint,
  makeTask,
  ownerPath,
  type PulledItem,
  readTask,
  refusalOf,
  runTask,
  sqlOf,
  startOf,
  workerOf,
} from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { createTestOrganization, logEntry, updateOrganization } from '../../support/fixtures.ts';
import { brokenInvariants } from '../../support/invariants.ts';

const app = await startTestApp(t, { config: { leaseSeconds: 300, leaseClaimSeconds: 3600, retryBackoffSeconds: 1 } });
const sql = sqlOf(app);
const org = await createTestOrganization(sql, {
  key: 'growth',
  kind: 'department',
  maxConcurrentRuns: 50,
  limits: { maxConcurrentRuns: 50 },
});
const start = (item: PulledItem, fields: Fields = {}) =>
  app.service.post(`/internal/run-requests/${item.runRequestId}/start`, { ...startOf(item), ...fields });

t.test('running, heartbeat, logs, complete and fail sent twice are harmless', async (t) => {
  const run = await runTask(app, org);
  const worker = workerOf(app, run);
  t.same(expectSuccess(await worker.heartbeat()), { status: 'starting' });
  for (const _ of [1, 2]) t.same(expectSuccess(await worker.running()), { status: 'running' });
  t.equal(refusalOf(await worker.running({ model: 'another' })), '409 run_lease_expired differs');
  t.same(expectSuccess(await worker.heartbeat()), { status: 'running' });
  for (const _ of [1, 2]) t.same(expectSuccess(await worker.logs([logEntry(1)])), { status: 'running' });
  for (const _ of [1, 2]) t.same(expectSuccess(await worker.complete()), { status: 'succeeded' });
  const before = await fingerprint(app);
  const other = { ...COMPLETED, summary: 'Another' };
  t.equal(refusalOf(await worker.complete(other)), '409 run_lease_expired differs');
  t.equal(refusalOf(await worker.complete(COMPLETED, { usage: { toolCalls: 1 } })), '409 run_lease_expired differs');
  t.equal(refusalOf(await worker.fail()), '409 run_lease_expired differs', 'the other end');

  const failing = await runTask(app, org);
  const failed = workerOf(app, failing);
  for (const _ of [1, 2]) t.same(expectSuccess(await failed.fail()), { status: 'failed' });
  t.equal(refusalOf(await failed.fail({ message: 'Another' })), '409 run_lease_expired differs');
  t.equal(refusalOf(await failed.complete()), '409 run_lease_expired differs');
  t.not(await fingerprint(app), before);
});

t.test('the order of fields and defaults make no other body of a finishing call', async (t) => {
  const run = await runTask(app, org);
  const { organizationId, leaseToken, runId } = run;
  const send = (body: string) =>
    app.service.send('POST', `/internal/runs/${runId}/complete`, body, {
      headers: { 'content-type': 'application/json' },
    });
  const lease = `"organizationId":"${organizationId}","leaseToken":"${leaseToken}"`;
  const result = '{"kind":"completed","summary":"s","artifacts":[]}';
  expectSuccess(await send(`{${lease},"output":{"kind":"task_result","result":${result}}}`));
  const turned = '{ "summary": "s", "kind": "completed" }';
  const again = await send(`{"output":{"result":${turned},"kind":"task_result"},${lease}}`);
  t.same(expectSuccess(again), { status: 'succeeded' });
});

t.test('a cancel tells the worker to stop, and what it still sends is kept but decides nothing', async (t) => {
  for (const end of ['complete', 'fail'] as const) {
    const run = await runTask(app, org);
    const worker = workerOf(app, run);
    expectSuccess(await worker.running());
    await app.owner.post(ownerPath(org, `/tasks/${run.taskId}/cancel`));
    t.same(expectSuccess(await worker.heartbeat()), { status: 'cancelling' });
    t.same(expectSuccess(await worker.running()), { status: 'cancelling' });
    const report = { usage: { inputTokens: 5 }, logState: 'complete' };
    const finish = () => (end === 'complete' ? worker.complete(COMPLETED, report) : worker.fail({}, report));
    for (const _ of [1, 2]) t.same(expectSuccess(await finish()), { status: 'cancelled' }, end);
    t.match(await app.owner.get(ownerPath(org, `/runs/${run.runId}`)), {
      data: { status: 'cancelled', output: null, error: null, logState: 'complete', usage: { inputTokens: 5 } },
    });
    t.match(await readTask(app, org, run.taskId), { status: 'cancelled', result: null });
    t.equal(refusalOf(await worker.heartbeat()), '409 run_lease_expired lease_lost', 'the slot is free');
  }
});

t.test('a result may wait until a time, or ask', async (t) => {
  const run = await runTask(app, org);
  const until = '2099-01-01T00:00:00.000Z';
  t.same(expectSuccess(await workerOf(app, run).complete({ kind: 'waiting', until, reason: 'The bank is closed' })), {
    status: 'succeeded',
  });
  t.match(await readTask(app, org, run.taskId), {
    status: 'waiting',
    state: { waiting: { until, reason: 'The bank is closed' }, blockers: [], activeRunIds: [] },
    result: null,
  });
  t.match(await app.owner.get(ownerPath(org, `/runs/${run.runId}`)), {
    data: { status: 'succeeded', output: { result: { kind: 'waiting', until } } },
  });
  await app.owner.post(ownerPath(org, `/tasks/${run.taskId}/cancel`));
});

t.test('after a suspension claims are over, and started runs may finish', async (t) => {
  const other = await createTestOrganization(sql, { maxConcurrentRuns: 5 });
  const run = await runTask(app, other);
  await makeTask(app, other);
  const item = await claim(app, other);
  await updateOrganization(sql.api, other, { status: 'suspended' });
  t.equal(refusalOf(await start(item)), '409 run_lease_expired lease_lost');
  const worker = workerOf(app, run);
  expectSuccess(await worker.running());
  expectSuccess(await worker.heartbeat());
  expectSuccess(await worker.put('a.txt', 'a'), 201);
  t.same(expectSuccess(await worker.completeWith('a.txt')), { status: 'succeeded' });
});

t.test('everything is consistent after all of it', async (t) => {
  t.same(await brokenInvariants(sql), {});
});
