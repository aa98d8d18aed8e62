import { randomUUID } from 'node:crypto';
import t from 'tap';
import type { Task } from '../../../api/tasks/schema.ts';
import { expectSuccess, ownerPath, refusalOf, runTask, sqlOf, workerOf } from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { createTestOrganization } from '../../support/fixtures.ts';
import { brokenInvariants } from '../../support/invariants.ts';

const app = await startTestApp(t);
const sql = sqlOf(app);
const org = await createTestOrganization(sql, { key: 'growth', kind: 'department' });
const elsewhere = await createTestOrganization(sql, { key: 'growth', kind: 'department' });
const tasks = ownerPath(org, '/tasks');
const nobody = randomUUID();

const post = (body: unknown, headers: Record<string, string> = {}) => app.owner.post<Task>(tasks, body, { headers });
const act = (ref: string, verb: 'cancel' | 'retry', body?: unknown) =>
  app.owner.post<Task>(`${tasks}/${ref}/${verb}`, body);

t.test('a POST with an Idempotency-Key happens once', async (t) => {
  const body = { title: 'Once', ownerProfileKey: 'growth' };
  const key = { 'idempotency-key': 'create-1' };
  const first = await post(body, key);
  const again = await post({ ownerProfileKey: 'growth', title: 'Once' }, key);
  t.equal(again.status, 201);
  t.same(again.data, first.data);
  t.equal(again.headers.get('idempotency-replayed'), 'true');
  t.equal(refusalOf(await post({ ...body, title: 'Twice' }, key)), '409 idempotency_key_reused idempotency_key_reused');
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

t.test('the database is consistent after all of it', async (t) => {
  t.same(await brokenInvariants(sql), {});
});
