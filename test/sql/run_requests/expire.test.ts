import t from 'tap';
import { functionText } from '../../../engine/db/function_text.ts';
import {
  claimNext,
  completeRun,
  createTask,
  createTestOrganization,
  dispatchAll,
  dueIn,
  endLease,
  expire,
  heartbeat,
  lastRequest,
  makeDue,
  publish,
  publishNow,
  pull,
  requestRows,
  runNew,
  runNext,
  setWorkDispatch,
  startRun,
  taskRow,
} from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSession, openSql } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

scenario('a claim that nobody starts is handed out again, and nothing is counted', async (test) => {
  const org = await createTestOrganization(sql);
  const task = await createTask(sql, org);
  const claim = await claimNext(sql, org);
  test.same(await dueIn(sql, org), {});
  test.equal(await expire(sql.jobs, claim), 'unchanged', 'not before its end');
  await endLease(sql, claim);
  test.same(await dueIn(sql, org), { expire: [claim.runRequestId] });
  test.same(await pull(sql.api, { organizationIds: [org.organizationId] }), [], 'nor before the end is found');
  test.equal(await expire(sql.jobs, claim), 'republished');
  test.equal(await expire(sql.jobs, claim), 'unchanged', 'once');
  test.match(await lastRequest(sql, org, task.id), { state: 'published', attempt: 0, fence: 1 });
  const again = await claimNext(sql, org);
  test.equal(again.runRequestId, claim.runRequestId);
  test.equal((await startRun(sql.api, again)).attempt, 1);
});

scenario('a run whose lease ends is expired, and its request goes on with the attempt counted', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  await endLease(sql, run);
  test.same(await dueIn(sql, org), { expire: [run.runRequestId] });
  test.equal(await expire(sql.jobs, run, { backoffSeconds: 1 }), 'expired');
  test.equal(await expire(sql.jobs, run), 'unchanged', 'once');
  const { rows } = await sql.owner.query(
    `select u.status, u.error, u.finished_at is not null as over, r.state, r.attempt,
       r.due_at - clock_timestamp() < interval '1 second' as soon
     from app.runs u join app.run_requests r on r.id = u.run_request_id where u.id = $1`,
    [run.runId],
  );
  test.match(rows, [
    {
      status: 'expired',
      error: { code: 'run_lease_expired', retryable: true },
      over: true,
      state: 'queued',
      attempt: 1,
      soon: true,
    },
  ]);
  test.match(await taskRow(sql, org, run.taskId), { status: 'pending', active_run_id: null });
  test.same(await pull(sql.api, { organizationIds: [org.organizationId] }), [], 'after its backoff');
  await publishNow(sql, org, run.taskId);
  const second = await runNext(sql, org);
  test.equal(second.attempt, 2);
  test.not(second.runId, run.runId);
  test.same(await completeRun(sql.api, second), { status: 'succeeded' });
});

scenario('a task whose attempts all expire fails', async (test) => {
  const org = await createTestOrganization(sql);
  let run = await runNew(sql, org);
  for (let attempt = 1; attempt <= 3; attempt += 1) {
    test.equal(run.attempt, attempt);
    await endLease(sql, run);
    await expire(sql.jobs, run);
    if (attempt === 3) break;
    await publishNow(sql, org, run.taskId);
    run = await runNext(sql, org);
  }
  test.match(await taskRow(sql, org, run.taskId), {
    status: 'failed',
    agent_run_count: 3,
    error: { code: 'run_lease_expired' },
  });
  test.match(await requestRows(sql, org, run.taskId), [{ state: 'finished', attempt: 3 }]);
});

scenario('a heartbeat that comes before the sweep keeps the run', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  const [holder, sweep] = [await openSession(test, sql), await openSession(test, sql, 'runner_jobs')];
  await holder.begin();
  await heartbeat(holder, run, 60);
  const sweeping = expire(sweep, run);
  await sweep.waits();
  await holder.commit();
  test.equal(await sweeping, 'unchanged');
  test.match(await taskRow(sql, org, run.taskId), { status: 'running' });
});

scenario('two sweeps of one lease at once: one moves it', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  await endLease(sql, run);
  const outcomes = await Promise.all(Array.from({ length: 4 }, () => expire(sql.jobs, run)));
  test.same(outcomes.sort(), ['expired', 'unchanged', 'unchanged', 'unchanged']);
  test.match(await lastRequest(sql, org, run.taskId), { attempt: 1, state: 'queued' });
});

scenario('the sweep of another organization moves nothing', async (test) => {
  const org = await createTestOrganization(sql);
  const foreign = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  await endLease(sql, run);
  test.equal(await expire(sql.jobs, { ...run, organizationId: foreign.organizationId }), 'unchanged');
  test.match(await publish(sql.jobs, foreign, [run.runRequestId]), { published: 0 });
  test.match(await lastRequest(sql, org, run.taskId), { state: 'started' });
  await expire(sql.jobs, run);
});

scenario('what another transaction holds is left for the next round, without waiting', async (test) => {
  const org = await createTestOrganization(sql);
  const runs = [await runNew(sql, org), await runNew(sql, org)];
  for (const run of runs) {
    await endLease(sql, run);
    await expire(sql.jobs, run);
    await makeDue(sql, org, run.taskId);
  }
  const ids = runs.map((run) => run.runRequestId);
  const holder = await openSession(test, sql, 'owner');
  await holder.begin();
  await holder.query('select from app.run_requests where id = $1 for update', [ids[0]]);
  test.match(await publish(sql.jobs, org, ids), { published: 1 });
  await holder.rollback();
  test.match(await publish(sql.jobs, org, ids), { published: 1 });
});

scenario('an expired run of a stopped organization stays queued until the resume', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  await setWorkDispatch(sql.api, org, true);
  await endLease(sql, run);
  await expire(sql.jobs, run);
  test.match(await lastRequest(sql, org, run.taskId), { state: 'queued', parked: true });
  await makeDue(sql, org, run.taskId);
  test.same(await dueIn(sql, org), {}, 'and is left out of the sweep');
  test.match(await setWorkDispatch(sql.api, org, false), { published_run_requests: 1 });
  test.equal((await runNext(sql, org)).attempt, 2);
});

scenario('one round takes at most what it was asked for, of every kind', async (test) => {
  const org = await createTestOrganization(sql, { limits: { maxConcurrentRuns: 9 }, maxConcurrentRuns: 9 });
  for (let n = 0; n < 3; n += 1) {
    await createTask(sql, org);
    await endLease(sql, await claimNext(sql, org));
  }
  // What other tests left may become due meanwhile, of other sorts.
  const { rows } = await sql.jobs.query(
    `select cardinality(ids) as count from ${functionText('dispatch_due', { rows: '2' })} where kind = 'expire'`,
  );
  test.same(rows, [{ count: 2 }]);
  await dispatchAll(sql);
});
