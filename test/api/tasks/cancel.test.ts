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
import { createTestOrganization } from '../../support/fixtures.ts';
import { brokenInvariants } from '../../support/invariants.ts';

const app = await startTestApp(t);
const sql = sqlOf(app);
const org = await createTestOrganization(sql, { key: 'growth', kind: 'department' });
const tasks = ownerPath(org, '/tasks');
const act = (ref: string, verb: 'cancel' | 'retry', body?: unknown) =>
  app.owner.post<Task>(`${tasks}/${ref}/${verb}`, body);

t.test('cancel ends a task and all below it, and a repeat returns the same', async (t) => {
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
  const byAgent = await app.service.post(agentPath(org, `/tasks/${root}/retry`));
  t.equal(refusalOf(byAgent), '409 state_conflict', 'a person did it: no agent brings it back');
  t.equal(refusalOf(await act(child, 'retry')), '409 state_conflict', 'it went with the initiative');
  t.match(expectSuccess(await act(root, 'retry')), { id: root, status: 'blocked' });
  t.match(await readTask(app, org, child), { status: 'pending' });
  expectSuccess(await act(root, 'cancel'));
});

t.test('what is over is not cancelled, and what is open or completed not retried', async (t) => {
  const done = await runTask(app, org);
  expectSuccess(await workerOf(app, done).complete());
  const failed = await runTask(app, org);
  expectSuccess(await workerOf(app, failed).fail());
  const { id: ready } = await makeTask(app, org);
  for (const id of [done.taskId, failed.taskId]) t.equal(refusalOf(await act(id, 'cancel')), '409 state_conflict');
  for (const id of [done.taskId, ready]) t.equal(refusalOf(await act(id, 'retry')), '409 state_conflict');
});

t.test('the database is consistent after all of it', async (t) => {
  t.same(await brokenInvariants(sql), {});
});
