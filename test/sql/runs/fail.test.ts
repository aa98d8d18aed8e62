import t from 'tap';
import {
  cancelTask,
  createTestOrganization,
  failRun,
  lastRequest,
  openItems,
  patchTask,
  publishNow,
  requestRows,
  runNew,
  runNext,
  taskRow,
} from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { type JsonObject, openSql, refusal } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const differs = { status: 409, code: 'run_lease_expired', reason: 'differs', raised: true };

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

scenario('a retryable failure publishes the request again after a backoff, with the attempt counted', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  test.same(await failRun(sql.api, run, { retryable: true, report }), { status: 'failed' });
  test.match(await runRow(run.runId), {
    status: 'failed',
    error: { code: 'broken', message: 'It broke', retryable: true },
    input_tokens: '10',
    output: null,
  });
  test.match(await taskRow(sql, org, run.taskId), { status: 'pending', active_run_id: null, error: null });
  test.match(await lastRequest(sql, org, run.taskId), {
    id: run.runRequestId,
    state: 'queued',
    attempt: 1,
    parked: false,
  });
  test.same(await failRun(sql.api, run, { retryable: true, report }), { status: 'failed' }, 'sent again');
  test.match(await refusal(failRun(sql.api, run, { retryable: true, bodyHash: 'other' })), differs);
  test.match(await lastRequest(sql, org, run.taskId), { state: 'queued', attempt: 1 });
  await publishNow(sql, org, run.taskId);
  test.equal((await runNext(sql, org)).attempt, 2);
});

scenario('a failure that is not retryable fails the task', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  test.same(await failRun(sql.api, run), { status: 'failed' });
  test.match(await taskRow(sql, org, run.taskId), {
    status: 'failed',
    phase: 'closed',
    failure_origin_id: run.taskId,
    error: { code: 'broken', retryable: false },
  });
  test.match(await requestRows(sql, org, run.taskId), [{ state: 'finished', attempt: 1 }]);
});

scenario('attempts end at the smaller of the limit of the service and that of the task', async (test) => {
  const org = await createTestOrganization(sql);
  for (const [service, own, allowed] of [
    [3, 2, 2],
    [2, 3, 2],
    [1, 3, 1],
  ] as const) {
    const first = await runNew(sql, org, { spec: { budget: { maxAttemptsPerPhase: own } } });
    let run = first;
    for (let attempt = 1; attempt < allowed; attempt += 1) {
      await failRun(sql.api, run, { retryable: true, maxAttempts: service });
      test.match(await taskRow(sql, org, first.taskId), { status: 'pending' });
      await publishNow(sql, org, first.taskId);
      run = await runNext(sql, org);
    }
    test.equal(run.attempt, allowed);
    await failRun(sql.api, run, { retryable: true, maxAttempts: service });
    test.match(await taskRow(sql, org, first.taskId), { status: 'failed', agent_run_count: allowed });
  }
});

scenario('the backoff doubles, is jittered between its half and all, and is capped', async (test) => {
  const org = await createTestOrganization(sql);
  for (const attempt of [1, 2, 3, 6, 40]) {
    const delays: number[] = [];
    for (let time = 0; time < 8; time += 1) {
      const run = await runNew(sql, org, { spec: { budget: { maxAttemptsPerPhase: 100 } } });
      // The attempts before it, without living through them; put back so that it counts its one run again.
      await sql.owner.query('update app.run_requests set attempt = $2 where id = $1', [run.runRequestId, attempt]);
      await failRun(sql.api, run, { retryable: true, maxAttempts: 100, backoffSeconds: 10, backoffMaxSeconds: 100 });
      const { rows } = await sql.owner.query<{ delay: number }>(
        `update app.run_requests r set attempt = 1 from app.runs u where r.id = $1 and u.id = r.run_id
         returning extract(epoch from r.due_at - u.finished_at)::float as delay`,
        [run.runRequestId],
      );
      delays.push(rows[0]?.delay ?? Number.NaN);
      await cancelTask(sql.api, org, run.taskId);
    }
    const full = Math.min(10 * 2 ** (attempt - 1), 100);
    for (const delay of delays)
      test.ok(delay >= full / 2 && delay <= full + 1, `${delay} of ${full}, attempt ${attempt}`);
    test.ok(Math.max(...delays) - Math.min(...delays) > full / 50, 'jittered');
  }
});

scenario(
  'a run that used up the budget of its task leaves a question; raising the budget by a patch answers it',
  async (test) => {
    const org = await createTestOrganization(sql);
    const run = await runNew(sql, org, { spec: { budget: { maxAgentRuns: 1 } } });
    await failRun(sql.api, run, { retryable: true });
    test.match(await taskRow(sql, org, run.taskId), { status: 'blocked', blockers: [{ kind: 'budget' }] });
    test.match(await requestRows(sql, org, run.taskId), [{ state: 'cancelled' }]);
    const [item] = await openItems(sql, org, run.taskId);
    test.match(item, { kind: 'question', purpose: 'budget', options: ['raise', 'cancel'] });
    await patchTask(sql, org, run.taskId, { title: 'Renamed' });
    test.equal((await openItems(sql, org, run.taskId)).length, 1, 'another patch does not');
    const raised = await patchTask(sql, org, run.taskId, { spec: { budget: { maxAgentRuns: 2 } } });
    test.match(raised, { status: 'pending', blockers: [] });
    const { rows } = await sql.owner.query('select status, response from app.human_inbox_items where id = $1', [
      item?.['id'],
    ]);
    test.same(rows, [{ status: 'responded', response: 'raise' }]);
    await runNext(sql, org);
    test.match(await taskRow(sql, org, run.taskId), {
      status: 'running',
      agent_run_count: 2,
      consumed_agent_run_count: 2,
    });
  },
);
