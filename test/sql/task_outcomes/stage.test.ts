import { randomUUID } from 'node:crypto';
import t from 'tap';
import {
  addDependency,
  cancelTask,
  capability,
  completeRun,
  createSecondProfile,
  createTask,
  createTestOrganization,
  endLease,
  make,
  type Run,
  runMode,
  runNew,
  runNext,
  runPlan,
  SERVICE,
  stageOutcome,
  taskCreate,
  taskRow,
  updateOrganization,
} from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { type JsonObject, openSession, openSql, refusal } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const unauthorized = { status: 401, code: 'agent_unauthorized' };
const conflict = (reason: string) => ({ status: 409, code: 'state_conflict', reason });
const plan = (...operations: JsonObject[]) => ({ kind: 'plan', operations });

/** The codes of all issues that a plan is refused with, by their paths. */
async function planIssues(run: Run, ...operations: JsonObject[]): Promise<Record<string, string>> {
  const refused = await refusal(stageOutcome(sql, run, plan(...operations)));
  return Object.fromEntries(
    refused.issues.map((issue) => [issue.path.replace('outcome.operations', ''), issue.code ?? '']),
  );
}

scenario('an outcome is staged once, and the same again returns the same', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runPlan(sql, org);
  const outcome = plan(make('a'));
  const before = await taskRow(sql, org, run.taskId);
  const first = await stageOutcome(sql, run, outcome);
  test.match(first, { outcome: { run_id: run.runId, task_id: run.taskId, kind: 'plan', applied_at: null } });
  test.same(await taskRow(sql, org, run.taskId), before, 'nothing of the task changes');
  test.same(await stageOutcome(sql, run, outcome), first);
  test.same(await stageOutcome(sql, run, outcome, { taskVersion: 99, actor: SERVICE }), first, 'by another caller too');
  test.match(await refusal(stageOutcome(sql, run, plan(make('b')))), conflict('differs'));
  test.match(await refusal(stageOutcome(sql, run, outcome, { idempotencyKey: 'other' })), conflict('already_staged'));
});

scenario('two at once with one key get one result', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runPlan(sql, org);
  const [one, two] = [await openSession(test, sql), await openSession(test, sql)];
  await one.begin();
  const first = await stageOutcome(sql, run, plan(make('a')), {}, one);
  const second = stageOutcome(sql, run, plan(make('a')), {}, two);
  await two.waits();
  await one.commit();
  test.same(await second, first);
});

scenario('a capability hands in the outcome of its own run alone', async (test) => {
  const org = await createTestOrganization(sql);
  const foreign = await createTestOrganization(sql);
  const run = await runPlan(sql, org);
  const other = await runPlan(sql, org);
  const elsewhere = await runPlan(sql, foreign);
  for (const one of [other, elsewhere]) {
    const actor = capability(one.executionToken);
    test.match(await refusal(stageOutcome(sql, run, plan(make('a')), { actor })), unauthorized);
  }
  const actor = capability(run.executionToken);
  test.match(await refusal(stageOutcome(sql, run, plan(make('a')), { actor, taskRef: 'T-999' })), unauthorized);
  test.match(
    await refusal(stageOutcome(sql, run, plan(make('a')), { actor, runId: other.runId })),
    conflict('wrong_run'),
  );
  test.match(await refusal(stageOutcome(sql, run, plan(make('a')), { actor: SERVICE, taskRef: 'T-999' })), {
    status: 404,
    code: 'task_not_found',
  });
  test.match(
    await refusal(stageOutcome(sql, run, plan(make('a')), { actor: SERVICE, runId: randomUUID() })),
    conflict('wrong_run'),
  );
  test.ok(await stageOutcome(sql, run, plan(make('a')), { actor: SERVICE }), 'the service that of any run');
  await endLease(sql, other);
  test.match(await refusal(stageOutcome(sql, other, plan(make('a')))), unauthorized, 'not when its lease is over');
  await test.rejects(stageOutcome(sql, run, plan(make('a')), { actor: { kind: 'owner' } }), /unknown actor/);
});

scenario('version, revision and mode have to be those of the run', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runPlan(sql, org);
  test.match(await refusal(stageOutcome(sql, run, plan(make('a')), { taskVersion: 1 })), {
    ...conflict('stale'),
    issues: [{ path: 'taskVersion' }],
  });
  test.match(await refusal(stageOutcome(sql, run, plan(make('a')), { graphRevision: 99 })), {
    ...conflict('stale'),
    issues: [{ path: 'graphRevision' }],
  });
  const verdict = { kind: 'verification', verdict: 'passed', summary: 'x', evidence: [] };
  test.match(await refusal(stageOutcome(sql, run, verdict)), conflict('wrong_mode'));
  const executing = await runNew(sql, org);
  test.match(await refusal(stageOutcome(sql, executing, plan(make('a')))), conflict('wrong_mode'));
  test.match(await refusal(stageOutcome(sql, executing, verdict)), conflict('wrong_mode'));
  await updateOrganization(sql.api, org, { status: 'suspended' });
  test.match(await refusal(stageOutcome(sql, run, plan(make('a')))), { status: 409, code: 'state_conflict' });
});

