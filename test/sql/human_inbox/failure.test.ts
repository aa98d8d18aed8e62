import t from 'tap';
import {
  cancelTask,
  completePlan,
  completeRun,
  createTask,
  createTestOrganization,
  endLease,
  expire,
  failingHierarchy,
  failRun,
  make,
  openItems,
  planned,
  publishNow,
  retryTask,
  runMode,
  runNew,
  runNext,
  stageOutcome,
  type TestOrganization,
  taskRow,
} from '../../support/fixtures.ts';
import { acknowledge, onlyItem, respond } from '../../support/inbox_fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { type JsonObject, openSession, openSql, refusal } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

/** What an organization was told about failures, oldest first. */
async function notices(org: TestOrganization): Promise<JsonObject[]> {
  const { rows } = await sql.owner.query(
    `select * from app.human_inbox_items
     where organization_id = $1 and purpose = 'failure' order by created_at, id`,
    [org.organizationId],
  );
  return rows;
}

scenario('a task that fails for good has a notice with the error and what can be done', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org, { title: 'Count the lamps' });
  await failRun(sql.api, run, { code: 'no_paper', message: 'The printer\nis out of paper' });
  const item = await onlyItem(sql, org, run.taskId);
  test.match(item, {
    kind: 'notification',
    purpose: 'failure',
    blocking: false,
    title: 'Failed: Count the lamps',
    task_id: run.taskId,
    run_id: run.runId,
    options: [],
  });
  test.equal(
    item['body'],
    [
      'T-1 failed, and is not tried again.',
      '',
      'no_paper: The printer\nis out of paper',
      '',
      'Once the cause is fixed, retry T-1: that reopens everything that ended with it. Acknowledge this to leave it failed.',
    ].join('\n'),
  );
  test.match(await refusal(respond(sql.api, org, item.id, 'retry')), { status: 400, reason: 'not_a_question' });
  const elsewhere = await createTestOrganization(sql);
  test.match(await refusal(acknowledge(sql.api, elsewhere, item.id)), { code: 'human_inbox_item_not_found' });
  test.match(await acknowledge(sql.api, org, item.id), { status: 'acknowledged' });
  test.match(await taskRow(sql, org, run.taskId), { status: 'failed' });
});

scenario('nobody is told while attempts are left, and of a long message the end is told', async (test) => {
  const org = await createTestOrganization(sql);
  const first = await runNew(sql, org);
  await failRun(sql.api, first, { retryable: true, maxAttempts: 2 });
  test.same(await notices(org), []);
  await publishNow(sql, org, first.taskId);
  const second = await runNext(sql, org);
  const message = `begin ${'%s ☃ '.repeat(500)}end`;
  await failRun(sql.api, second, { retryable: true, maxAttempts: 2, message });
  const [item, ...others] = await notices(org);
  test.same(others, []);
  test.equal(item?.['run_id'], second.runId);
  test.match(item?.['body'], /^T-1 failed after 2 attempts, and is not tried again\.\n\nbroken: /);
  test.ok(String(item?.['body']).includes(`broken: ${[...message].slice(-2000).join('')}\n\nOnce`));
  test.notMatch(item?.['body'], /begin/);
});

scenario('a worker that is lost for the last time is told of', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  await endLease(sql, run);
  test.equal(await expire(sql.jobs, run, { maxAttempts: 1 }), 'expired');
  test.match((await onlyItem(sql, org, run.taskId))['body'], /run_lease_expired: The worker stopped reporting/);
});

scenario(
  'a failed hierarchy has one notice, about what failed first, and a retry of any part closes it',
  async (test) => {
    const org = await createTestOrganization(sql);
    const tree = await failingHierarchy(sql, org);
    await failRun(sql.api, await runNext(sql, org));
    const [first, ...others] = await notices(org);
    test.same(others, []);
    test.match(first, { task_id: tree.failing, status: 'open' });
    test.match(
      first?.['body'],
      /^T-2 failed, and is not tried again\. Failed with it: I-2, I-1\. Cancelled with it: 3 open tasks\.\n/,
    );
    await retryTask(sql.api, org, tree.uncle);
    test.match(await notices(org), [{ status: 'cancelled', responded_at: null }]);
    await failRun(sql.api, await runNext(sql, org));
    test.match(await notices(org), [{ status: 'cancelled' }, { status: 'open', task_id: tree.failing }]);
  },
);

