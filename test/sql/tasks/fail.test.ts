import t from 'tap';
import {
  completeRun,
  createInitiative,
  createSecondProfile,
  createTask,
  createTestOrganization,
  endLease,
  expire,
  failingHierarchy,
  failRun,
  lastRequest,
  NO_REPLANS,
  retryTask,
  runNext,
  statuses,
  taskRow,
} from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSession, openSql } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

scenario('a failure fails its ancestors, cancels what is open beside it, and all of them remember it', async (test) => {
  const org = await createTestOrganization(sql);
  const tree = await failingHierarchy(sql, org);
  const run = await runNext(sql, org);
  const beside = await runNext(sql, org);
  test.same([run.taskId, beside.taskId], [tree.failing, tree.uncle]);
  await failRun(sql.api, run, { code: 'no_paper' });
  test.same(await statuses(sql, org, tree), {
    root: 'failed',
    done: 'completed',
    middle: 'failed',
    failing: 'failed',
    sibling: 'cancelled',
    after: 'cancelled',
    uncle: 'cancelled',
  });
  for (const id of [tree.root, tree.middle, tree.failing, tree.sibling, tree.after, tree.uncle]) {
    test.match(await taskRow(sql, org, id), { failure_origin_id: tree.failing, phase: 'closed' });
  }
  test.match(await taskRow(sql, org, tree.failing), { error: { code: 'no_paper' } });
  test.match(await taskRow(sql, org, tree.root), { error: { code: 'child_failed', taskId: tree.failing } });
  test.same(await completeRun(sql.api, beside), { status: 'cancelled' }, 'what ran beside it reports a cancelled run');
});

scenario('leases that end fail the hierarchy as a reported failure does', async (test) => {
  const org = await createTestOrganization(sql);
  const tree = await failingHierarchy(sql, org);
  const run = await runNext(sql, org);
  await endLease(sql, run);
  test.equal(await expire(sql.jobs, run, { maxAttempts: 1 }), 'expired');
  test.match(await statuses(sql, org, tree), { root: 'failed', failing: 'failed', sibling: 'cancelled' });
  test.match(await taskRow(sql, org, tree.failing), { error: { code: 'run_lease_expired' } });
});

scenario('a failure and the completion of the last sibling at once', async (test) => {
  const org = await createTestOrganization(sql);
  const second = await createSecondProfile(sql, org);
  const { root } = await createInitiative(sql, org, [], NO_REPLANS);
  const one = (await createTask(sql, org, { parentId: root })).id;
  const two = (await createTask(sql, second, { parentId: root })).id;
  const [first, other] = [await runNext(sql, org), await runNext(sql, org)];
  const [a, b] = [await openSession(test, sql), await openSession(test, sql)];
  await a.begin();
  await completeRun(a, first);
  const failing = failRun(b, other);
  await b.waits();
  await a.commit();
  test.same(await failing, { status: 'failed' });
  test.same(await statuses(sql, org, { root, one, two }), { root: 'failed', one: 'completed', two: 'failed' });
  await retryTask(sql.api, org, two);
  test.same(await statuses(sql, org, { root, one, two }), { root: 'blocked', one: 'completed', two: 'pending' });
  test.match(await lastRequest(sql, org, two), { state: 'published', attempt: 0 });
});
