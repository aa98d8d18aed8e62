import t from 'tap';
import type { Task } from '../../../api/tasks/schema.ts';
import {
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

const app = await startTestApp(t);
const sql = sqlOf(app);
const org = await createTestOrganization(sql, { key: 'growth', kind: 'department' });
const tasks = ownerPath(org, '/tasks');
const act = (ref: string, verb: 'cancel' | 'retry', body?: unknown) =>
  app.owner.post<Task>(`${tasks}/${ref}/${verb}`, body);

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

t.test('the database is consistent after all of it', async (t) => {
  t.same(await brokenInvariants(sql), {});
});
