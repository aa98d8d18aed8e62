import { randomUUID } from 'node:crypto';
import t from 'tap';
import type { Task } from '../../../api/tasks/schema.ts';
import {
  agentPath,
  expectSuccess,
  makeTask,
  ownerPath,
  readTask,
  refusalOf,
  runTask,
  sqlOf,
  workerOf,
} from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { createTestOrganization, openItems } from '../../support/fixtures.ts';
import { brokenInvariants } from '../../support/invariants.ts';
import { transition } from '../../support/transitions.ts';

const app = await startTestApp(t);
const sql = sqlOf(app);
const org = await createTestOrganization(sql, { key: 'growth', kind: 'department' });
const elsewhere = await createTestOrganization(sql, { key: 'growth', kind: 'department' });
const tasks = ownerPath(org, '/tasks');
const nobody = randomUUID();

const post = (body: unknown, headers: Record<string, string> = {}) => app.owner.post<Task>(tasks, body, { headers });
const act = (ref: string, verb: 'cancel' | 'retry', body?: unknown) =>
  app.owner.post<Task>(`${tasks}/${ref}/${verb}`, body);

t.test('cancel ends a task and all below it, and a repeat answers the same', async (t) => {
  const { id: root } = await makeTask(app, org, { kind: 'initiative' });
  const { id: child } = await makeTask(app, org, { parentId: root, priority: 900 });
  const running = await runTask(app, org, { parentId: root });
  const reply = await act(root, 'cancel', {});
  t.match(reply.data, { id: root, status: 'cancelled', phase: 'closed', state: { blockers: [], activeRunIds: [] } });
  t.match(await readTask(app, org, child), { status: 'cancelled' });
  t.match(await readTask(app, org, running.taskId), { status: 'cancelled', state: { activeRunIds: [] } });
  t.same((await act(root, 'cancel')).data, reply.data);
  t.same((await workerOf(app, running).heartbeat()).data, { status: 'cancelling' });
  t.same((await workerOf(app, running).complete()).data, { status: 'cancelled' });
  t.equal((await readTask(app, org, running.taskId)).status, 'cancelled', 'a late result changes nothing');
  t.match(refusalOf(await act(root, 'retry')), '409 state_conflict', 'a person did it: no retry brings it back');
});

t.test('what is over is not cancelled, and only failures are retried', async (t) => {
  const done = await runTask(app, org);
  expectSuccess(await workerOf(app, done).complete());
  const failed = await runTask(app, org);
  expectSuccess(await workerOf(app, failed).fail());
  const { id: ready } = await makeTask(app, org);
  for (const id of [done.taskId, failed.taskId]) t.equal(refusalOf(await act(id, 'cancel')), '409 state_conflict');
  for (const id of [done.taskId, ready]) t.equal(refusalOf(await act(id, 'retry')), '409 state_conflict');
  await act(ready, 'cancel');
  t.equal(refusalOf(await act(ready, 'retry')), '409 state_conflict');
});

t.test('retry brings back the failure, the initiatives above it and what it cancelled', async (t) => {
  const last = { spec: { budget: { maxReplans: 0 } } };
  const { id: root } = await makeTask(app, org, { kind: 'initiative', ...last });
  const { id: waits } = await makeTask(app, org, { parentId: root, scheduledAt: '2099-01-01T00:00:00Z' });
  const done = await runTask(app, org, { parentId: root });
  expectSuccess(await workerOf(app, done).complete());
  const { id: dropped } = await makeTask(app, org, { parentId: root, scheduledAt: '2099-01-01T00:00:00Z' });
  await act(dropped, 'cancel');
  const failed = await runTask(app, org, { parentId: root });
  expectSuccess(await workerOf(app, failed).fail({ code: 'no_luck', message: 'No luck' }));
  t.match(await readTask(app, org, failed.taskId), {
    status: 'failed',
    state: { failureOriginId: failed.taskId, error: { code: 'no_luck', message: 'No luck' } },
  });
  t.match(await readTask(app, org, root), { status: 'failed', state: { failureOriginId: failed.taskId } });
  t.match(await readTask(app, org, waits), { status: 'cancelled', state: { failureOriginId: failed.taskId } });

  const reply = await act(waits, 'retry');
  t.match(reply.data, { id: waits, status: 'blocked', state: { blockers: [{ kind: 'schedule' }] } });
  t.notHas(reply.data.state, { failureOriginId: failed.taskId });
  t.match(await readTask(app, org, failed.taskId), { status: 'pending', agentRunCount: 1 });
  t.match(await readTask(app, org, root), { status: 'blocked', state: { blockers: [{ kind: 'children' }] } });
  t.match(await readTask(app, org, done.taskId), { status: 'completed', agentRunCount: 1 });
  t.match(await readTask(app, org, dropped), { status: 'cancelled' }, 'a person’s cancel stays');
  t.equal(refusalOf(await act(waits, 'retry')), '409 state_conflict', 'nothing is failed any more');
  await act(root, 'cancel');
});

