import t from 'tap';
import {
  addDependency,
  cancelTask,
  createInitiative,
  createTask,
  createTestOrganization,
  failRun,
  lastRequest,
  openItems,
  retryTask,
  runNext,
  taskRow,
} from '../../support/fixtures.ts';
import { createPrerequisiteQuestion, onlyItem, respond } from '../../support/inbox_fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSession, openSql, refusal } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);
const notice = [{ kind: 'question', purpose: 'prerequisite', options: ['retry', 'remove', 'wait', 'cancel'] }];

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

scenario('the question is answered: the dependency goes, and the task is ready', async (test) => {
  const org = await createTestOrganization(sql);
  const { endedId, taskId, item } = await createPrerequisiteQuestion(sql, org);
  const kept = await createTask(sql, org);
  await addDependency(sql.api, org, taskId, kept.id, { required: false });
  test.match(await refusal(respond(sql.api, org, item.id, 'go on')), { status: 400, reason: 'not_an_option' });
  await respond(sql.api, org, item.id, 'remove');
  test.match(await taskRow(sql, org, taskId), { status: 'pending', blockers: [], answers: [] });
  test.match(await lastRequest(sql, org, taskId), { state: 'published' });
  test.match(await taskRow(sql, org, endedId), { status: 'cancelled' });
  const { rows } = await sql.owner.query('select depends_on_task_id from app.task_dependencies where task_id = $1', [
    taskId,
  ]);
  test.same(rows, [{ depends_on_task_id: kept.id }]);
});

scenario('the question is answered: what ended is retried, whether it failed or was cancelled', async (test) => {
  const org = await createTestOrganization(sql);
  const failed = await createTask(sql, org, { title: 'fails' });
  await failRun(sql.api, await runNext(sql, org), { retryable: false });
  const cancelled = await createTask(sql, org, { title: 'cancelled' });
  await cancelTask(sql.api, org, cancelled.id);
  const both = await createTask(sql, org, { title: 'both', dependsOn: [failed.id, cancelled.id] });
  await respond(sql.api, org, (await onlyItem(sql, org, both.id)).id, 'retry');
  for (const { id } of [failed, cancelled]) test.match(await taskRow(sql, org, id), { status: 'pending' });
  test.match(await taskRow(sql, org, both.id), { status: 'blocked' });
  test.same(await openItems(sql, org, both.id), []);
});

scenario(
  'a retry that is refused leaves the question open; it may also be left alone, or the task be cancelled',
  async (test) => {
    const org = await createTestOrganization(sql);
    const { root, one } = await createInitiative(sql, org, ['one']);
    const waits = await createTask(sql, org, { dependsOn: [one] });
    await cancelTask(sql.api, org, root);
    const item = await onlyItem(sql, org, waits.id);
    const refused = await refusal(respond(sql.api, org, item.id, 'retry'));
    test.match(refused, { status: 409, code: 'state_conflict', message: /cancelled together with I-1/ });
    test.match(await openItems(sql, org, waits.id), notice);
    await respond(sql.api, org, item.id, 'wait');
    test.match(await taskRow(sql, org, waits.id), { status: 'blocked' });
    test.same(await openItems(sql, org, waits.id), []);
    const other = await createPrerequisiteQuestion(sql, org);
    await respond(sql.api, org, other.item.id, 'cancel');
    test.match(await taskRow(sql, org, other.taskId), { status: 'cancelled' });
  },
);

scenario('an edge that is added while a person responds is not missed: the call is tried again', async (test) => {
  const org = await createTestOrganization(sql);
  const { taskId, item } = await createPrerequisiteQuestion(sql, org);
  const other = await createTask(sql, org);
  await cancelTask(sql.api, org, other.id);
  const [adder, person] = [await openSession(test, sql), await openSession(test, sql)];
  await adder.begin();
  await addDependency(adder, org, taskId, other.id);
  const responding = respond(person, org, item.id, 'remove');
  await person.waits();
  await adder.commit();
  await test.rejects(responding, { code: '40001' });
  await respond(sql.api, org, item.id, 'remove');
  test.match(await taskRow(sql, org, taskId), { status: 'pending', blockers: [] });
});
