import t from 'tap';
import {
  appendLogs,
  cancelTask,
  claimNext,
  completeRun,
  createPlace,
  createTask,
  endLease,
  expire,
  failRun,
  lastRequest,
  logEntry,
  openItems,
  patchTask,
  publishNow,
  pull,
  recordOutput,
  requestRows,
  retryTask,
  runNew,
  runNext,
  startRun,
  taskRow,
  updateProfile,
} from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { type Answer, openSession, openSql, refusal } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const lost = { status: 409, code: 'run_lease_expired', reason: 'lease_lost' };
const differs = { status: 409, code: 'run_lease_expired', reason: 'differs', raised: true };

async function runRow(runId: string): Promise<Answer> {
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
  const place = await createPlace(sql);
  const run = await runNew(sql, place);
  await recordOutput(sql.api, run, 'out/a.txt', 'key-a');
  await recordOutput(sql.api, run, 'scratch.txt', 'key-b');
  const answer = await completeRun(sql.api, run, {
    result: {
      kind: 'completed',
      summary: 'All done',
      artifacts: [{ path: 'out/a.txt', name: 'A' }],
    },
    report,
  });
  test.same(answer, { status: 'succeeded' });
  const artifact = {
    kind: 'file',
    runId: run.runId,
    path: 'out/a.txt',
    name: 'A',
    uri: `org://${place.organizationId}/runs/${run.runId}/outputs/out/a.txt`,
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
  test.match(await taskRow(sql, place, run.taskId), {
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
  test.match(await requestRows(sql, place, run.taskId), [
    { state: 'finished', lease_expires_at: null, lease_secret_hash: null },
  ]);
});

scenario('a cost that was not reported is zero and not known', async (test) => {
  const place = await createPlace(sql);
  const run = await runNew(sql, place);
  await completeRun(sql.api, run, { report: { usage: { inputTokens: 1 } } });
  test.match(await runRow(run.runId), {
    input_tokens: '1',
    cost_minor_units: '0',
    cost_known: false,
    log_state: 'not_recorded',
  });
});

scenario('a complete sent again answers the same; with another body, or as a fail, it is refused', async (test) => {
  const place = await createPlace(sql);
  const run = await runNew(sql, place);
  const first = await completeRun(sql.api, run, { bodyHash: 'one' });
  const before = await taskRow(sql, place, run.taskId);
  test.same(await completeRun(sql.api, run, { bodyHash: 'one' }), first);
  test.match(await refusal(completeRun(sql.api, run, { bodyHash: 'two' })), differs);
  test.match(await refusal(failRun(sql.api, run, { bodyHash: 'one' })), differs);
  test.match(
    await refusal(completeRun(sql.api, { ...run, leaseToken: '1.0' }, { bodyHash: 'one' })),
    lost,
    'to its holder alone',
  );
  test.same(await taskRow(sql, place, run.taskId), before);
});

scenario('of eight completes at once one counts and all answer the same', async (test) => {
  const place = await createPlace(sql);
  const run = await runNew(sql, place);
  const answers = await Promise.all(Array.from({ length: 8 }, () => completeRun(sql.api, run)));
  for (const answer of answers) test.same(answer, { status: 'succeeded' });
  test.match(await taskRow(sql, place, run.taskId), { status: 'completed', completion_revision: 1, version: 3 });
});

scenario('a complete and a fail at once: one decides, the other is refused', async (test) => {
  const place = await createPlace(sql);
  const run = await runNew(sql, place);
  const [first, second] = [await openSession(test, sql), await openSession(test, sql)];
  await first.begin();
  await completeRun(first, run);
  const late = refusal(failRun(second, run));
  await second.waits();
  await first.commit();
  test.match(await late, differs);
  test.match(await taskRow(sql, place, run.taskId), { status: 'completed' });
});

scenario('an artifact that was never stored, or not like that, is named, and the lease stays', async (test) => {
  const place = await createPlace(sql);
  const run = await runNew(sql, place);
  await recordOutput(sql.api, run, 'there.txt');
  const result = { kind: 'completed', summary: '', artifacts: [{ path: 'there.txt' }, { path: 'missing.txt' }] };
  const refused = await refusal(completeRun(sql.api, run, { result }));
  test.match(refused, { status: 400, code: 'validation_failed', reason: 'not_stored', raised: true });
  test.match(await taskRow(sql, place, run.taskId), { status: 'running' });
  for (const claimed of [{ size: 4 }, { sha256: '0'.repeat(64) }]) {
    const artifacts = [{ path: 'there.txt', ...claimed }];
    const other = await refusal(completeRun(sql.api, run, { result: { kind: 'completed', summary: '', artifacts } }));
    test.match(other, { status: 400, code: 'validation_failed', reason: 'differs_from_stored' });
  }
  await recordOutput(sql.api, run, 'missing.txt');
  test.same(await completeRun(sql.api, run, { result }), { status: 'succeeded' });
});

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

/** Completes a run whose task has criteria, as the API does: asked for the checks, and again with them. */
async function completeWith(run: Parameters<typeof completeRun>[1], checks: readonly Answer[]): Promise<Answer> {
  const asked = await completeRun(sql.api, run, { result: done });
  return completeRun(sql.api, run, { result: done, checks, judged: String(asked['judged']) });
}

scenario('a task with criteria asks for their evaluation first, and changes nothing by it', async (test) => {
  const place = await createPlace(sql);
  const run = await runNew(sql, place, { spec: criteria });
  await recordOutput(sql.api, run, 'report.json', 'key-1');
  const asked = await completeRun(sql.api, run, { result: done });
  test.match(asked, {
    judged: /^[0-9a-f]{64}$/,
    evaluate: {
      runId: run.runId,
      criteria: criteria.acceptanceCriteria,
      outputs: [{ path: 'report.json', storageKey: 'key-1', size: 3 }],
    },
  });
  test.match(await taskRow(sql, place, run.taskId), { status: 'running' });
  const judged = String(asked['judged']);
  await recordOutput(sql.api, run, 'report.json', 'key-2');
  const again = await completeRun(sql.api, run, { result: done, checks: [passed], judged });
  test.ok(again['evaluate'], 'checks of other bytes do not count');
  test.not(again['judged'], judged);
  const answer = await completeRun(sql.api, run, { result: done, checks: [passed], judged: String(again['judged']) });
  test.same(answer, { status: 'succeeded' });
  test.match(await taskRow(sql, place, run.taskId), {
    status: 'completed',
    result: { completion: { disposition: 'passed', checks: [passed] } },
  });
});

scenario('a criterion of an unknown kind decides nothing', async (test) => {
  const place = await createPlace(sql);
  const run = await runNew(sql, place, { spec: { acceptanceCriteria: [{ kind: 'display', text: 'Be nice' }] } });
  test.same(await completeRun(sql.api, run), { status: 'succeeded' });
});

scenario(
  'a contract that fails once makes the task ready again with the failures, the second time a person is asked',
  async (test) => {
    const place = await createPlace(sql);
    const run = await runNew(sql, place, { spec: criteria });
    await recordOutput(sql.api, run, 'report.json');
    test.same(await completeWith(run, [passed, failed]), { status: 'failed' });
    test.match(await runRow(run.runId), {
      status: 'failed',
      error: { code: 'acceptance_failed', retryable: true },
      output: { result: { completion: { disposition: 'failed', checks: [passed, failed] } } },
    });
    test.match(await taskRow(sql, place, run.taskId), {
      status: 'pending',
      phase: 'execute',
      contract: { failures: 1, runId: run.runId, checks: [failed] },
    });
    test.same(await openItems(sql, place, run.taskId), []);
    test.same(await completeRun(sql.api, run, { result: done }), { status: 'failed' }, 'sent again');

    const second = await runNext(sql, place);
    test.equal(second.taskId, run.taskId);
    test.equal(second.attempt, 1, 'of a new request');
    await recordOutput(sql.api, second, 'report.json');
    test.same(await completeWith(second, [failed]), { status: 'failed' });
    const [item] = await openItems(sql, place, run.taskId);
    test.match(item, {
      kind: 'question',
      purpose: 'repair',
      blocking: true,
      body: 'The total is wrong',
      run_id: second.runId,
    });
    test.match(await taskRow(sql, place, run.taskId), {
      status: 'blocked',
      blockers: [{ kind: 'human', inboxItemId: item?.['id'] }],
      contract: { failures: 2, runId: second.runId },
      agent_run_count: 2,
    });
    test.same(await pull(sql.api, { organizationIds: [place.organizationId] }), []);
  },
);

scenario("the owner's retry reopens a repair block, and the count of failures starts again", async (test) => {
  const place = await createPlace(sql);
  const run = await runNew(sql, place, { spec: criteria });
  for (const next of [run, undefined]) {
    const held = next ?? (await runNext(sql, place));
    await recordOutput(sql.api, held, 'report.json');
    await completeWith(held, [failed]);
  }
  test.match(await taskRow(sql, place, run.taskId), { status: 'blocked' });
  await retryTask(sql.api, place, run.taskId);
  test.match(await taskRow(sql, place, run.taskId), { status: 'pending', contract: null, blockers: [] });
  test.same(await openItems(sql, place, run.taskId), []);
  const third = await runNext(sql, place);
  await recordOutput(sql.api, third, 'report.json');
  await completeWith(third, [failed]);
  test.match(await taskRow(sql, place, run.taskId), { status: 'pending', contract: { failures: 1 } });
});

scenario('a result that waits makes the task wait until the time, and then ready', async (test) => {
  const place = await createPlace(sql);
  const run = await runNew(sql, place);
  const until = '2099-01-01T00:00:00.000Z';
  test.same(await completeRun(sql.api, run, { result: { kind: 'waiting', until, reason: 'The bank is closed' } }), {
    status: 'succeeded',
  });
  test.match(await taskRow(sql, place, run.taskId), {
    status: 'waiting',
    phase: 'execute',
    waiting_until: new Date(until),
    waiting_reason: 'The bank is closed',
    active_run_id: null,
  });
  await sql.owner.query(`update app.tasks set waiting_until = clock_timestamp() where id = $1`, [run.taskId]);
  const { rows } = await sql.jobs.query('select * from app.dispatch_due(10)');
  test.match(
    rows.filter((row) => row.organization_id === place.organizationId),
    [{ sort: 'wake', ids: [run.taskId] }],
  );
  await sql.jobs.query('select app.tasks_wake($1, $2)', [place.organizationId, [run.taskId]]);
  test.match(await taskRow(sql, place, run.taskId), { status: 'pending', waiting_until: null, waiting_reason: null });
  test.equal((await claimNext(sql, place)).task.id, run.taskId);
});

scenario('waiting for a time that is over makes the task ready at once', async (test) => {
  const place = await createPlace(sql);
  const run = await runNew(sql, place);
  await completeRun(sql.api, run, { result: { kind: 'waiting', until: '2020-01-01T00:00:00Z', reason: 'x' } });
  test.match(await taskRow(sql, place, run.taskId), { status: 'pending' });
});

scenario('a result that needs input blocks the task with the question; a retry takes it back', async (test) => {
  const place = await createPlace(sql);
  const run = await runNew(sql, place, { title: 'Order paper' });
  const result = { kind: 'needs_input', question: 'Which colour?', options: ['white', 'blue'] };
  test.same(await completeRun(sql.api, run, { result }), { status: 'succeeded' });
  const [item] = await openItems(sql, place, run.taskId);
  test.match(item, {
    kind: 'question',
    purpose: 'needs_input',
    title: 'Question about: Order paper',
    body: 'Which colour?',
    options: ['white', 'blue'],
    blocking: true,
  });
  test.match(await taskRow(sql, place, run.taskId), {
    status: 'blocked',
    blockers: [{ kind: 'human', inboxItemId: item?.['id'] }],
  });
  await retryTask(sql.api, place, run.taskId);
  test.match(await taskRow(sql, place, run.taskId), { status: 'pending' });
});

scenario('a retryable failure publishes the request again after a backoff, with the attempt counted', async (test) => {
  const place = await createPlace(sql);
  const run = await runNew(sql, place);
  test.same(await failRun(sql.api, run, { retryable: true, report }), { status: 'failed' });
  test.match(await runRow(run.runId), {
    status: 'failed',
    error: { code: 'broken', message: 'It broke', retryable: true },
    input_tokens: '10',
    output: null,
  });
  test.match(await taskRow(sql, place, run.taskId), { status: 'pending', active_run_id: null, error: null });
  test.match(await lastRequest(sql, place, run.taskId), {
    id: run.runRequestId,
    state: 'queued',
    attempt: 1,
    parked: false,
  });
  test.same(await failRun(sql.api, run, { retryable: true, report }), { status: 'failed' }, 'sent again');
  test.match(await refusal(failRun(sql.api, run, { retryable: true, bodyHash: 'other' })), differs);
  test.match(await lastRequest(sql, place, run.taskId), { state: 'queued', attempt: 1 });
  await publishNow(sql, place, run.taskId);
  test.equal((await runNext(sql, place)).attempt, 2);
});

scenario('a failure that is not retryable fails the task', async (test) => {
  const place = await createPlace(sql);
  const run = await runNew(sql, place);
  test.same(await failRun(sql.api, run), { status: 'failed' });
  test.match(await taskRow(sql, place, run.taskId), {
    status: 'failed',
    phase: 'closed',
    failure_origin_id: run.taskId,
    error: { code: 'broken', retryable: false },
  });
  test.match(await requestRows(sql, place, run.taskId), [{ state: 'finished', attempt: 1 }]);
});

scenario('attempts end at the smaller of the limit of the service and that of the task', async (test) => {
  const place = await createPlace(sql);
  for (const [service, own, allowed] of [
    [3, 2, 2],
    [2, 3, 2],
    [1, 3, 1],
  ] as const) {
    const first = await runNew(sql, place, { spec: { budget: { maxAttemptsPerPhase: own } } });
    let run = first;
    for (let attempt = 1; attempt < allowed; attempt += 1) {
      await failRun(sql.api, run, { retryable: true, maxAttempts: service });
      test.match(await taskRow(sql, place, first.taskId), { status: 'pending' });
      await publishNow(sql, place, first.taskId);
      run = await runNext(sql, place);
    }
    test.equal(run.attempt, allowed);
    await failRun(sql.api, run, { retryable: true, maxAttempts: service });
    test.match(await taskRow(sql, place, first.taskId), { status: 'failed', agent_run_count: allowed });
  }
});

scenario('the backoff doubles, is jittered between its half and all, and is capped', async (test) => {
  const place = await createPlace(sql);
  for (const attempt of [1, 2, 3, 6, 40]) {
    const delays: number[] = [];
    for (let time = 0; time < 8; time += 1) {
      const run = await runNew(sql, place, { spec: { budget: { maxAttemptsPerPhase: 100 } } });
      // The attempts before it, without living through them; put back so that it counts its one run again.
      await sql.owner.query('update app.run_requests set attempt = $2 where id = $1', [run.runRequestId, attempt]);
      await failRun(sql.api, run, { retryable: true, maxAttempts: 100, backoffSeconds: 10, backoffMaxSeconds: 100 });
      const { rows } = await sql.owner.query<{ delay: number }>(
        `update app.run_requests r set attempt = 1 from app.runs u where r.id = $1 and u.id = r.run_id
         returning extract(epoch from r.due_at - u.finished_at)::float as delay`,
        [run.runRequestId],
      );
      delays.push(rows[0]?.delay ?? Number.NaN);
      await cancelTask(sql.api, place, run.taskId);
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
    const place = await createPlace(sql);
    const run = await runNew(sql, place, { spec: { budget: { maxAgentRuns: 1 } } });
    await failRun(sql.api, run, { retryable: true });
    test.match(await taskRow(sql, place, run.taskId), { status: 'blocked', blockers: [{ kind: 'budget' }] });
    test.match(await requestRows(sql, place, run.taskId), [{ state: 'cancelled' }]);
    const [item] = await openItems(sql, place, run.taskId);
    test.match(item, { kind: 'question', purpose: 'budget', options: ['raise', 'cancel'] });
    await patchTask(sql, place, run.taskId, { title: 'Renamed' });
    test.equal((await openItems(sql, place, run.taskId)).length, 1, 'another patch does not');
    const raised = await patchTask(sql, place, run.taskId, { spec: { budget: { maxAgentRuns: 2 } } });
    test.match(raised, { status: 'pending', blockers: [] });
    const { rows } = await sql.owner.query('select status, response from app.human_inbox_items where id = $1', [
      item?.['id'],
    ]);
    test.same(rows, [{ status: 'responded', response: 'raise' }]);
    await runNext(sql, place);
    test.match(await taskRow(sql, place, run.taskId), {
      status: 'running',
      agent_run_count: 2,
      consumed_agent_run_count: 2,
    });
  },
);

scenario('a result after a cancel keeps usage and logs alone, answers cancelled and frees the slot', async (test) => {
  for (const finish of [
    (run: Parameters<typeof completeRun>[1]) => completeRun(sql.api, run, { report }),
    (run: Parameters<typeof completeRun>[1]) => failRun(sql.api, run, { report, retryable: true }),
  ]) {
    const place = await createPlace(sql, { limits: { maxConcurrentRuns: 1 } });
    const run = await runNew(sql, place);
    await createTask(sql, place);
    await cancelTask(sql.api, place, run.taskId);
    const cancelled = await taskRow(sql, place, run.taskId);
    test.match(cancelled, { status: 'cancelled', active_run_id: null });
    test.match(await runRow(run.runId), { status: 'cancelled' });
    test.same(
      await pull(sql.api, { organizationIds: [place.organizationId] }),
      [],
      'the slot is held until it reports',
    );
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
    test.same(await taskRow(sql, place, run.taskId), cancelled, 'the task is as it was');
    test.equal((await pull(sql.api, { organizationIds: [place.organizationId] })).length, 1, 'the slot is free');
  }
});

scenario('a cancel that comes while a complete is at work finds the task completed', async (test) => {
  const place = await createPlace(sql);
  const run = await runNew(sql, place);
  const [worker, person] = [await openSession(test, sql), await openSession(test, sql)];
  await worker.begin();
  await completeRun(worker, run);
  const late = refusal(cancelTask(person, place, run.taskId));
  await person.waits();
  await worker.commit();
  test.match(await late, { status: 409, code: 'state_conflict' });
  test.match(await taskRow(sql, place, run.taskId), { status: 'completed' });
});

scenario('a complete that comes while a cancel is at work is the report of a cancelled run', async (test) => {
  const place = await createPlace(sql);
  const run = await runNew(sql, place);
  const [worker, person] = [await openSession(test, sql), await openSession(test, sql)];
  await person.begin();
  await cancelTask(person, place, run.taskId);
  const late = completeRun(worker, run, { report });
  await worker.waits();
  await person.commit();
  test.same(await late, { status: 'cancelled' });
  test.match(await taskRow(sql, place, run.taskId), { status: 'cancelled', result: null });
});

scenario('a complete and the expiry of its lease at once: the first to lock decides', async (test) => {
  const place = await createPlace(sql);
  const [worker, sweep] = [await openSession(test, sql), await openSession(test, sql, 'runner_jobs')];
  const completed = await runNew(sql, place);
  await worker.begin();
  await completeRun(worker, completed);
  const sweeping = expire(sweep, completed);
  await sweep.waits();
  await worker.commit();
  test.equal(await sweeping, 'kept');
  test.match(await taskRow(sql, place, completed.taskId), { status: 'completed' });

  const expired = await runNew(sql, place);
  await endLease(sql, expired);
  await sweep.begin();
  test.equal(await expire(sweep, expired), 'expired');
  const completing = refusal(completeRun(worker, expired));
  await worker.waits();
  await sweep.commit();
  test.match(await completing, lost);
  test.match(await taskRow(sql, place, expired.taskId), { status: 'pending' });
});

scenario('a run that was cancelled and never reports holds its slot until its lease ends', async (test) => {
  const place = await createPlace(sql, { limits: { maxConcurrentRuns: 1 } });
  const run = await runNew(sql, place);
  await createTask(sql, place);
  await cancelTask(sql.api, place, run.taskId);
  test.equal(await expire(sql.jobs, run), 'kept');
  await endLease(sql, run);
  test.equal(await expire(sql.jobs, run), 'cancelled');
  test.equal(await expire(sql.jobs, run), 'kept', 'once');
  test.match(await lastRequest(sql, place, run.taskId), { state: 'cancelled' });
  test.match(await refusal(completeRun(sql.api, run)), lost, 'a report that comes later still is lost');
  test.equal((await pull(sql.api, { organizationIds: [place.organizationId] })).length, 1);
});

scenario(
  'a task that is ready again before its cancelled run reports has a new request, which that report leaves alone',
  async (test) => {
    const place = await createPlace(sql);
    const first = await runNew(sql, place);
    // Disabling and enabling the profile leaves the task ready while its old run has not reported.
    await updateProfile(sql.api, place, { status: 'disabled' });
    await updateProfile(sql.api, place, { status: 'enabled' });
    const second = await startRun(sql.api, await claimNext(sql, place));
    test.equal(second.taskId, first.taskId);
    test.not(second.runRequestId, first.runRequestId);
    test.same(await completeRun(sql.api, first, { report }), { status: 'cancelled' });
    test.match(await taskRow(sql, place, first.taskId), { status: 'running', active_run_id: second.runId });
    test.same(await completeRun(sql.api, second), { status: 'succeeded' });
    test.match(await taskRow(sql, place, first.taskId), { status: 'completed', agent_run_count: 2 });
  },
);
