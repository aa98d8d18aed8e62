import { randomUUID } from 'node:crypto';
import t from 'tap';
import {
  agentPath,
  expectSuccess,
  type Fields,
  fingerprint,
  makeTask,
  ownerPath,
  readTask,
  refusalOf,
  runTask,
  sqlOf,
  workerOf,
} from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { createTestOrganization, lastRequest } from '../../support/fixtures.ts';
import { brokenInvariants } from '../../support/invariants.ts';
import { wakesPulls } from '../../support/wakes.ts';

const app = await startTestApp(t);
const sql = sqlOf(app);
const org = await createTestOrganization(sql, { maxConcurrentRuns: 50, limits: { maxConcurrentRuns: 50 } });
const elsewhere = await createTestOrganization(sql);

type Edge = { id: string; taskId: string; dependsOnTaskId: string; required: boolean };
const path = (ref: string) => agentPath(org, `/tasks/${ref}/dependencies`);
const add = (ref: string, dependsOn: string, fields: Fields = {}) =>
  app.service.post<Edge>(path(ref), { dependsOn, ...fields });
const list = (ref: string, query: Record<string, string | number> = {}) =>
  app.service.get<Edge[]>(path(ref), { query });

t.test('an edge blocks its task, ends the claim on it, and goes with the prerequisite', async (t) => {
  const first = await runTask(app, org);
  const second = await makeTask(app, org);
  const reply = await add(second.identifier, first.taskId);
  t.equal(reply.status, 201);
  const { id, ...edge } = reply.data;
  t.same(edge, { taskId: second.id, dependsOnTaskId: first.taskId, required: true });
  t.match(await readTask(app, org, second.id), {
    status: 'blocked',
    graphRevision: second.graphRevision + 1,
    state: { blockers: [{ kind: 'dependency', taskId: first.taskId }] },
  });
  t.match(await lastRequest(sql, org, second.id), { state: 'cancelled' });
  const again = await add(second.id, first.taskId);
  t.match([again.status, again.data.id], [201, id], 'the same edge again is the one that is there');
  expectSuccess(await workerOf(app, first).complete());
  t.match(await readTask(app, org, second.id), { status: 'pending', state: { blockers: [] } });
  t.equal((await add(second.id, first.taskId)).data.id, id);
  t.same((await list(second.id)).data, [{ id, ...edge }]);
  t.same((await list(first.taskId)).data, [], 'the list shows what a task waits for, not what waits for it');
});

t.test('an edge that is not required blocks nothing', async (t) => {
  const [first, second] = [await makeTask(app, org), await makeTask(app, org)];
  t.match((await add(second.id, first.id, { required: false })).data, { required: false });
  t.equal((await readTask(app, org, second.id)).status, 'pending');
  t.equal(refusalOf(await add(second.id, first.id)), '409 state_conflict edge_differs');
});

t.test('an edge is removed by owners and agents alike, and the task goes on', async (t) => {
  for (const [client, base] of [
    [app.owner, ownerPath],
    [app.service, agentPath],
  ] as const) {
    const [first, second] = [await makeTask(app, org), await makeTask(app, org)];
    const edge = expectSuccess(await add(second.id, first.id), 201);
    const place = base(org, `/tasks/${second.identifier}/dependencies/${first.identifier}`);
    t.same(expectSuccess(await client.delete(place)), edge);
    t.match(await readTask(app, org, second.id), { status: 'pending', state: { blockers: [] } });
    t.match(refusalOf(await client.delete(place)), /^404 (task_)?not_found/);
  }
  const [first, second] = [await makeTask(app, org), await makeTask(app, org)];
  await add(second.id, first.id);
  const wakes = () => app.owner.delete(ownerPath(org, `/tasks/${second.id}/dependencies/${first.id}`));
  t.ok(await wakesPulls(app, async () => void expectSuccess(await wakes())));
});

t.test('cycles, ancestors and the task itself are refused', async (t) => {
  const [a, b, c] = [await makeTask(app, org), await makeTask(app, org), await makeTask(app, org)];
  expectSuccess(await add(b.id, a.id), 201);
  expectSuccess(await add(c.id, b.identifier, { required: false }), 201);
  const before = await fingerprint(app);
  t.equal(refusalOf(await add(a.id, c.id)), '409 state_conflict cycle');
  t.equal(refusalOf(await add(a.id, b.id, { required: false })), '409 state_conflict cycle');
  t.equal(refusalOf(await add(a.id, a.identifier)), '409 state_conflict cycle');
  t.equal(await fingerprint(app), before);
  const root = await makeTask(app, org, { kind: 'initiative' });
  const middle = await makeTask(app, org, { kind: 'initiative', parentId: root.id });
  const leaf = await makeTask(app, org, { parentId: middle.id });
  for (const above of [root, middle]) t.equal(refusalOf(await add(leaf.id, above.id)), '409 state_conflict cycle');
  expectSuccess(await add(a.id, root.id), 201);
  t.equal(refusalOf(await add(leaf.id, a.id)), '409 state_conflict cycle', 'the initiative waits for its children');
});

