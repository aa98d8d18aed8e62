import t from 'tap';
import { functionText } from '../../../engine/db/function_text.ts';
import {
  claimNext,
  completeEvaluated,
  completeRun,
  createTestOrganization,
  evaluationOf,
  openItems,
  pull,
  recordOutput,
  retryTask,
  runNew,
  runNext,
  taskRow,
  wakeTasks,
} from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { type JsonObject, openSql } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

async function runRow(runId: string): Promise<JsonObject> {
  const { rows } = await sql.owner.query('select * from app.runs where id = $1', [runId]);
  return rows[0];
}

const criteria = {
  acceptanceCriteria: [{ kind: 'output_file', path: 'report.json', checks: [] }],
};
const failed = {
  criterionIndex: 0,
  evaluator: 'backend',
  status: 'failed',
  summary: 'The total is wrong',
  evidence: [],
};
const passed = { criterionIndex: 0, evaluator: 'backend', status: 'passed', summary: 'As it should be', evidence: [] };
const done = { kind: 'completed', summary: '', artifacts: [{ path: 'report.json' }] };

const completeWith = (run: Parameters<typeof completeRun>[1], checks: readonly JsonObject[]) =>
  completeEvaluated(sql.api, run, checks, { result: done });

scenario('a result with criteria is not committed without the checks that belong to its bytes', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org, { spec: criteria });
  await recordOutput(sql.api, run, 'report.json', 'key-1');
  const first = evaluationOf(await completeRun(sql.api, run, { result: done }));
  test.match(first, {
    digest: /^[0-9a-f]{64}$/,
    criteria: criteria.acceptanceCriteria,
    outputs: [{ path: 'report.json', storageKey: 'key-1', size: 3 }],
  });
  test.match(await taskRow(sql, org, run.taskId), { status: 'running' });
  await recordOutput(sql.api, run, 'report.json', 'key-2');
  const stale = { result: done, checks: [passed], evaluationDigest: first.digest };
  const second = evaluationOf(await completeRun(sql.api, run, stale));
  test.not(second.digest, first.digest, 'checks of other bytes do not count');
  test.match(await taskRow(sql, org, run.taskId), { status: 'running' });
  const result = await completeRun(sql.api, run, { result: done, checks: [passed], evaluationDigest: second.digest });
  test.same(result, { status: 'succeeded' });
  test.match(await taskRow(sql, org, run.taskId), {
    status: 'completed',
    result: { completion: { disposition: 'passed', checks: [passed] } },
  });
});

scenario('a criterion of an unknown kind decides nothing', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org, { spec: { acceptanceCriteria: [{ kind: 'display', text: 'Be nice' }] } });
  test.same(await completeRun(sql.api, run), { status: 'succeeded' });
});

scenario(
  'a contract that fails once makes the task ready again with the failures, the second time a person is asked',
  async (test) => {
    const org = await createTestOrganization(sql);
    const run = await runNew(sql, org, { spec: criteria });
    await recordOutput(sql.api, run, 'report.json');
    test.same(await completeWith(run, [passed, failed]), { status: 'failed' });
    test.match(await runRow(run.runId), {
      status: 'failed',
      error: { code: 'acceptance_failed', retryable: true },
      output: { result: { completion: { disposition: 'failed', checks: [passed, failed] } } },
    });
    test.match(await taskRow(sql, org, run.taskId), {
      status: 'pending',
      phase: 'execute',
      contract: { failures: 1, runId: run.runId, checks: [failed] },
    });
    test.same(await openItems(sql, org, run.taskId), []);
    test.same(await completeRun(sql.api, run, { result: done }), { status: 'failed' }, 'sent again');

    const second = await runNext(sql, org);
    test.equal(second.taskId, run.taskId);
    test.equal(second.attempt, 1, 'of a new request');
    await recordOutput(sql.api, second, 'report.json');
    test.same(await completeWith(second, [failed]), { status: 'failed' });
    const [item] = await openItems(sql, org, run.taskId);
    test.match(item, {
      kind: 'question',
      purpose: 'repair',
      blocking: true,
      body: 'The total is wrong',
      run_id: second.runId,
    });
    test.match(await taskRow(sql, org, run.taskId), {
      status: 'blocked',
      blockers: [{ kind: 'human', inboxItemId: item?.['id'] }],
      contract: { failures: 2, runId: second.runId },
      agent_run_count: 2,
    });
    test.same(await pull(sql.api, { organizationIds: [org.organizationId] }), []);
  },
);

scenario("the owner's retry reopens a repair block, and the count of failures starts again", async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org, { spec: criteria });
  for (const next of [run, undefined]) {
    const held = next ?? (await runNext(sql, org));
    await recordOutput(sql.api, held, 'report.json');
    await completeWith(held, [failed]);
  }
  test.match(await taskRow(sql, org, run.taskId), { status: 'blocked' });
  await retryTask(sql.api, org, run.taskId);
  test.match(await taskRow(sql, org, run.taskId), { status: 'pending', contract: null, blockers: [] });
  test.same(await openItems(sql, org, run.taskId), []);
  const third = await runNext(sql, org);
  await recordOutput(sql.api, third, 'report.json');
  await completeWith(third, [failed]);
  test.match(await taskRow(sql, org, run.taskId), { status: 'pending', contract: { failures: 1 } });
});

scenario('a result that waits makes the task wait until the time, and then ready', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  const until = '2099-01-01T00:00:00.000Z';
  test.same(await completeRun(sql.api, run, { result: { kind: 'waiting', until, reason: 'The bank is closed' } }), {
    status: 'succeeded',
  });
  test.match(await taskRow(sql, org, run.taskId), {
    status: 'waiting',
    phase: 'execute',
    waiting_until: new Date(until),
    waiting_reason: 'The bank is closed',
    active_run_id: null,
  });
  await sql.owner.query(`update app.tasks set waiting_until = clock_timestamp() where id = $1`, [run.taskId]);
  const { rows } = await sql.jobs.query(`select * from ${functionText('dispatch_due', {})}`);
  test.match(
    rows.filter((row) => row.organization_id === org.organizationId),
    [{ kind: 'wake', ids: [run.taskId] }],
  );
  await wakeTasks(sql, org, [run.taskId]);
  test.match(await taskRow(sql, org, run.taskId), { status: 'pending', waiting_until: null, waiting_reason: null });
  test.equal((await claimNext(sql, org)).task.id, run.taskId);
});

scenario('waiting for a time that is over makes the task ready at once', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  await completeRun(sql.api, run, { result: { kind: 'waiting', until: '2020-01-01T00:00:00Z', reason: 'x' } });
  test.match(await taskRow(sql, org, run.taskId), { status: 'pending' });
});

scenario('a result that needs input blocks the task with the question; a retry takes it back', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org, { title: 'Order paper' });
  const result = { kind: 'needs_input', question: 'Which colour?', options: ['white', 'blue'] };
  test.same(await completeRun(sql.api, run, { result }), { status: 'succeeded' });
  const [item] = await openItems(sql, org, run.taskId);
  test.match(item, {
    kind: 'question',
    purpose: 'needs_input',
    title: 'Question about: Order paper',
    body: 'Which colour?',
    options: ['white', 'blue'],
    blocking: true,
  });
  test.match(await taskRow(sql, org, run.taskId), {
    status: 'blocked',
    blockers: [{ kind: 'human', inboxItemId: item?.['id'] }],
  });
  await retryTask(sql.api, org, run.taskId);
  test.match(await taskRow(sql, org, run.taskId), { status: 'pending' });
});
