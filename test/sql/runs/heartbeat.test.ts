import t from 'tap';
import {
  appendLogs,
  cancelTask,
  createTestOrganization,
  expire,
  heartbeat,
  lastRequest,
  logEntry,
  markRunning,
  runNew,
} from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSql } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

scenario('a heartbeat renews the lease by what the backend says and answers the status of the run', async (test) => {
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

scenario('after a cancel a heartbeat says cancelling and no longer renews', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  await cancelTask(sql.api, org, run.taskId);
  const before = await lastRequest(sql, org, run.taskId);
  test.same(await heartbeat(sql.api, run, 500), { status: 'cancelling' });
  test.same(await lastRequest(sql, org, run.taskId), before);
  test.same(await markRunning(sql.api, run), { status: 'cancelling' });
  test.same(await appendLogs(sql.api, run, [logEntry(1)]), { status: 'cancelling' }, 'its logs are kept');
});
