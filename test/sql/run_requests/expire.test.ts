import t from 'tap';
import {
  cancelTask,
  claimNext,
  completeRun,
  createPlace,
  createTask,
  dispatchAll,
  endLease,
  expire,
  heartbeat,
  lastRequest,
  makeDue,
  type Place,
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
import { type Answer, openSession, openSql } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

/** What is due in the organization: ids by sort. */
async function due(place: Place): Promise<Answer> {
  const { rows } = await sql.jobs.query('select sort, ids from app.dispatch_due(1000) where organization_id = $1', [
    place.organizationId,
  ]);
  return Object.fromEntries(rows.map((row) => [row.sort, row.ids]));
}

scenario('a claim that nobody starts is handed out again, and nothing is counted', async (test) => {
  const place = await createPlace(sql);
  const task = await createTask(sql, place);
  const claim = await claimNext(sql, place);
  test.same(await due(place), {});
  test.equal(await expire(sql.jobs, claim), 'kept', 'not before its end');
  await endLease(sql, claim);
  test.same(await due(place), { expire: [claim.runRequestId] });
  test.same(await pull(sql.api, { organizationIds: [place.organizationId] }), [], 'nor before the end is found');
  test.equal(await expire(sql.jobs, claim), 'republished');
  test.equal(await expire(sql.jobs, claim), 'kept', 'once');
  test.match(await lastRequest(sql, place, task.id), { state: 'published', attempt: 0, fence: 1 });
  const again = await claimNext(sql, place);
  test.equal(again.runRequestId, claim.runRequestId);
  test.equal((await startRun(sql.api, again)).attempt, 1);
});

scenario('a run whose lease ends is expired, and its request goes on with the attempt counted', async (test) => {
  const place = await createPlace(sql);
  const run = await runNew(sql, place);
  await endLease(sql, run);
  test.same(await due(place), { expire: [run.runRequestId] });
  test.equal(await expire(sql.jobs, run, { backoffSeconds: 1 }), 'expired');
  test.equal(await expire(sql.jobs, run), 'kept', 'once');
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
  test.match(await taskRow(sql, place, run.taskId), { status: 'pending', active_run_id: null });
  test.same(await pull(sql.api, { organizationIds: [place.organizationId] }), [], 'after its backoff');
  await publishNow(sql, place, run.taskId);
  const second = await runNext(sql, place);
  test.equal(second.attempt, 2);
  test.not(second.runId, run.runId);
  test.same(await completeRun(sql.api, second), { status: 'succeeded' });
});

scenario('a task whose attempts all expire fails', async (test) => {
  const place = await createPlace(sql);
  let run = await runNew(sql, place);
  for (let attempt = 1; attempt <= 3; attempt += 1) {
    test.equal(run.attempt, attempt);
    await endLease(sql, run);
    await expire(sql.jobs, run);
    if (attempt === 3) break;
    await publishNow(sql, place, run.taskId);
    run = await runNext(sql, place);
  }
  test.match(await taskRow(sql, place, run.taskId), {
    status: 'failed',
    agent_run_count: 3,
    error: { code: 'run_lease_expired' },
  });
  test.match(await requestRows(sql, place, run.taskId), [{ state: 'finished', attempt: 3 }]);
});

scenario('a heartbeat that comes before the sweep keeps the run', async (test) => {
  const place = await createPlace(sql);
  const run = await runNew(sql, place);
  const [holder, sweep] = [await openSession(test, sql), await openSession(test, sql, 'runner_jobs')];
  await holder.begin();
  await heartbeat(holder, run, 60);
  const sweeping = expire(sweep, run);
  await sweep.waits();
  await holder.commit();
  test.equal(await sweeping, 'kept');
  test.match(await taskRow(sql, place, run.taskId), { status: 'running' });
});

scenario('two sweeps of one lease at once: one moves it', async (test) => {
  const place = await createPlace(sql);
  const run = await runNew(sql, place);
  await endLease(sql, run);
  const outcomes = await Promise.all(Array.from({ length: 4 }, () => expire(sql.jobs, run)));
  test.same(outcomes.sort(), ['expired', 'kept', 'kept', 'kept']);
  test.match(await lastRequest(sql, place, run.taskId), { attempt: 1, state: 'queued' });
});

scenario('the sweep of another organization moves nothing', async (test) => {
  const place = await createPlace(sql);
  const foreign = await createPlace(sql);
  const run = await runNew(sql, place);
  await endLease(sql, run);
  test.equal(await expire(sql.jobs, { ...run, organizationId: foreign.organizationId }), 'kept');
  test.same(await publish(sql.jobs, foreign, [run.runRequestId]), { published: 0 });
  test.match(await lastRequest(sql, place, run.taskId), { state: 'started' });
  await expire(sql.jobs, run);
});

scenario('a request is published when its backoff is over, and not before', async (test) => {
  const place = await createPlace(sql);
  const run = await runNew(sql, place);
  await endLease(sql, run);
  await expire(sql.jobs, run, { backoffSeconds: 100 });
  test.same(await due(place), {});
  test.same(await publish(sql.jobs, place, [run.runRequestId]), { published: 0 });
  await makeDue(sql, place, run.taskId);
  test.same(await due(place), { publish: [run.runRequestId] });
  test.same(await publish(sql.jobs, place, [run.runRequestId]), { published: 1 });
  test.same(await publish(sql.jobs, place, [run.runRequestId]), { published: 0 }, 'once');
  test.same(await due(place), {});
});

scenario('what another transaction holds is left for the next round, without waiting', async (test) => {
  const place = await createPlace(sql);
  const runs = [await runNew(sql, place), await runNew(sql, place)];
  for (const run of runs) {
    await endLease(sql, run);
    await expire(sql.jobs, run);
    await makeDue(sql, place, run.taskId);
  }
  const ids = runs.map((run) => run.runRequestId);
  const holder = await openSession(test, sql, 'owner');
  await holder.begin();
  await holder.query('select from app.run_requests where id = $1 for update', [ids[0]]);
  test.same(await publish(sql.jobs, place, ids), { published: 1 });
  await holder.rollback();
  test.same(await publish(sql.jobs, place, ids), { published: 1 });
});

scenario('a task that is scheduled becomes ready when its time has come', async (test) => {
  const place = await createPlace(sql);
  const task = await createTask(sql, place, { scheduledAt: '2099-01-01T00:00:00.000Z' });
  test.match(task, { status: 'blocked', blockers: [{ kind: 'schedule', until: '2099-01-01T00:00:00.000Z' }] });
  test.same(await due(place), {});
  await sql.owner.query('update app.tasks set scheduled_at = clock_timestamp() where id = $1', [task.id]);
  test.same(await due(place), { wake: [task.id] });
  await dispatchAll(sql);
  test.match(await taskRow(sql, place, task.id), { status: 'pending', blockers: [] });
  test.equal((await claimNext(sql, place)).task.id, task.id);
});

scenario('a scheduled task that also waits for something else is due once', async (test) => {
  const place = await createPlace(sql);
  const other = await createTask(sql, place);
  const task = await createTask(sql, place, { scheduledAt: '2099-01-01T00:00:00.000Z', dependsOn: [other.id] });
  await sql.owner.query('update app.tasks set scheduled_at = clock_timestamp() where id = $1', [task.id]);
  await dispatchAll(sql);
  test.match(await taskRow(sql, place, task.id), {
    status: 'blocked',
    blockers: [{ kind: 'dependency', taskId: other.id }],
  });
  test.same(await due(place), {});
});

scenario('waking a task before its time, or one that is over, changes nothing', async (test) => {
  const place = await createPlace(sql);
  const scheduled = await createTask(sql, place, { scheduledAt: '2099-01-01T00:00:00.000Z' });
  const over = await createTask(sql, place);
  await cancelTask(sql.api, place, over.id);
  const before = [await taskRow(sql, place, scheduled.id), await taskRow(sql, place, over.id)];
  await sql.jobs.query('select app.tasks_wake($1, $2)', [place.organizationId, [scheduled.id, over.id]]);
  test.same([await taskRow(sql, place, scheduled.id), await taskRow(sql, place, over.id)], before);
});

scenario('an expired run of a stopped organization stays queued until the resume', async (test) => {
  const place = await createPlace(sql);
  const run = await runNew(sql, place);
  await setWorkDispatch(sql.api, place, true);
  await endLease(sql, run);
  await expire(sql.jobs, run);
  test.match(await lastRequest(sql, place, run.taskId), { state: 'queued', parked: true });
  await makeDue(sql, place, run.taskId);
  test.same(await due(place), {}, 'and is left out of the sweep');
  test.match(await setWorkDispatch(sql.api, place, false), { published_run_requests: 1 });
  test.equal((await runNext(sql, place)).attempt, 2);
});

scenario('one round takes at most what it was asked for, of every sort', async (test) => {
  const place = await createPlace(sql, { limits: { maxConcurrentRuns: 9 }, maxConcurrentRuns: 9 });
  for (let n = 0; n < 3; n += 1) {
    await createTask(sql, place);
    await endLease(sql, await claimNext(sql, place));
  }
  // What other tests left may become due meanwhile, of other sorts.
  const { rows } = await sql.jobs.query(
    `select cardinality(ids) as count from app.dispatch_due(2) where sort = 'expire'`,
  );
  test.same(rows, [{ count: 2 }]);
  await dispatchAll(sql);
});
