import t from 'tap';
import {
  cancelTask,
  capability,
  completeEvaluated,
  completePlan,
  completeRun,
  completeVerdict,
  createSecondProfile,
  createTask,
  createTestOrganization,
  failRun,
  lastRequest,
  make,
  openItems,
  patchTask,
  planned,
  pull,
  type Run,
  recordOutput,
  retryTask,
  runMode,
  runNew,
  runNext,
  stageOutcome,
  type TestOrganization,
  taskCreate,
  taskRow,
  updateProfile,
} from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { type JsonObject, openSession, openSql, refusal } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const agent = { spec: { verification: 'agent' } };

async function runRow(runId: string): Promise<JsonObject> {
  const { rows } = await sql.owner.query('select * from app.runs where id = $1', [runId]);
  return rows[0];
}

/** An operator, and a department whose work it verifies. */
async function departments(): Promise<{ operator: TestOrganization; growth: TestOrganization }> {
  const operator = await createTestOrganization(sql, { key: 'operator' });
  return { operator, growth: await createSecondProfile(sql, operator, { key: 'growth', kind: 'department' }) };
}

scenario('a result counts when the operator has passed it', async (test) => {
  const { operator, growth } = await departments();
  const run = await runNew(sql, growth, agent);
  await recordOutput(sql.api, run, 'report.md');
  const done = { kind: 'completed', summary: 'Here it is', artifacts: [{ path: 'report.md' }] };
  test.same(await completeRun(sql.api, run, { result: done }), { status: 'succeeded' });
  test.match(await taskRow(sql, growth, run.taskId), {
    status: 'pending',
    phase: 'verify',
    result: null,
    completed_at: null,
    verification: { runId: run.runId, executorProfileId: growth.profileId, result: { summary: 'Here it is' } },
  });
  test.match(await lastRequest(sql, growth, run.taskId), { mode: 'verify', agent_profile_id: operator.profileId });
  const judge = await runMode(sql, operator, 'verify');
  const { rows } = await sql.owner.query(
    'select path, role, storage_key from app.run_inputs where run_id = $1 order by path',
    [judge.runId],
  );
  test.match(rows, [
    { path: 'outputs/report.md', role: 'input', storage_key: String },
    { path: 'task.json', role: 'instructions' },
  ]);
  const evidence = [
    { kind: 'file', runId: run.runId, path: 'report.md' },
    { kind: 'note', text: 'Read it' },
  ];
  test.same(await completeVerdict(sql, judge, 'passed', { evidence }), { status: 'succeeded' });
  test.match(await taskRow(sql, growth, run.taskId), {
    status: 'completed',
    phase: 'closed',
    contract: null,
    result: {
      kind: 'completed',
      summary: 'Here it is',
      artifacts: [{ path: 'report.md' }],
      completion: {
        disposition: 'passed',
        runIds: [run.runId, judge.runId],
        checks: [
          {
            criterionIndex: 0,
            evaluator: 'agent',
            status: 'passed',
            evidence: [{ kind: 'file', path: 'report.md', size: 3, sha256: String, uri: /^org:/ }, { kind: 'note' }],
          },
        ],
      },
    },
  });
  test.match(await runRow(judge.runId), { output: { result: { kind: 'verification', verdict: 'passed' } } });
  test.same(await completeRun(sql.api, judge), { status: 'succeeded' }, 'sent again');
});

scenario(
  'a failed verdict makes the task ready again with what is wrong, the second one asks a person',
  async (test) => {
    const { operator, growth } = await departments();
    const run = await runNew(sql, growth, agent);
    await completeRun(sql.api, run);
    await completeVerdict(sql, await runMode(sql, operator, 'verify'), 'failed', { summary: 'Too short' });
    test.match(await taskRow(sql, growth, run.taskId), {
      status: 'pending',
      phase: 'execute',
      contract: {
        verdicts: 1,
        runId: run.runId,
        checks: [{ evaluator: 'agent', status: 'failed', summary: 'Too short' }],
      },
    });
    const second = await runMode(sql, growth, 'execute');
    await completeRun(sql.api, second);
    await completeVerdict(sql, await runMode(sql, operator, 'verify'), 'failed', { summary: 'Still too short' });
    test.match(await taskRow(sql, growth, run.taskId), {
      status: 'blocked',
      phase: 'execute',
      blockers: [{ kind: 'human' }],
    });
    test.match(await openItems(sql, growth, run.taskId), [
      { purpose: 'repair', body: 'Still too short', options: ['try_again', 'accept', 'cancel'], run_id: second.runId },
    ]);
    await retryTask(sql.api, growth, run.taskId);
    test.match(await taskRow(sql, growth, run.taskId), { status: 'pending', phase: 'execute', contract: null });
    await completeRun(sql.api, await runMode(sql, growth, 'execute'));
    await completeVerdict(sql, await runMode(sql, operator, 'verify'), 'failed');
    test.match(await taskRow(sql, growth, run.taskId), { contract: { verdicts: 1 } }, 'the count starts again');
  },
);

