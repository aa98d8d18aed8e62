import t from 'tap';
import {
  cancelTask,
  claimNext,
  createTask,
  createTestOrganization,
  dispatchAll,
  dueIn,
  taskRow,
  wakeTasks,
} from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSql } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

scenario('a task that is scheduled becomes ready when its time has come', async (test) => {
  const org = await createTestOrganization(sql);
  const task = await createTask(sql, org, { scheduledAt: '2099-01-01T00:00:00.000Z' });
  test.match(task, { status: 'blocked', blockers: [{ kind: 'schedule', until: '2099-01-01T00:00:00.000Z' }] });
  test.same(await dueIn(sql, org), {});
  await sql.owner.query('update app.tasks set scheduled_at = clock_timestamp() where id = $1', [task.id]);
  test.same(await dueIn(sql, org), { wake: [task.id] });
  await dispatchAll(sql);
  test.match(await taskRow(sql, org, task.id), { status: 'pending', blockers: [] });
  test.equal((await claimNext(sql, org)).task.id, task.id);
});

scenario('a scheduled task that also waits for something else is due once', async (test) => {
  const org = await createTestOrganization(sql);
  const other = await createTask(sql, org);
  const task = await createTask(sql, org, { scheduledAt: '2099-01-01T00:00:00.000Z', dependsOn: [other.id] });
  await sql.owner.query('update app.tasks set scheduled_at = clock_timestamp() where id = $1', [task.id]);
  await dispatchAll(sql);
  test.match(await taskRow(sql, org, task.id), {
    status: 'blocked',
    blockers: [{ kind: 'dependency', taskId: other.id }],
  });
  test.same(await dueIn(sql, org), {});
});

scenario('waking a task before its time, or one that is over, changes nothing', async (test) => {
  const org = await createTestOrganization(sql);
  const scheduled = await createTask(sql, org, { scheduledAt: '2099-01-01T00:00:00.000Z' });
  const over = await createTask(sql, org);
  await cancelTask(sql.api, org, over.id);
  const before = [await taskRow(sql, org, scheduled.id), await taskRow(sql, org, over.id)];
  await wakeTasks(sql, org, [scheduled.id, over.id]);
  test.same([await taskRow(sql, org, scheduled.id), await taskRow(sql, org, over.id)], before);
});
