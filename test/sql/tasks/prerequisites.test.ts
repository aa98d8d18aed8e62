import t from 'tap';
import {
  addDependency,
  cancelTask,
  createPlace,
  createTask,
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
  const place = await createPlace(sql);
  const over = await createTask(sql, place, { title: 'over' });
  await cancelTask(sql.api, place, over.id);
  const waits = await createTask(sql, place, { title: 'waits' });
  await addDependency(sql.api, place, waits.id, over.id);
  test.match(await taskRow(sql, place, waits.id), { status: 'blocked' });
  test.match(await openItems(sql, place, waits.id), notice);
  const born = await createTask(sql, place, { title: 'born waiting', dependsOn: [over.id] });
  test.match(await openItems(sql, place, born.id), notice);
  test.equal((await openItems(sql, place, waits.id)).length, 1, 'nobody is told twice');
});

scenario('a retry ends the notice only when no other prerequisite is over', async (test) => {
  const place = await createPlace(sql);
  const failed = await createTask(sql, place, { title: 'fails' });
  await failRun(sql.api, await runNext(sql, place), { retryable: false });
  const cancelled = await createTask(sql, place, { title: 'cancelled' });
  await cancelTask(sql.api, place, cancelled.id);
  const both = await createTask(sql, place, { title: 'both', dependsOn: [failed.id, cancelled.id] });
  test.match(await taskRow(sql, place, failed.id), { status: 'failed' });
  const one = await createTask(sql, place, { title: 'one', dependsOn: [failed.id] });
  await retryTask(sql.api, place, failed.id);
  test.match(await openItems(sql, place, both.id), notice);
  test.same(await openItems(sql, place, one.id), []);
});
