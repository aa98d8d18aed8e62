import { randomUUID } from 'node:crypto';
import t from 'tap';
import {
  appendLogs,
  checkLease,
  claimNext,
  completeRun,
  createTask,
  createTestOrganization,
  endLease,
  expire,
  failRun,
  heartbeat,
  logEntry,
  markRunning,
  publishNow,
  type Run,
  recordOutput,
  releaseClaim,
  runNew,
  startRun,
  taskRow,
} from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSession, openSql, refusal } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const lost = { status: 409, code: 'run_lease_expired', reason: 'lease_lost', raised: true };
type Holder = Pick<Run, 'organizationId' | 'runRequestId' | 'runId' | 'leaseToken'>;

/** Everything that a holder can send, by name. */
const calls: Readonly<Record<string, (run: Holder) => Promise<unknown>>> = {
  start: (run) => startRun(sql.api, run, { runId: run.runId }),
  'start of a new run': (run) => startRun(sql.api, run),
  running: (run) => markRunning(sql.api, run),
  heartbeat: (run) => heartbeat(sql.api, run),
  logs: (run) => appendLogs(sql.api, run, [logEntry(900)]),
  'output, the look before': (run) => recordOutput(sql.api, run, 'late.txt', null),
  output: (run) => recordOutput(sql.api, run, 'late.txt'),
  inputs: (run) => checkLease(sql.api, run),
  complete: (run) => completeRun(sql.api, run),
  fail: (run) => failRun(sql.api, run),
};

/** All that the calls of a holder could change. */
async function everything(organizationId: string): Promise<unknown> {
  const tables = [
    'tasks',
    'run_requests',
    'runs',
    'run_logs',
    'run_outputs',
    'human_inbox_items',
    'dispatch',
    'dispatch_lanes',
  ];
  const found: Record<string, unknown> = {};
  for (const table of tables) {
    const { rows } = await sql.owner.query(
      `select to_jsonb(r) - 'served_at' as row from app.${table} r where organization_id = $1 order by to_jsonb(r)::text`,
      [organizationId],
    );
    found[table] = rows;
  }
  return found;
}

scenario('an expired holder changes nothing by any call, whether the end was noticed or not', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  await endLease(sql, run);
  const before = await everything(org.organizationId);
  for (const [name, send] of Object.entries(calls)) test.match(await refusal(send(run)), lost, name);
  test.same(await everything(org.organizationId), before, 'unnoticed');
  test.equal(await expire(sql.jobs, run), 'expired');
  const after = await everything(org.organizationId);
  for (const [name, send] of Object.entries(calls)) test.match(await refusal(send(run)), lost, name);
  test.same(await everything(org.organizationId), after, 'noticed');
});

scenario('nor does it after the request went to the same worker again, claimed or started', async (test) => {
  const org = await createTestOrganization(sql);
  await createTask(sql, org);
  const old = await startRun(sql.api, await claimNext(sql, org, 'w-1'), { workerId: 'w-1' });
  await endLease(sql, old);
  await expire(sql.jobs, old);
  await publishNow(sql, org, old.taskId);
  const claim = await claimNext(sql, org, 'w-1');
  test.equal(claim.runRequestId, old.runRequestId);
  test.equal(claim.attempt, 2);
  const claimed = await everything(org.organizationId);
  for (const [name, send] of Object.entries(calls)) test.match(await refusal(send(old)), lost, name);
  test.same(await everything(org.organizationId), claimed, 'claimed');
  const run = await startRun(sql.api, claim, { workerId: 'w-1' });
  const started = await everything(org.organizationId);
  for (const [name, send] of Object.entries(calls)) test.match(await refusal(send(old)), lost, name);
  // Its own run with the new token, and the new run with its old one.
  for (const mixed of [
    { ...run, runId: old.runId },
    { ...run, leaseToken: old.leaseToken },
  ]) {
    for (const [name, send] of Object.entries(calls)) {
      if (!name.startsWith('start')) test.match(await refusal(send(mixed)), lost, name);
    }
  }
  test.same(await everything(org.organizationId), started, 'started');
  test.same(await completeRun(sql.api, run), { status: 'succeeded' });
});

scenario('a run of another organization, an unknown run and an unstarted claim take no call', async (test) => {
  const org = await createTestOrganization(sql);
  const foreign = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  await createTask(sql, org);
  const claim = await claimNext(sql, org);
  for (const wrong of [
    { ...run, leaseToken: `${run.leaseToken}.more` },
    { ...run, organizationId: foreign.organizationId },
    { ...run, runId: randomUUID() },
    { ...run, leaseToken: 'nonsense' },
    {
      organizationId: org.organizationId,
      runRequestId: claim.runRequestId,
      runId: randomUUID(),
      leaseToken: claim.leaseToken,
    },
  ]) {
    for (const [name, send] of Object.entries(calls)) {
      if (!name.startsWith('start')) test.match(await refusal(send(wrong)), lost, name);
    }
  }
  test.same(await releaseClaim(sql.api, run), { released: false }, 'a started run is not given back as a claim');
});

scenario('a call that waited for a lock until the lease was over is refused', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  const [sweep, holder] = [await openSession(test, sql, 'owner'), await openSession(test, sql)];
  await sweep.begin();
  await sweep.query('select from app.run_requests where id = $1 for update', [run.runRequestId]);
  const beat = refusal(heartbeat(holder, run));
  await holder.waits();
  await sweep.query(`update app.run_requests set lease_expires_at = clock_timestamp() where id = $1`, [
    run.runRequestId,
  ]);
  await sweep.commit();
  test.match(await beat, lost);
});

scenario('a call that waited for a row that did not change is judged by the clock after the wait', async (test) => {
  const org = await createTestOrganization(sql);
  await createTask(sql, org);
  const run = await startRun(sql.api, await claimNext(sql, org));
  const [blocker, holder] = [await openSession(test, sql, 'owner'), await openSession(test, sql)];
  await blocker.begin();
  // The lease ends while the row is locked, and nothing changes the row afterwards.
  await sql.owner.query(
    `update app.run_requests set lease_expires_at = clock_timestamp() + interval '150 milliseconds' where id = $1`,
    [run.runRequestId],
  );
  await blocker.query('select from app.run_requests where id = $1 for update', [run.runRequestId]);
  const complete = refusal(completeRun(holder, run));
  await holder.waits();
  await blocker.query(
    `do $$ begin while clock_timestamp() <= (select lease_expires_at from app.run_requests where id = '${run.runRequestId}')
     loop end loop; end $$`,
    [],
  );
  await blocker.commit();
  test.match(await complete, lost);
  test.match(await taskRow(sql, org, run.taskId), { status: 'running' });
});