scenario('checks and verdicts are counted apart', async (test) => {
  const { operator, growth } = await departments();
  const acceptanceCriteria = [{ kind: 'output_file', path: 'a', checks: [] }];
  const run = await runNew(sql, growth, { spec: { verification: 'agent', acceptanceCriteria } });
  const finish = async (held: Parameters<typeof completeRun>[1], status: string) => {
    const checks = [{ criterionIndex: 0, evaluator: 'backend', status, summary: status, evidence: [] }];
    return completeEvaluated(sql.api, held, checks);
  };
  await finish(run, 'failed');
  await finish(await runMode(sql, growth, 'execute'), 'passed');
  await completeVerdict(sql, await runMode(sql, operator, 'verify'), 'failed');
  test.match(await taskRow(sql, growth, run.taskId), { status: 'pending', contract: { failures: 0, verdicts: 1 } });
  await finish(await runMode(sql, growth, 'execute'), 'failed');
  test.match(await taskRow(sql, growth, run.taskId), { status: 'pending', contract: { failures: 1, verdicts: 1 } });
  await finish(await runMode(sql, growth, 'execute'), 'passed');
  await completeVerdict(sql, await runMode(sql, operator, 'verify'), 'passed');
  test.match(await taskRow(sql, growth, run.taskId), {
    status: 'completed',
    result: { completion: { checks: [{ evaluator: 'backend' }, { evaluator: 'agent', criterionIndex: 1 }] } },
  });
});

scenario('the verifier is the profile that is named, else the operator, never who made it', async (test) => {
  const { operator, growth } = await departments();
  const support = await createSecondProfile(sql, operator, { key: 'support', kind: 'department' });
  const verifier = async (org: TestOrganization, verifierProfileKey?: string) => {
    const spec = { verification: 'agent', ...(verifierProfileKey ? { verifierProfileKey } : {}) };
    const run = await runNew(sql, org, { spec });
    await completeRun(sql.api, run);
    const { agent_profile_id } = (await lastRequest(sql, org, run.taskId)) as JsonObject;
    await cancelTask(sql.api, org, run.taskId);
    return agent_profile_id;
  };
  test.equal(await verifier(growth, 'support'), support.profileId);
  test.equal(await verifier(growth, 'growth'), operator.profileId, 'the executor itself is passed over');
  test.equal(await verifier(operator, 'growth'), growth.profileId);
  const refused = async (org: TestOrganization, spec: JsonObject) => refusal(taskCreate(sql.api, org, { spec }));
  test.match(await refused(operator, { verification: 'agent' }), { status: 400, reason: 'no_verifier' });
  test.match(await refused(growth, { verification: 'agent', verifierProfileKey: 'nobody' }), {
    status: 400,
    reason: 'unknown_profile',
  });
  const plain = await createTask(sql, operator);
  test.match(await refusal(patchTask(sql, operator, plain.id, agent)), { status: 400, reason: 'no_verifier' });
});

scenario('a verify run reads and hands in one verdict, and nothing else', async (test) => {
  const { operator, growth } = await departments();
  const run = await runNew(sql, growth, agent);
  await completeRun(sql.api, run);
  const judge = await runMode(sql, operator, 'verify');
  const actor = capability(judge.executionToken);
  const unauthorized = { status: 401, code: 'agent_unauthorized' };
  test.match(await refusal(cancelTask(sql.api, growth, run.taskId, actor)), unauthorized);
  test.match(await refusal(taskCreate(sql.api, growth, {}, actor)), unauthorized);
  const wrong = { status: 409, code: 'state_conflict', reason: 'wrong_mode' };
  test.match(await refusal(stageOutcome(sql, judge, { kind: 'plan', operations: [make('a')] })), wrong);
  test.match(await refusal(stageOutcome(sql, judge, { kind: 'needs_input', question: '?' })), wrong);
  test.same(await completeRun(sql.api, judge), { status: 'failed' }, 'without a verdict');
  test.match(await runRow(judge.runId), { error: { code: 'outcome_missing' } });
  test.match(await taskRow(sql, growth, run.taskId), { status: 'pending', phase: 'verify' });
});