scenario('a notice that was acknowledged stays so, and the next failure has its own', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  await failRun(sql.api, run);
  await acknowledge(sql.api, org, (await onlyItem(sql, org, run.taskId)).id);
  await retryTask(sql.api, org, run.taskId);
  test.match(await notices(org), [{ status: 'acknowledged' }]);
  await failRun(sql.api, await runNext(sql, org));
  test.match(await notices(org), [{ status: 'acknowledged' }, { status: 'open' }]);
});

scenario('what an initiative plans around has no notice, also when the plan comes later', async (test) => {
  const org = await createTestOrganization(sql);
  const ids = await planned(sql, org, [make('one', { priority: 9 }), make('two', { priority: 8 })], {
    spec: { budget: { maxReplans: 1 } },
  });
  const [one, two] = [await runNext(sql, org), await runNext(sql, org)];
  await failRun(sql.api, one);
  const plan = await runMode(sql, org, 'plan');
  await stageOutcome(sql, plan, { kind: 'plan', operations: [make('three')] });
  await failRun(sql.api, two, { code: 'missed_by_the_plan' });
  test.same(await notices(org), []);
  await completeRun(sql.api, plan);
  test.match(await taskRow(sql, org, ids['root'] ?? ''), { status: 'failed' });
  const [item, ...others] = await notices(org);
  test.same(others, []);
  test.match(item, { task_id: ids['two'], run_id: two.runId });
  test.match(item?.['body'], /Failed with it: I-1\. Cancelled with it: one open task\.\n\nmissed_by_the_plan: /);
});

scenario('an initiative that nobody can plan has a notice', async (test) => {
  const org = await createTestOrganization(sql);
  const ids = await planned(sql, org, [make('inner', { kind: 'initiative' })], { spec: { budget: { maxReplans: 0 } } });
  await failRun(sql.api, await runMode(sql, org, 'plan'));
  test.match(await notices(org), [{ task_id: ids['inner'], title: 'Failed: inner' }]);
});

scenario('a child that was retried while its initiative is planned is not failed by that plan', async (test) => {
  const org = await createTestOrganization(sql);
  const ids = await planned(sql, org, [make('one', { priority: 9 }), make('two', { priority: 8 })], {
    spec: { budget: { maxReplans: 1 } },
  });
  const [one, two] = [await runNext(sql, org), await runNext(sql, org)];
  await failRun(sql.api, one);
  const plan = await runMode(sql, org, 'plan');
  await failRun(sql.api, two);
  await retryTask(sql.api, org, ids['two'] ?? '');
  await completePlan(sql, plan, [make('three')]);
  test.match(await taskRow(sql, org, ids['two'] ?? ''), { status: 'pending' });
  test.match(await taskRow(sql, org, ids['root'] ?? ''), { status: 'blocked', phase: 'execute' });
  test.same(await notices(org), []);
});

scenario('what a person cancels has no notice, whatever its worker reports', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  await cancelTask(sql.api, org, run.taskId);
  test.same(await failRun(sql.api, run), { status: 'cancelled' });
  test.same(await notices(org), []);
});

scenario('a report that is sent again, and a lease that ends beside it, leave one notice', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  const [a, b] = [await openSession(test, sql), await openSession(test, sql)];
  await a.begin();
  await failRun(a, run);
  const again = failRun(b, run);
  await b.waits();
  await a.commit();
  test.same(await again, { status: 'failed' });
  await endLease(sql, run);
  test.equal(await expire(sql.jobs, run), 'unchanged');
  test.equal((await notices(org)).length, 1);
});

scenario('a task that fails has its notice beside what its dependents are asked', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  const waiting = await createTask(sql, org, { dependsOn: [run.taskId] });
  await failRun(sql.api, run);
  const question = await onlyItem(sql, org, waiting.id);
  test.equal(question['purpose'], 'prerequisite');
  await respond(sql.api, org, question.id, 'retry');
  test.same(await openItems(sql, org, run.taskId), []);
  test.match(await notices(org), [{ status: 'cancelled' }]);
});
