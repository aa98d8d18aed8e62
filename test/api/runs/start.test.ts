import { randomUUID } from 'node:crypto';
import t from 'tap';
import {
  claim,
  expectSuccess,
  type Fields,
  makeTask,
  ownerPath,
  type PulledItem,
  readTask,
  refusalOf,
  runTask,
  sqlOf,
  startOf,
  startRun,
  workerOf,
} from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { createTestOrganization, lastRequest, updateOrganization } from '../../support/fixtures.ts';
import { brokenInvariants } from '../../support/invariants.ts';

const app = await startTestApp(t, { config: { leaseSeconds: 300, leaseClaimSeconds: 3600, retryBackoffSeconds: 1 } });
const sql = sqlOf(app);
const org = await createTestOrganization(sql, {
  key: 'growth',
  kind: 'department',
  maxConcurrentRuns: 50,
  limits: { maxConcurrentRuns: 50 },
});
const elsewhere = await createTestOrganization(sql);

const start = (item: PulledItem, fields: Fields = {}) =>
  app.service.post(`/internal/run-requests/${item.runRequestId}/start`, { ...startOf(item), ...fields });

t.test('a start returns everything that the run needs, and the same when it is sent again', async (t) => {
  const task = await makeTask(app, org);
  const item = await claim(app, org);
  const runId = randomUUID();
  const first = await start(item, { runId: runId.toUpperCase() });
  const { leaseExpiresAt, executionToken, ...rest } = first.data;
  t.same(rest, {
    kind: 'run',
    organizationId: org.organizationId,
    agentProfileId: org.profileId,
    taskId: task.id,
    runRequestId: item.runRequestId,
    runId,
    attempt: 1,
    heartbeatIntervalMs: 100_000,
  });
  t.match(executionToken, /^[0-9a-f]{64}$/);
  const left = Date.parse(String(leaseExpiresAt)) - Date.now();
  t.ok(left > 200_000 && left <= 300_000, `the lease lasts ${left} ms more`);
  t.same((await start(item, { runId })).data, first.data);
  t.match(await readTask(app, org, task.id), {
    status: 'running',
    agentRunCount: 1,
    state: { activeRunIds: [runId] },
  });
  expectSuccess(await workerOf(app, { ...item, runId }).complete());
});

t.test('a start is refused for each reason, and counts nothing then', async (t) => {
  await makeTask(app, org);
  const item = await claim(app, org);
  const { runId } = startOf(item);
  const refused = async (fields: Fields, path = item.runRequestId) =>
    refusalOf(await app.service.post(`/internal/run-requests/${path}/start`, { ...startOf(item), ...fields }));
  t.equal(await refused({ leaseToken: '1.x' }), '409 run_lease_expired lease_lost');
  t.equal(await refused({}, randomUUID()), '409 run_lease_expired lease_lost', 'an unknown request');
  t.equal(await refused({ organizationId: randomUUID() }), '409 run_lease_expired lease_lost');
  t.equal(await refused({ organizationId: elsewhere.organizationId }), '409 run_lease_expired lease_lost');
  t.match(await readTask(app, org, item.task.id), { agentRunCount: 0, status: 'pending' });
  const used = await runTask(app, org);
  t.equal(await refused({ runId: used.runId }), '409 run_lease_expired differs', 'the id of another run');
  expectSuccess(await workerOf(app, used).complete());
  expectSuccess(await start(item, { runId }));
  t.equal(await refused({ runId: randomUUID() }), '409 run_lease_expired differs', 'a second run of one claim');
  t.match(await readTask(app, org, item.task.id), { agentRunCount: 1 });
  expectSuccess(await workerOf(app, { ...item, runId }).complete());
});

t.test('20 starts at once: one run, one attempt', async (t) => {
  await makeTask(app, org);
  const item = await claim(app, org);
  const replies = await Promise.all(Array.from({ length: 20 }, () => start(item, { runId: randomUUID() })));
  const won = replies.filter((reply) => reply.status === 200);
  t.equal(won.length, 1);
  for (const reply of replies.filter((one) => one.status !== 200)) {
    t.equal(refusalOf(reply), '409 run_lease_expired differs');
  }
  t.match(await readTask(app, org, item.task.id), { agentRunCount: 1 });
  t.match(await lastRequest(sql, org, item.task.id), { attempt: 1 });
  expectSuccess(await workerOf(app, { ...item, runId: String(won[0]?.data['runId']) }).complete());
});

t.test('limits that were lowered after the pull: 409 capacity, and the request is handed out again', async (t) => {
  const small = await createTestOrganization(sql, { maxConcurrentRuns: 5 });
  await makeTask(app, small);
  await makeTask(app, small);
  const [first, second] = [await claim(app, small), await claim(app, small)];
  await updateOrganization(sql.api, small, { config: { limits: { maxConcurrentRuns: 1 } } });
  t.equal(refusalOf(await start(second)), '409 run_lease_expired capacity');
  t.match(await readTask(app, small, second.task.id), { status: 'pending', agentRunCount: 0 });
  t.equal(refusalOf(await start(second)), '409 run_lease_expired lease_lost', 'its claim is over');
  const run = await startRun(app, first);
  expectSuccess(await workerOf(app, run).complete());
  t.match(await claim(app, small), { runRequestId: second.runRequestId, attempt: 1 });
});

t.test('a task that is not ready any more: its claim is over', async (t) => {
  const task = await makeTask(app, org);
  const item = await claim(app, org);
  await app.owner.post(ownerPath(org, `/tasks/${task.id}/cancel`));
  t.equal(refusalOf(await start(item)), '409 run_lease_expired lease_lost');
  const budget = { spec: { budget: { maxAgentRuns: 1 } } };
  const root = await makeTask(app, org, { kind: 'initiative', ...budget });
  const children = [await makeTask(app, org, { parentId: root.id }), await makeTask(app, org, { parentId: root.id })];
  const [one, two] = [await claim(app, org), await claim(app, org)];
  t.same(new Set([one.task.id, two.task.id]), new Set(children.map((child) => child.id)));
  const run = await startRun(app, one);
  t.equal(refusalOf(await start(two)), '409 run_lease_expired task_not_ready', 'its sibling used up the budget');
  t.match(await readTask(app, org, two.task.id), { status: 'blocked', state: { blockers: [{ kind: 'budget' }] } });
  expectSuccess(await workerOf(app, run).complete());
});

t.test('everything is consistent after all of it', async (t) => {
  t.same(await brokenInvariants(sql), {});
});