t.test('two that add opposite edges at once: one of them wins', async (t) => {
  for (let n = 0; n < 5; n += 1) {
    const [a, b] = [await makeTask(app, org), await makeTask(app, org)];
    const replies = await Promise.all([add(a.id, b.id), add(b.id, a.id)]);
    t.same(replies.map((reply) => reply.status).sort(), [201, 409]);
  }
});

t.test('a task that runs or is over takes no edges, and what is elsewhere is not found', async (t) => {
  const foreign = await makeTask(app, elsewhere);
  const ready = await makeTask(app, org);
  const run = await runTask(app, org);
  t.equal(refusalOf(await add(run.taskId, ready.id)), '409 state_conflict');
  expectSuccess(await workerOf(app, run).complete());
  t.equal(refusalOf(await add(run.taskId, ready.id)), '409 state_conflict');
  for (const ref of [foreign.id, randomUUID(), 'T-99999']) {
    t.equal(refusalOf(await add(ready.id, ref)), '404 not_found not_found', `depends on ${ref}`);
    t.equal(refusalOf(await add(ref, ready.id)), '404 not_found', `of ${ref}`);
    t.equal(refusalOf(await list(ref)), '404 not_found', `list ${ref}`);
  }
  const other = agentPath({ organizationId: randomUUID() }, `/tasks/${ready.id}/dependencies`);
  t.equal(refusalOf(await app.service.get(other)), '404 not_found');
  t.equal(refusalOf(await app.service.post(other, { dependsOn: 'T-1' })), '404 not_found');
});

t.test('bad input is refused', async (t) => {
  const { id } = await makeTask(app, org);
  const bodies = [
    {},
    { dependsOn: null },
    { dependsOn: 'x' },
    { dependsOn: 'T-1', required: null },
    { dependsOn: ['T-1'] },
  ];
  for (const body of [...bodies, { dependsOn: 'T-1', required: 'yes' }, { dependsOn: 'T-1', kind: 'x' }, []]) {
    t.match(refusalOf(await app.service.post(path(id), body)), /^400 validation_failed/, JSON.stringify(body));
  }
  t.match(refusalOf(await app.service.post(path('x'), { dependsOn: 'T-1' })), /^400 validation_failed/);
  for (const query of [{ limit: 0 }, { limit: 201 }, { cursor: 'x' }, { sortBy: 'createdAt' }]) {
    t.match(
      refusalOf(await list(id, query as Record<string, string>)),
      /^400 validation_failed/,
      JSON.stringify(query),
    );
  }
});

t.test('many edges page both ways, newest first, and a cursor is of one task', async (t) => {
  const task = await makeTask(app, org);
  const made: string[] = [];
  for (let n = 0; n < 7; n += 1) {
    const { id } = await makeTask(app, org);
    made.unshift(expectSuccess(await add(task.id, id), 201).id);
  }
  const first = await list(task.id, { limit: 3 });
  const second = await list(task.id, { limit: 3, cursor: first.body.pagination.nextCursor ?? '' });
  const third = await list(task.identifier, { limit: 3, cursor: second.body.pagination.nextCursor ?? '' });
  t.same(
    [first, second, third].map((page) => page.data.map((edge) => edge.id)),
    [made.slice(0, 3), made.slice(3, 6), made.slice(6)],
  );
  t.equal(third.body.pagination.hasNextPage, false);
  const back = await list(task.id, { limit: 3, cursor: second.body.pagination.previousCursor ?? '' });
  t.same(back.data, first.data);
  const other = await makeTask(app, org);
  const cursor = first.body.pagination.nextCursor ?? '';
  t.equal(refusalOf(await list(other.id, { cursor })), '400 validation_failed invalid_cursor');
});

t.test('a POST of an edge with an Idempotency-Key happens once', async (t) => {
  const [a, b] = [await makeTask(app, org), await makeTask(app, org)];
  const send = (dependsOn: string) =>
    app.service.post<Edge>(path(a.id), { dependsOn }, { headers: { 'idempotency-key': 'edge' } });
  const first = await send(b.id);
  const again = await send(b.id);
  t.same(again.data, first.data);
  t.equal(again.headers.get('idempotency-replayed'), 'true');
  t.equal(refusalOf(await send(b.identifier)), '409 idempotency_key_reused idempotency_key_reused');
});

t.test('the database is consistent after all of it', async (t) => {
  t.same(await brokenInvariants(sql), {});
});