t.test('retry goes on without an answer where a run asked a question', async (t) => {
  const run = await runTask(app, org);
  const question = { kind: 'needs_input', question: 'Which one?', options: ['a', 'b'] };
  t.same((await workerOf(app, run).complete(question)).data, { status: 'succeeded' });
  const asked = await readTask(app, org, run.taskId);
  const [item] = await openItems(sql, org, run.taskId);
  t.match(asked, { status: 'blocked', state: { blockers: [{ kind: 'human', inboxItemId: item?.['id'] }] } });
  t.match((await act(run.taskId, 'retry')).data, { status: 'pending', state: { blockers: [] } });
  t.same(await openItems(sql, org, run.taskId), []);
  await act(run.taskId, 'cancel');
});

t.test('a POST with an Idempotency-Key happens once', async (t) => {
  const body = { title: 'Once', ownerProfileKey: 'growth' };
  const key = { 'idempotency-key': 'create-1' };
  const first = await post(body, key);
  const again = await post({ ownerProfileKey: 'growth', title: 'Once' }, key);
  t.equal(again.status, 201);
  t.same(again.data, first.data);
  t.equal(again.headers.get('idempotency-replayed'), 'true');
  t.equal(refusalOf(await post({ ...body, title: 'Twice' }, key)), '409 idempotency_key_reused');
  const other = await app.owner.post<Task>(ownerPath(elsewhere, '/tasks'), body, { headers: key });
  t.equal(other.status, 201, 'another organization');
  t.not(other.data.id, first.data.id);

  const refused = { 'idempotency-key': 'create-2' };
  t.equal(refusalOf(await post({ ...body, parentId: nobody }, refused)), '404 task_not_found not_found');
  t.equal((await post(body, refused)).status, 201, 'a refusal leaves the key unused');

  const cancel = () =>
    app.owner.post<Task>(`${tasks}/${first.data.id}/cancel`, undefined, { headers: { 'idempotency-key': 'cancel-1' } });
  const cancelled = await cancel();
  t.equal(cancelled.data.status, 'cancelled');
  const repeated = await cancel();
  t.same(repeated.data, cancelled.data);
  t.equal(repeated.headers.get('idempotency-replayed'), 'true');

  const run = await runTask(app, org);
  expectSuccess(await workerOf(app, run).fail());
  const retry = () =>
    app.owner.post<Task>(`${tasks}/${run.taskId}/retry`, {}, { headers: { 'idempotency-key': 'retry-1' } });
  const retried = await retry();
  t.equal(retried.data.status, 'pending');
  t.same((await retry()).data, retried.data, 'where a second retry would be refused');
  await act(run.taskId, 'cancel');
});

t.test('two that create with one key at once make one task', async (t) => {
  const headers = { 'idempotency-key': 'together' };
  const replies = await Promise.all(
    Array.from({ length: 6 }, () => post({ title: 'x', ownerProfileKey: 'growth' }, headers)),
  );
  t.same(new Set(replies.map((reply) => reply.status)), new Set([201]));
  t.equal(new Set(replies.map((reply) => reply.data.id)).size, 1);
});

t.test('a deleted organization has no tasks from that moment on', async (t) => {
  const gone = await createTestOrganization(sql);
  const task = await makeTask(app, gone);
  await transition(sql.api, 'organization_delete', { p_organization_id: gone.organizationId });
  for (const organizationId of [gone.organizationId, nobody]) {
    const path = ownerPath({ organizationId }, '/tasks');
    t.equal(refusalOf(await app.owner.get(path)), '404 organization_not_found');
    const created = await app.owner.post(path, { title: 'x', ownerProfileKey: gone.profileKey });
    t.equal(refusalOf(created), '404 organization_not_found');
  }
  for (const call of [
    app.owner.get(ownerPath(gone, `/tasks/${task.id}`)),
    app.owner.post(ownerPath(gone, `/tasks/${task.id}/cancel`)),
    app.owner.post(ownerPath(gone, `/tasks/${task.id}/retry`)),
    app.owner.put(ownerPath(gone, `/tasks/${task.id}/inputs/a`), 'x'),
  ]) {
    t.match(refusalOf(await call), /^404 (organization|task)_not_found$/);
  }
  t.equal(refusalOf(await app.service.get(agentPath(gone, '/tasks'))), '404 not_found');
});

t.test('the database is consistent after all of it', async (t) => {
  t.same(await brokenInvariants(sql), {});
});