scenario('a plan is refused with an issue for everything that it names and that is not there', async (test) => {
  const org = await createTestOrganization(sql);
  const foreign = await createTask(sql, await createTestOrganization(sql));
  const run = await runPlan(sql, org);
  const operations = [
    make('a', { ownerProfileKey: 'nobody', dependsOn: ['b', 'T-99', foreign.id] }),
    make('a', { parentKey: 'b' }),
    make('b', { parentKey: 'missing', spec: { verifierProfileKey: 'none' } }),
    { op: 'add_dependency', task: 'nothing', dependsOn: 'T-98' },
    { op: 'update_task', task: 'T-97', title: 'x' },
    { op: 'cancel_task', task: foreign.id },
  ];
  test.match(await refusal(stageOutcome(sql, run, plan(...operations))), { status: 400, code: 'validation_failed' });
  test.same(await planIssues(run, ...operations), {
    '.0.ownerProfileKey': 'unknown_profile',
    '.0.dependsOn.1': 'unknown_task',
    '.0.dependsOn.2': 'unknown_task',
    '.1.key': 'duplicate_key',
    '.1.parentKey': 'unknown_key',
    '.2.parentKey': 'unknown_key',
    '.2.spec.verifierProfileKey': 'unknown_profile',
    '.3.task': 'unknown_task',
    '.3.dependsOn': 'unknown_task',
    '.4.task': 'unknown_task',
    '.5.task': 'unknown_task',
  });
});

scenario('a plan is refused for cycles, wherever they run', async (test) => {
  const org = await createTestOrganization(sql);
  const waits = await createTask(sql, org, { priority: -9, scheduledAt: '2099-01-01T00:00:00Z' });
  const run = await runPlan(sql, org);
  const inner = { kind: 'initiative' };
  test.same(
    await planIssues(
      run,
      make('a', { dependsOn: ['b'] }),
      make('b', { dependsOn: ['c'] }),
      make('c', { dependsOn: ['a'] }),
    ),
    {
      '.0.dependsOn': 'cycle',
      '.1.dependsOn': 'cycle',
      '.2.dependsOn': 'cycle',
    },
  );
  test.same(await planIssues(run, make('a', { dependsOn: ['a'] })), { '.0.dependsOn': 'cycle' });
  test.same(await planIssues(run, make('a', { dependsOn: [run.taskId] })), { '.0.dependsOn': 'cycle' }, 'an ancestor');
  test.same(await planIssues(run, make('i', inner), make('a', { parentKey: 'i', dependsOn: ['i'] })), {
    '.1.dependsOn': 'cycle',
  });
  test.same(await planIssues(run, make('i', { ...inner, parentKey: 'j' }), make('j', { ...inner, parentKey: 'i' })), {
    '.0.parentKey': 'cycle',
    '.1.parentKey': 'cycle',
  });
  await addDependency(sql.api, org, waits.id, run.taskId);
  test.same(
    await planIssues(run, make('a', { dependsOn: [waits.id] })),
    { '.0.dependsOn': 'cycle' },
    'over another root',
  );
  test.ok(await stageOutcome(sql, run, plan(make('a'), make('b', { dependsOn: ['a'] }))));
});

scenario('a plan is refused beyond the limits of its organization', async (test) => {
  const limits = { maxPlanOperations: 4, maxTaskDepth: 2, maxInitiativeDescendants: 3 };
  const org = await createTestOrganization(sql, { limits });
  const run = await runPlan(sql, org);
  const many = Array.from({ length: 5 }, (_, n) => make(`k${n}`));
  const refused = await refusal(stageOutcome(sql, run, plan(...many)));
  test.same(refused.issues.map((issue) => issue.code).sort(), ['max_initiative_descendants', 'max_plan_operations']);
  test.same(
    await planIssues(
      run,
      make('a', { kind: 'initiative' }),
      make('b', { kind: 'initiative', parentKey: 'a' }),
      make('c', { parentKey: 'b' }),
    ),
    { '.1.kind': 'max_task_depth', '.2': 'max_task_depth' },
  );
  test.same(await planIssues(run), { '': 'no_children' });
  test.ok(await stageOutcome(sql, run, plan(make('a'), make('b'), make('c'))));
  test.same(await completeRun(sql.api, run), { status: 'succeeded' });
});