scenario('a late verdict changes nothing after a cancel', async (test) => {
  const { operator, growth } = await departments();
  const run = await runNew(sql, growth, agent);
  await completeRun(sql.api, run);
  const judge = await runMode(sql, operator, 'verify');
  await stageOutcome(sql, judge, { kind: 'verification', verdict: 'passed', summary: 'Fine', evidence: [] });
  await cancelTask(sql.api, growth, run.taskId);
  test.same(await completeRun(sql.api, judge), { status: 'cancelled' });
  test.match(await taskRow(sql, growth, run.taskId), { status: 'cancelled', result: null });
});

scenario('a verdict and a cancel at once', async (test) => {
  const { operator, growth } = await departments();
  const run = await runNew(sql, growth, agent);
  await completeRun(sql.api, run);
  const judge = await runMode(sql, operator, 'verify');
  await stageOutcome(sql, judge, { kind: 'verification', verdict: 'passed', summary: 'Fine', evidence: [] });
  const [one, two] = [await openSession(test, sql), await openSession(test, sql)];
  await one.begin();
  await completeRun(one, judge);
  const late = refusal(cancelTask(two, growth, run.taskId));
  await two.waits();
  await one.commit();
  test.match(await late, { status: 409, code: 'state_conflict' });
  test.match(await taskRow(sql, growth, run.taskId), { status: 'completed' });
});

scenario('a verifier that is disabled hands over to another, and the task waits where there is none', async (test) => {
  const { operator, growth } = await departments();
  const support = await createSecondProfile(sql, operator, { key: 'support', kind: 'department' });
  const run = await runNew(sql, growth, { spec: { verification: 'agent', verifierProfileKey: 'support' } });
  await completeRun(sql.api, run);
  const judge = await runMode(sql, support, 'verify');
  await updateProfile(sql.api, support, { status: 'disabled' });
  test.match(await runRow(judge.runId), { status: 'cancelled' });
  test.match(await lastRequest(sql, growth, run.taskId), { state: 'published', agent_profile_id: operator.profileId });
  await updateProfile(sql.api, operator, { status: 'disabled' });
  test.match(await taskRow(sql, growth, run.taskId), {
    status: 'blocked',
    phase: 'verify',
    blockers: [{ kind: 'profile' }],
  });
  await updateProfile(sql.api, support, { status: 'enabled' });
  test.match(await lastRequest(sql, growth, run.taskId), { state: 'published', agent_profile_id: support.profileId });
  await completeRun(sql.api, judge);
  await completeVerdict(sql, await runMode(sql, support, 'verify'), 'passed');
  test.match(await taskRow(sql, growth, run.taskId), { status: 'completed' });
});

scenario('a verifier that changes while a task comes to be judged, either of the two first', async (test) => {
  const { operator, growth } = await departments();
  const [one, two] = [await runNew(sql, growth, agent), await runNew(sql, growth, agent)];
  const spent = await runNew(sql, growth, { spec: { ...agent.spec, budget: { maxAgentRuns: 1 } } });
  const [session, rival] = [await openSession(test, sql), await openSession(test, sql)];
  const first = async (run: Run, change: JsonObject) => {
    await session.begin();
    await completeRun(session, run);
    const changed = updateProfile(rival, operator, change);
    await rival.waits();
    await session.commit();
    await changed;
  };

  await first(spent, { status: 'disabled' });
  const blockers = [{ kind: 'budget' }, { kind: 'profile' }];
  test.match(await taskRow(sql, growth, spent.taskId), { status: 'blocked', blockers });

  await first(one, { status: 'enabled' });
  test.match(await taskRow(sql, growth, one.taskId), { status: 'pending', phase: 'verify' });

  await session.begin();
  await updateProfile(session, operator, { status: 'disabled' });
  // The change would not see the task in its new phase, nor the task the change.
  await test.rejects(completeRun(sql.api, two), { code: '40001' });
  await session.commit();
  test.same(await completeRun(sql.api, two), { status: 'succeeded' });
  test.match(await taskRow(sql, growth, two.taskId), { status: 'blocked', blockers: [{ kind: 'profile' }] });
});

scenario('a verifier that comes later takes what waits for one', async (test) => {
  const { operator, growth } = await departments();
  const run = await runNew(sql, growth, agent);
  await completeRun(sql.api, run);
  for (const change of [{ kind: 'department', department: 'support' }, { status: 'disabled' }]) {
    await updateProfile(sql.api, operator, { status: 'disabled' });
    test.match(await taskRow(sql, growth, run.taskId), { status: 'blocked', phase: 'verify' });
    await updateProfile(sql.api, operator, change);
    const later = await createSecondProfile(sql, operator, { kind: 'operator' });
    test.match(await lastRequest(sql, growth, run.taskId), { state: 'published', agent_profile_id: later.profileId });
    await updateProfile(sql.api, later, { status: 'disabled' });
  }
  const plain = await createSecondProfile(sql, operator, { kind: 'department' });
  test.match(await taskRow(sql, growth, run.taskId), { status: 'blocked', blockers: [{ kind: 'profile' }] });
  await updateProfile(sql.api, plain, { kind: 'operator', department: null });
  test.match(await lastRequest(sql, growth, run.taskId), { state: 'published', agent_profile_id: plain.profileId });
});

