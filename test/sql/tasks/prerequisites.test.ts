import t from 'tap';
import {
  addDependency,
  cancelTask,
  createTask,
  createTestOrganization,
  failRun,
  openItems,
  retryTask,
  runNext,
  taskRow,
} from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSql } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);
const notice = [{ kind: 'notification', purpose: 'prerequisite' }];

scenario('an edge to a task that is over already tells a person at once', async (test) => {
  const org = await createTestOrganization(sql);
  const over = await createTask(sql, org, { title: 'over' });
  await cancelTask(sql.api, org, over.id);
  const waits = await createTask(sql, org, { title: 'waits' });
  await addDependency(sql.api, org, waits.id, over.id);
  test.match(await taskRow(sql, org, waits.id), { status: 'blocked' });
  test.match(await openItems(sql, org, waits.id), notice);
  const born = await createTask(sql, org, { title: 'born waiting', dependsOn: [over.id] });
  test.match(await openItems(sql, org, born.id), notice);
  test.equal((await openItems(sql, org, waits.id)).length, 1, 'nobody is told twice');
});

scenario('a retry ends the notice only when no other prerequisite is over', async (test) => {
  const org = await createTestOrganization(sql);
  const failed = await createTask(sql, org, { title: 'fails' });
  await failRun(sql.api, await runNext(sql, org), { retryable: false });
  const cancelled = await createTask(sql, org, { title: 'cancelled' });
  await cancelTask(sql.api, org, cancelled.id);
  const both = await createTask(sql, org, { title: 'both', dependsOn: [failed.id, cancelled.id] });
  test.match(await taskRow(sql, org, failed.id), { status: 'failed' });
  const one = await createTask(sql, org, { title: 'one', dependsOn: [failed.id] });
  await retryTask(sql.api, org, failed.id);
  test.match(await openItems(sql, org, both.id), notice);
  test.same(await openItems(sql, org, one.id), []);
});
