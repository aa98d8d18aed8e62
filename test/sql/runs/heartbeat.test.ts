import t from 'tap';
import {
  appendLogs,
  cancelTask,
  completeRun,
  createTestOrganization,
  expire,
  failRun,
  heartbeat,
  lastRequest,
  logEntry,
  markRunning,
  runNew,
} from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSql, refusal } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

scenario('a heartbeat renews the lease by what the backend says and returns the status of the run', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  test.same(await heartbeat(sql.api, run, 120), { status: 'starting' });
  await markRunning(sql.api, run);
  test.same(await heartbeat(sql.api, run, 120), { status: 'running' });
  const { rows } = await sql.owner.query(
    `select extract(epoch from lease_expires_at - clock_timestamp())::float as left from app.run_requests where id = $1`,
    [run.runRequestId],
  );
  const left = Number(rows[0]?.left);
  test.ok(left > 110 && left <= 120);
  test.equal(await expire(sql.jobs, run), 'unchanged', 'a sweep that comes too early changes nothing');
});

/** How long the lease lasts, counted from the cancel. */
async function leaseAfterCancel(runRequestId: string): Promise<number> {
  const { rows } = await sql.owner.query(
    `select extract(epoch from lease_expires_at - cancel_requested_at)::float as lasts from app.run_requests where id = $1`,
    [runRequestId],
  );
  return Number(rows[0]?.lasts);
}

scenario('after a cancel a heartbeat says cancelling, and renews up to the grace after the request', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  await cancelTask(sql.api, org, run.taskId);
  test.same(await heartbeat(sql.api, run, 120, 300), { status: 'cancelling' });
  const renewed = await leaseAfterCancel(run.runRequestId);
  test.ok(renewed >= 120 && renewed < 130, `renewed to ${renewed} s`);
  test.same(await heartbeat(sql.api, run, 500, 300), { status: 'cancelling' });
  test.equal(await leaseAfterCancel(run.runRequestId), 300, 'and no further');
  const before = await lastRequest(sql, org, run.taskId);
  test.same(await heartbeat(sql.api, run, 10, 300), { status: 'cancelling' });
  test.same(await heartbeat(sql.api, run, 500, 0), { status: 'cancelling' });
  test.same(await lastRequest(sql, org, run.taskId), before, 'nor is it cut short');
  test.same(await appendLogs(sql.api, run, [logEntry(1)]), { status: 'cancelling' }, 'its logs are kept');
});

scenario('a run that reports within the grace, long after its lease of then, keeps its usage', async (test) => {
  const org = await createTestOrganization(sql);
  const usage = { inputTokens: 10, outputTokens: 20, toolCalls: 3, costMinorUnits: 7 };
  for (const finish of [completeRun, failRun]) {
    const run = await runNew(sql, org);
    await cancelTask(sql.api, org, run.taskId);
    await sql.owner.query(
      `update app.run_requests set lease_expires_at = clock_timestamp() + interval '1 second',
         cancel_requested_at = clock_timestamp() - interval '100 seconds' where id = $1`,
      [run.runRequestId],
    );
    test.same(await heartbeat(sql.api, run), { status: 'cancelling' });
    const lasts = await leaseAfterCancel(run.runRequestId);
    test.ok(lasts >= 160 && lasts < 170, `${lasts} s`);
    test.equal(await expire(sql.jobs, run), 'unchanged');
    test.same(await finish(sql.api, run, { report: { usage } }), { status: 'cancelled' });
    const { rows } = await sql.owner.query('select status, input_tokens from app.runs where id = $1', [run.runId]);
    test.same(rows, [{ status: 'cancelled', input_tokens: '10' }]);
  }
});

scenario('marking a cancelled run as running records its harness and returns cancelling', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  await cancelTask(sql.api, org, run.taskId);
  test.same(await markRunning(sql.api, run, 'm-1'), { status: 'cancelling' });
  test.same(await markRunning(sql.api, run, 'm-1'), { status: 'cancelling' }, 'sent again');
  test.match(await refusal(markRunning(sql.api, run, 'm-2')), { status: 409, reason: 'differs' });
  const { rows } = await sql.owner.query('select status, harness, model from app.runs where id = $1', [run.runId]);
  test.same(rows, [{ status: 'cancelled', harness: 'h', model: 'm-1' }]);

  const early = await runNew(sql, org);
  await markRunning(sql.api, early, 'm-1');
  await cancelTask(sql.api, org, early.taskId);
  test.same(await markRunning(sql.api, early, 'm-1'), { status: 'cancelling' }, 'sent again after the cancel');
});