scenario('a verifier that cannot judge fails the task, and a retry runs it again', async (test) => {
  const { operator, growth } = await departments();
  const run = await runNew(sql, growth, agent);
  await completeRun(sql.api, run);
  await failRun(sql.api, await runMode(sql, operator, 'verify'));
  test.match(await taskRow(sql, growth, run.taskId), { status: 'failed', error: { code: 'broken' } });
  await retryTask(sql.api, growth, run.taskId);
  test.match(await taskRow(sql, growth, run.taskId), { status: 'pending', phase: 'execute' });
});

scenario('a changed spec is worked on again, a raised budget is not', async (test) => {
  const { growth } = await departments();
  const run = await runNew(sql, growth, agent);
  await completeRun(sql.api, run);
  await patchTask(sql, growth, run.taskId, { spec: { budget: { maxAgentRuns: 50 } } });
  test.match(await taskRow(sql, growth, run.taskId), { status: 'pending', phase: 'verify' });
  await patchTask(sql, growth, run.taskId, { spec: { objective: 'Another one' } });
  test.match(await taskRow(sql, growth, run.taskId), { status: 'pending', phase: 'execute' });
  test.match(await lastRequest(sql, growth, run.taskId), { mode: 'execute', agent_profile_id: growth.profileId });
});

scenario('an initiative is judged by the results below it; a failed verdict plans it again', async (test) => {
  const { operator, growth } = await departments();
  const ids = await planned(sql, growth, [make('one')], agent);
  const root = ids['root'] ?? '';
  const run = await runNext(sql, growth);
  await recordOutput(sql.api, run, 'a.txt');
  await completeRun(sql.api, run, { result: { kind: 'completed', summary: 'A', artifacts: [{ path: 'a.txt' }] } });
  test.match(await taskRow(sql, growth, root), { status: 'pending', phase: 'verify' });
  const [claim] = await pull(sql.api, { organizationIds: [growth.organizationId] });
  test.match(claim?.task, { children: [{ id: ids['one'], summary: 'A', artifacts: [{ path: 'a.txt' }] }] });
  await sql.owner.query(
    `update app.run_requests set state = 'published', lease_secret_hash = null, lease_expires_at = null where id = $1`,
    [claim?.runRequestId],
  );
  const judge = await runMode(sql, operator, 'verify');
  const { rows } = await sql.owner.query('select path from app.run_inputs where run_id = $1 order by path', [
    judge.runId,
  ]);
  test.same(rows, [{ path: 'outputs/T-1/a.txt' }, { path: 'task.json' }]);
  await completeVerdict(sql, judge, 'failed', { summary: 'B is missing' });
  test.match(await taskRow(sql, growth, root), {
    status: 'pending',
    phase: 'plan',
    replan_count: 1,
    replan: { reason: 'verdict_failed' },
    contract: { verdicts: 1, checks: [{ summary: 'B is missing' }] },
  });
  await completePlan(sql, await runMode(sql, growth, 'plan'), [make('two')]);
  await completeRun(sql.api, await runMode(sql, growth, 'execute'));
  await completeVerdict(sql, await runMode(sql, operator, 'verify'), 'passed');
  test.match(await taskRow(sql, growth, root), {
    status: 'completed',
    result: { kind: 'completed', completion: { checks: [{ evaluator: 'agent', status: 'passed' }] } },
  });
});

scenario('a task that comes below an initiative which waits for its verdict comes first', async (test) => {
  const { operator, growth } = await departments();
  const ids = await planned(sql, growth, [make('one')], agent);
  const root = ids['root'] ?? '';
  await completeRun(sql.api, await runNext(sql, growth));
  await createTask(sql, growth, { parentId: root });
  test.match(await taskRow(sql, growth, root), { status: 'blocked', phase: 'execute' });
  await completeRun(sql.api, await runMode(sql, growth, 'execute'));
  const judge = await runMode(sql, operator, 'verify');
  test.match(await refusal(taskCreate(sql.api, growth, { parentId: root })), { status: 409, reason: 'being_verified' });
  await completeVerdict(sql, judge, 'passed');
  test.match(await taskRow(sql, growth, root), { status: 'completed' });
});