scenario('a plan changes only what is below it and open, and names a verifier who can be one', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runPlan(sql, org);
  const outside = await createTask(sql, org, { scheduledAt: '2099-01-01T00:00:00Z' });
  const below = await createTask(sql, org, { parentId: run.taskId });
  const over = await createTask(sql, org, { parentId: run.taskId });
  await cancelTask(sql.api, org, over.id);
  const operations = [
    { op: 'cancel_task', task: outside.id },
    { op: 'cancel_task', task: run.taskId },
    { op: 'update_task', task: over.id, title: 'x' },
    { op: 'add_dependency', task: outside.id, dependsOn: below.id },
    { op: 'update_task', task: below.id, spec: { verification: 'agent' } },
    make('judged', { spec: { verification: 'agent' } }),
  ];
  test.match(await refusal(stageOutcome(sql, run, plan(...operations))), { status: 409, code: 'state_conflict' });
  test.same(await planIssues(run, ...operations), {
    '.0.task': 'not_below',
    '.1.task': 'not_below',
    '.2.task': 'not_open',
    '.3.task': 'not_below',
    '.4.spec.verification': 'no_verifier',
    '.5.spec.verification': 'no_verifier',
  });
  await createSecondProfile(sql, org, { key: 'second' });
  test.ok(await stageOutcome(sql, run, plan(make('judged', { spec: { verification: 'agent' } }))));
});

scenario('an execute run that says it waits, or asks, does so whatever its worker says', async (test) => {
  const org = await createTestOrganization(sql);
  const waiting = { kind: 'waiting', until: '2099-01-01T00:00:00Z', reason: 'Monday' };
  const run = await runNew(sql, org);
  await stageOutcome(sql, run, waiting);
  const other = { kind: 'waiting', until: '2098-01-01T00:00:00Z', reason: 'Monday' };
  test.match(await refusal(completeRun(sql.api, run, { result: other })), {
    status: 400,
    reason: 'differs_from_staged',
  });
  test.match(await taskRow(sql, org, run.taskId), { status: 'running' }, 'the lease stays');
  test.same(await completeRun(sql.api, run), { status: 'succeeded' });
  test.match(await taskRow(sql, org, run.taskId), { status: 'waiting', waiting_reason: 'Monday' });
  const asking = await runNew(sql, org);
  const question = { kind: 'needs_input', question: 'Blue?', options: ['yes', 'no'] };
  await stageOutcome(sql, asking, question);
  test.same(await completeRun(sql.api, asking, { result: question }), { status: 'succeeded' });
  test.match(await taskRow(sql, org, asking.taskId), { status: 'blocked', blockers: [{ kind: 'human' }] });
});

scenario('a result that the service has staged has to be the one that the worker completes with', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  const result = { kind: 'completed', summary: 'Exactly this', artifacts: [] };
  const outcome = { kind: 'execution', result };
  test.match(await refusal(stageOutcome(sql, run, outcome)), unauthorized, 'which no agent may');
  await stageOutcome(sql, run, outcome, { actor: SERVICE });
  test.match(await refusal(completeRun(sql.api, run)), { status: 400, reason: 'differs_from_staged' });
  test.same(await completeRun(sql.api, run, { result }), { status: 'succeeded' });
  test.match(await taskRow(sql, org, run.taskId), { status: 'completed', result: { summary: 'Exactly this' } });
});

scenario('an open question of the run comes before its result', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  await sql.owner.query(
    `insert into app.human_inbox_items (organization_id, kind, purpose, blocking, title, task_id, run_id)
     values ($1, 'question', 'agent', true, 'Which colour?', $2, $3)`,
    [org.organizationId, run.taskId, run.runId],
  );
  test.same(await completeRun(sql.api, run), { status: 'succeeded' });
  test.match(await taskRow(sql, org, run.taskId), {
    status: 'blocked',
    phase: 'execute',
    blockers: [{ kind: 'human' }],
  });
});

scenario('evidence has to be a stored file of the organization', async (test) => {
  const org = await createTestOrganization(sql);
  const growth = await createSecondProfile(sql, org, { key: 'growth', kind: 'department' });
  await taskCreate(sql.api, growth, { spec: { verification: 'agent' } });
  const made = await runNext(sql, growth);
  await completeRun(sql.api, made);
  const judge = await runMode(sql, org, 'verify');
  const evidence = [{ kind: 'file', runId: made.runId, path: 'none.txt' }];
  const verdict = { kind: 'verification', verdict: 'failed', summary: 'x', evidence };
  test.match(await refusal(stageOutcome(sql, judge, verdict)), { status: 400, reason: 'not_stored' });
});
