import t from 'tap';
import {
  completeRun,
  createTestOrganization,
  failRun,
  recordOutput,
  requestRows,
  runNew,
  taskRow,
} from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { type JsonObject, openSession, openSql, refusal } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const lost = { status: 409, code: 'run_lease_expired', reason: 'lease_lost' };
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

scenario('a completed run closes its task with the output as it was stored', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  await recordOutput(sql.api, run, 'out/a.txt', 'key-a');
  await recordOutput(sql.api, run, 'scratch.txt', 'key-b');
  const completed = await completeRun(sql.api, run, {
    result: {
      kind: 'completed',
      summary: 'All done',
      artifacts: [{ path: 'out/a.txt', name: 'A' }],
    },
    report,
  });
  test.same(completed, { status: 'succeeded' });
  const artifact = {
    kind: 'file',
    runId: run.runId,
    path: 'out/a.txt',
    name: 'A',
    uri: `org://${org.organizationId}/runs/${run.runId}/outputs/out/a.txt`,
    size: 3,
    mediaType: 'text/plain',
  };
  const completion = {
    version: 1,
    taskVersion: 2,
    taskGraphRevision: 1,
    completionRevision: 1,
    runIds: [run.runId],
    disposition: 'passed',
    checks: [],
  };
  const result = { kind: 'completed', summary: 'All done', artifacts: [artifact], completion };
  test.match(await taskRow(sql, org, run.taskId), {
    status: 'completed',
    phase: 'closed',
    version: 3,
    active_run_id: null,
    completed_at: Date,
    completion_revision: 1,
    result,
  });
  test.match(await runRow(run.runId), {
    status: 'succeeded',
    finished_at: Date,
    output: { kind: 'task_result', result },
    error: null,
    receipts: report.receipts,
    harness: 'h-2',
    log_state: 'complete',
    input_tokens: '10',
    output_tokens: '20',
    tool_calls: '3',
    cost_minor_units: '7',
    cost_known: true,
  });
  test.match(await requestRows(sql, org, run.taskId), [
    { state: 'finished', lease_expires_at: null, lease_secret_hash: null },
  ]);
});

scenario('a cost that was not reported is zero and not known', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  await completeRun(sql.api, run, { report: { usage: { inputTokens: 1 } } });
  test.match(await runRow(run.runId), {
    input_tokens: '1',
    cost_minor_units: '0',
    cost_known: false,
    log_state: 'not_recorded',
  });
});

scenario('a complete sent again returns the same; with another body, or as a fail, it is refused', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  const first = await completeRun(sql.api, run, { bodyHash: 'one' });
  const before = await taskRow(sql, org, run.taskId);
  test.same(await completeRun(sql.api, run, { bodyHash: 'one' }), first);
  test.match(await refusal(completeRun(sql.api, run, { bodyHash: 'two' })), differs);
  test.match(await refusal(failRun(sql.api, run, { bodyHash: 'one' })), differs);
  test.match(
    await refusal(completeRun(sql.api, { ...run, leaseToken: '1.0' }, { bodyHash: 'one' })),
    lost,
    'to its holder alone',
  );
  test.same(await taskRow(sql, org, run.taskId), before);
});

scenario('of eight completes at once one counts and all return the same', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  const results = await Promise.all(Array.from({ length: 8 }, () => completeRun(sql.api, run)));
  for (const result of results) test.same(result, { status: 'succeeded' });
  test.match(await taskRow(sql, org, run.taskId), { status: 'completed', completion_revision: 1, version: 3 });
});

scenario('a complete and a fail at once: one decides, the other is refused', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  const [first, second] = [await openSession(test, sql), await openSession(test, sql)];
  await first.begin();
  await completeRun(first, run);
  const late = refusal(failRun(second, run));
  await second.waits();
  await first.commit();
  test.match(await late, differs);
  test.match(await taskRow(sql, org, run.taskId), { status: 'completed' });
});

scenario('an artifact that was never stored, or not like that, is named, and the lease stays', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  await recordOutput(sql.api, run, 'there.txt');
  const result = { kind: 'completed', summary: '', artifacts: [{ path: 'there.txt' }, { path: 'missing.txt' }] };
  const refused = await refusal(completeRun(sql.api, run, { result }));
  test.match(refused, { status: 400, code: 'validation_failed', reason: 'not_stored', raised: true });
  test.match(await taskRow(sql, org, run.taskId), { status: 'running' });
  for (const claimed of [{ size: 4 }, { sha256: '0'.repeat(64) }, { runId: org.organizationId }, { uri: 'org://x' }]) {
    const artifacts = [{ path: 'there.txt', ...claimed }];
    const other = await refusal(completeRun(sql.api, run, { result: { kind: 'completed', summary: '', artifacts } }));
    test.match(other, { status: 400, code: 'validation_failed', reason: 'differs_from_stored' });
  }
  await recordOutput(sql.api, run, 'missing.txt');
  test.same(await completeRun(sql.api, run, { result }), { status: 'succeeded' });
});
