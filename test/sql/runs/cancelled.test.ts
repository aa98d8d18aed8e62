import t from 'tap';
import {
  appendLogs,
  cancelTask,
  claimNext,
  completeRun,
  createTask,
  createTestOrganization,
  endLease,
  expire,
  failRun,
  lastRequest,
  logEntry,
  pull,
  runNew,
  startRun,
  taskRow,
  updateProfile,
} from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { type JsonObject, openSession, openSql, refusal } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const lost = { status: 409, code: 'run_lease_expired', reason: 'lease_lost' };
async function runRow(runId: string): Promise<JsonObject> {
  const { rows } = await sql.owner.query('select * from app.runs where id = $1', [runId]);
  return rows[0];
}

const report = {
  usage: { inputTokens: 10, outputTokens: 20, toolCalls: 3, costMinorUnits: 7 },
  receipts: [{ kind: 'command', id: 'c', commandHash: '0', status: 'ok', exitCode: 0 }],
  harness: 'h-2',
  workspaceUri: null,
  logState: 'complete',
};

scenario('a result after a cancel keeps usage and logs alone, returns cancelled and frees the slot', async (test) => {
  for (const finish of [
    (run: Parameters<typeof completeRun>[1]) => completeRun(sql.api, run, { report }),
    (run: Parameters<typeof completeRun>[1]) => failRun(sql.api, run, { report, retryable: true }),
  ]) {
    const org = await createTestOrganization(sql, { limits: { maxConcurrentRuns: 1 } });
    const run = await runNew(sql, org);
    await createTask(sql, org);
    await cancelTask(sql.api, org, run.taskId);
    const cancelled = await taskRow(sql, org, run.taskId);
    test.match(cancelled, { status: 'cancelled', active_run_id: null });
    test.match(await runRow(run.runId), { status: 'cancelled' });
    test.same(await pull(sql.api, { organizationIds: [org.organizationId] }), [], 'the slot is held until it reports');
    await appendLogs(sql.api, run, [logEntry(1)]);
    test.same(await finish(run), { status: 'cancelled' });
    test.same(await finish(run), { status: 'cancelled' }, 'sent again');
    test.match(await runRow(run.runId), {
      status: 'cancelled',
      output: null,
      error: null,
      input_tokens: '10',
      log_count: 1,
      log_state: 'complete',
    });
    test.same(await taskRow(sql, org, run.taskId), cancelled, 'the task is as it was');
    test.equal((await pull(sql.api, { organizationIds: [org.organizationId] })).length, 1, 'the slot is free');
  }
});

scenario('a cancel that comes while a complete is at work finds the task completed', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  const [worker, person] = [await openSession(test, sql), await openSession(test, sql)];
  await worker.begin();
  await completeRun(worker, run);
  const late = refusal(cancelTask(person, org, run.taskId));
  await person.waits();
  await worker.commit();
  test.match(await late, { status: 409, code: 'state_conflict' });
  test.match(await taskRow(sql, org, run.taskId), { status: 'completed' });
});

scenario('a complete that comes while a cancel is at work is the report of a cancelled run', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  const [worker, person] = [await openSession(test, sql), await openSession(test, sql)];
  await person.begin();
  await cancelTask(person, org, run.taskId);
  const late = completeRun(worker, run, { report });
  await worker.waits();
  await person.commit();
  test.same(await late, { status: 'cancelled' });
  test.match(await taskRow(sql, org, run.taskId), { status: 'cancelled', result: null });
});

scenario('a complete and the expiry of its lease at once: the first to lock decides', async (test) => {
  const org = await createTestOrganization(sql);
  const [worker, sweep] = [await openSession(test, sql), await openSession(test, sql, 'runner_jobs')];
  const completed = await runNew(sql, org);
  await worker.begin();
  await completeRun(worker, completed);
  const sweeping = expire(sweep, completed);
  await sweep.waits();
  await worker.commit();
  test.equal(await sweeping, 'unchanged');
  test.match(await taskRow(sql, org, completed.taskId), { status: 'completed' });

  const expired = await runNew(sql, org);
  await endLease(sql, expired);
  await sweep.begin();
  test.equal(await expire(sweep, expired), 'expired');
  const completing = refusal(completeRun(worker, expired));
  await worker.waits();
  await sweep.commit();
  test.match(await completing, lost);
  test.match(await taskRow(sql, org, expired.taskId), { status: 'pending' });
});

scenario('a run that was cancelled and never reports holds its slot until its lease ends', async (test) => {
  const org = await createTestOrganization(sql, { limits: { maxConcurrentRuns: 1 } });
  const run = await runNew(sql, org);
  await createTask(sql, org);
  await cancelTask(sql.api, org, run.taskId);
  test.equal(await expire(sql.jobs, run), 'unchanged');
  await endLease(sql, run);
  test.equal(await expire(sql.jobs, run), 'cancelled');
  test.equal(await expire(sql.jobs, run), 'unchanged', 'once');
  test.match(await lastRequest(sql, org, run.taskId), { state: 'cancelled' });
  test.match(await refusal(completeRun(sql.api, run)), lost, 'a report that comes later still is lost');
  test.equal((await pull(sql.api, { organizationIds: [org.organizationId] })).length, 1);
});

scenario(
  'a task that is ready again before its cancelled run reports has a new request, which that report leaves alone',
  async (test) => {
    const org = await createTestOrganization(sql);
    const first = await runNew(sql, org);
    // Disabling and enabling the profile leaves the task ready while its old run has not reported.
    await updateProfile(sql.api, org, { status: 'disabled' });
    await updateProfile(sql.api, org, { status: 'enabled' });
    const second = await startRun(sql.api, await claimNext(sql, org));
    test.equal(second.taskId, first.taskId);
    test.not(second.runRequestId, first.runRequestId);
    test.same(await completeRun(sql.api, first, { report }), { status: 'cancelled' });
    test.match(await taskRow(sql, org, first.taskId), { status: 'running', active_run_id: second.runId });
    test.same(await completeRun(sql.api, second), { status: 'succeeded' });
    test.match(await taskRow(sql, org, first.taskId), { status: 'completed', agent_run_count: 2 });
  },
);
