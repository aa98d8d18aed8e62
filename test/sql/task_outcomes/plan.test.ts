import t from 'tap';
import {
  addDependency,
  cancelTask,
  capability,
  childrenOf,
  completePlan,
  completeRun,
  createSecondProfile,
  createTask,
  createTestOrganization,
  failRun,
  lastRequest,
  make,
  openItems,
  patchTask,
  planned,
  publishNow,
  pull,
  recordOutput,
  requestRows,
  retryTask,
  runMode,
  runNext,
  runPlan,
  stageOutcome,
  statuses,
  type TestOrganization,
  taskCreate,
  taskRow,
  updateProfile,
} from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { type JsonObject, openSession, openSql, refusal, transition } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

async function runRow(runId: string, at = sql): Promise<JsonObject> {
  const { rows } = await at.owner.query('select * from app.runs where id = $1', [runId]);
  return rows[0];
}

scenario('an initiative is planned, and waits for the tasks of its plan', async (test) => {
  const org = await createTestOrganization(sql);
  const second = await createSecondProfile(sql, org, { key: 'growth' });
  const run = await runPlan(sql, org);
  test.match(await taskRow(sql, org, run.taskId), { status: 'running', phase: 'plan' });
  const result = await completePlan(sql, run, [
    make('sales', { ownerProfileKey: 'growth', priority: 7, spec: { objective: 'Count' } }),
    make('report', { dependsOn: ['sales'] }),
    make('more', { kind: 'initiative', dependsOn: ['sales'] }),
  ]);
  test.same(result, { status: 'succeeded' });
  const root = await taskRow(sql, org, run.taskId);
  test.match(root, { status: 'blocked', phase: 'execute', blockers: [{ kind: 'children' }], active_run_id: null });
  test.ok(Number(root['graph_revision']) > 1, 'the structure has changed');
  const [sales, report, more] = await childrenOf(sql, org, run.taskId);
  test.match(sales, {
    title: 'sales',
    status: 'pending',
    phase: 'execute',
    owner_agent_profile_id: second.profileId,
    priority: 7,
    depth: 1,
    created_by_run_id: run.runId,
    spec: { objective: 'Count', budget: { maxAgentRuns: 10 } },
  });
  const waits = { status: 'blocked', blockers: [{ kind: 'dependency', taskId: sales?.id }] };
  test.match(report, { ...waits, owner_agent_profile_id: org.profileId });
  test.match(more, { ...waits, kind: 'initiative', phase: 'plan' }, 'planned in its turn');
  test.match(await runRow(run.runId), {
    status: 'succeeded',
    output: { result: { kind: 'planned', tasks: [{ key: 'sales', taskId: sales?.id }, {}, { key: 'more' }] } },
  });
  test.same(await completeRun(sql.api, run), { status: 'succeeded' }, 'sent again');
  test.equal((await childrenOf(sql, org, run.taskId)).length, 3);

  await completeRun(sql.api, await runMode(sql, second, 'execute'));
  await completeRun(sql.api, await runMode(sql, org, 'execute'));
  await completePlan(sql, await runMode(sql, org, 'plan'), [make('deep')]);
  await completeRun(sql.api, await runMode(sql, org, 'execute'));
  test.match(await taskRow(sql, org, run.taskId), {
    status: 'completed',
    phase: 'closed',
    result: { kind: 'completed' },
  });
});

scenario('a plan of fifty tasks over five levels is applied as a whole, and runs to its end', async (test) => {
  const org = await createTestOrganization(sql, { maxConcurrentRuns: 50, limits: { maxConcurrentRuns: 50 } });
  const run = await runPlan(sql, org);
  const operations: JsonObject[] = [];
  for (let level = 1; level <= 4; level += 1) {
    const parent = level === 1 ? {} : { parentKey: `level-${level - 1}` };
    operations.push(make(`level-${level}`, { kind: 'initiative', ...parent }));
  }
  for (let n = 0; n < 46; n += 1) {
    const dependsOn = n % 5 === 4 ? [`task-${n - 1}`] : [];
    operations.push(make(`task-${n}`, { parentKey: `level-${(n % 4) + 1}`, dependsOn }));
  }
  test.same(await completePlan(sql, run, operations), { status: 'succeeded' });
  const { rows } = await sql.owner.query(
    `select kind, phase, max(depth) as depth, count(*)::int as n from app.tasks where organization_id = $1 group by 1, 2 order by 1`,
    [org.organizationId],
  );
  test.same(rows, [
    { kind: 'initiative', phase: 'execute', depth: 4, n: 5 },
    { kind: 'task', phase: 'execute', depth: 5, n: 46 },
  ]);
  for (let n = 0; n < 46; n += 1) await completeRun(sql.api, await runMode(sql, org, 'execute'));
  test.match(await taskRow(sql, org, run.taskId), { status: 'completed', consumed_agent_run_count: 47 });
});

scenario('a plan changes, cancels and joins what is below, all or none', async (test) => {
  const org = await createTestOrganization(sql);
  const other = await createTask(sql, org, { scheduledAt: '2099-01-01T00:00:00Z' });
  const ids = await planned(sql, org, [make('one', { priority: 9 }), make('two'), make('three'), make('four')]);
  await failRun(sql.api, await runNext(sql, org));
  await patchTask(sql, org, ids['root'] ?? '', { priority: 2_000 });
  const run = await runMode(sql, org, 'plan');
  await completePlan(sql, run, [
    make('again', { dependsOn: [other.id] }),
    { op: 'update_task', task: ids['two'], title: 'renamed', spec: { objective: 'Otherwise' } },
    { op: 'add_dependency', task: ids['three'], dependsOn: 'again' },
    { op: 'cancel_task', task: ids['four'] },
  ]);
  const again = (await childrenOf(sql, org, ids['root'] ?? '')).find((child) => child['title'] === 'again');
  test.match(await taskRow(sql, org, ids['two'] ?? ''), { title: 'renamed', spec: { objective: 'Otherwise' } });
  test.match(await taskRow(sql, org, ids['three'] ?? ''), {
    status: 'blocked',
    blockers: [{ kind: 'dependency', taskId: again?.id }],
  });
  test.match(await taskRow(sql, org, ids['four'] ?? ''), { status: 'cancelled', failure_origin_id: null });
  test.match(again, { blockers: [{ kind: 'dependency', taskId: other.id }] }, 'an edge to another hierarchy');
  test.match(await taskRow(sql, org, ids['root'] ?? ''), { status: 'blocked', phase: 'execute', replan: null });
});

scenario('a plan that does not fit any more fails its run, and is tried again', async (test) => {
  const org = await createTestOrganization(sql);
  const ids = await planned(sql, org, [make('one', { priority: 9 }), make('two')]);
  await failRun(sql.api, await runNext(sql, org));
  await patchTask(sql, org, ids['root'] ?? '', { priority: 2_000 });
  const run = await runMode(sql, org, 'plan');
  await stageOutcome(sql, run, {
    kind: 'plan',
    operations: [make('new'), { op: 'update_task', task: ids['two'], title: 'x' }],
  });
  await cancelTask(sql.api, org, ids['two'] ?? '');
  test.same(await completeRun(sql.api, run), { status: 'failed' });
  test.match(await runRow(run.runId), {
    error: { code: 'plan_rejected', retryable: true, message: /outcome\.operations\.1\.task: the task is cancelled/ },
  });
  test.equal((await childrenOf(sql, org, ids['root'] ?? '')).length, 2, 'none of it was applied');
  test.match(await taskRow(sql, org, ids['root'] ?? ''), { status: 'pending', phase: 'plan' });
  await publishNow(sql, org, ids['root'] ?? '');
  const next = await runMode(sql, org, 'plan');
  test.equal(next.attempt, 2);
  test.same(await completePlan(sql, next, [make('new')]), { status: 'succeeded' });
});

scenario('a plan run that hands in nothing fails, until its attempts are used up', async (test) => {
  const org = await createTestOrganization(sql);
  let run = await runPlan(sql, org);
  for (let attempt = 1; attempt <= 3; attempt += 1) {
    test.same(await completeRun(sql.api, run), { status: 'failed' });
    test.match(await runRow(run.runId), { status: 'failed', error: { code: 'outcome_missing', retryable: true } });
    if (attempt === 3) break;
    test.match(await taskRow(sql, org, run.taskId), { status: 'pending', phase: 'plan' });
    await publishNow(sql, org, run.taskId);
    run = await runMode(sql, org, 'plan');
  }
  test.match(await taskRow(sql, org, run.taskId), { status: 'failed', error: { code: 'outcome_missing' } });
  await retryTask(sql.api, org, run.taskId);
  test.match(await taskRow(sql, org, run.taskId), { status: 'pending', phase: 'plan' });
  test.same(await completePlan(sql, await runMode(sql, org, 'plan'), [make('a')]), { status: 'succeeded' });
});

scenario('a plan run may wait, or ask first, by its agent or by its worker', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runPlan(sql, org);
  await stageOutcome(sql, run, { kind: 'needs_input', question: 'For whom?', options: [] });
  test.same(await completeRun(sql.api, run), { status: 'succeeded' });
  test.match(await taskRow(sql, org, run.taskId), {
    status: 'blocked',
    phase: 'plan',
    blockers: [{ kind: 'human' }],
  });
  await retryTask(sql.api, org, run.taskId);
  const again = await runMode(sql, org, 'plan');
  const waiting = { kind: 'waiting', until: '2099-01-01T00:00:00Z', reason: 'Monday' };
  test.same(await completeRun(sql.api, again, { result: waiting }), { status: 'succeeded' });
  test.match(await taskRow(sql, org, run.taskId), { status: 'waiting', phase: 'plan', waiting_reason: 'Monday' });
});

scenario('the first task that someone else adds is the plan; later ones are more of it', async (test) => {
  const org = await createTestOrganization(sql);
  const root = await createTask(sql, org, { kind: 'initiative' });
  const [claim] = await pull(sql.api, { organizationIds: [org.organizationId] });
  test.equal(claim?.['mode'], 'plan');
  await createTask(sql, org, { parentId: root.id });
  test.match(await taskRow(sql, org, root.id), {
    status: 'blocked',
    phase: 'execute',
    blockers: [{ kind: 'children' }],
  });
  test.match(await lastRequest(sql, org, root.id), { state: 'cancelled' }, 'and its claim is over');
  await createTask(sql, org, { parentId: root.id });
  test.equal((await requestRows(sql, org, root.id)).length, 1);
});

scenario('tasks that are added while it is being planned stay beside those of the plan', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runPlan(sql, org);
  await taskCreate(sql.api, org, { title: 'own', parentId: run.taskId }, capability(run.executionToken));
  test.match(await taskRow(sql, org, run.taskId), { status: 'running', phase: 'plan' });
  test.same(await completePlan(sql, run, []), { status: 'succeeded' }, 'a plan may leave it at those');
  test.match(await taskRow(sql, org, run.taskId), { status: 'blocked', phase: 'execute' });
});

scenario('an initiative with prerequisites is planned when they are completed', async (test) => {
  const org = await createTestOrganization(sql);
  const first = await createTask(sql, org);
  const root = await createTask(sql, org, { kind: 'initiative', dependsOn: [first.id] });
  test.match(root, { status: 'blocked', phase: 'plan', blockers: [{ kind: 'dependency', taskId: first.id }] });
  await completeRun(sql.api, await runNext(sql, org));
  test.equal((await runMode(sql, org, 'plan')).taskId, root.id);
});

scenario('plan runs count, and a used-up budget asks a person', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runPlan(sql, org, { spec: { budget: { maxAgentRuns: 1 } } });
  await failRun(sql.api, run, { retryable: true });
  test.match(await taskRow(sql, org, run.taskId), {
    status: 'blocked',
    phase: 'plan',
    blockers: [{ kind: 'budget' }],
  });
  test.match(await openItems(sql, org, run.taskId), [{ purpose: 'budget', title: /^Run budget used up/ }]);
  await patchTask(sql, org, run.taskId, { spec: { budget: { maxAgentRuns: 9 } } });
  test.same(await completePlan(sql, await runMode(sql, org, 'plan'), [make('a')]), { status: 'succeeded' });
});

scenario('a plan and a cancel of its initiative at once: one of the two wins whole', async (test) => {
  const org = await createTestOrganization(sql);
  for (const cancelFirst of [true, false]) {
    const run = await runPlan(sql, org);
    await stageOutcome(sql, run, { kind: 'plan', operations: [make('a'), make('b')] });
    const [one, two] = [await openSession(test, sql), await openSession(test, sql)];
    const cancel = () => cancelTask(cancelFirst ? one : two, org, run.taskId);
    const complete = () => completeRun(cancelFirst ? two : one, run);
    await one.begin();
    await (cancelFirst ? cancel() : complete());
    const late = cancelFirst ? complete() : cancel();
    await two.waits();
    await one.commit();
    const result = await late;
    test.match(await taskRow(sql, org, run.taskId), { status: 'cancelled' });
    const children = await childrenOf(sql, org, run.taskId);
    test.equal(children.length, cancelFirst ? 0 : 2);
    for (const child of children) test.equal(child.status, 'cancelled');
    if (cancelFirst) test.same(result, { status: 'cancelled' });
  }
});

scenario('a plan and the end of a task that it names in another hierarchy at once', async (test) => {
  const org = await createTestOrganization(sql);
  const first = await createTask(sql, org, { priority: 5_000 });
  const held = await runNext(sql, org);
  const run = await runPlan(sql, org);
  await stageOutcome(sql, run, { kind: 'plan', operations: [make('a', { dependsOn: [first.id] })] });
  const [one, two] = [await openSession(test, sql), await openSession(test, sql)];
  await one.begin();
  await completeRun(one, run);
  // It reaches one hierarchy more than it had locked: the API tries such a call again. Expected before it can happen.
  const ending = test.rejects(completeRun(two, held), { code: '40001' });
  await two.waits();
  await one.commit();
  await ending;
  test.same(await completeRun(sql.api, held), { status: 'succeeded' });
  const [a] = await childrenOf(sql, org, run.taskId);
  test.match(a, { status: 'pending' }, 'the end found the edge');
});

scenario('files that a plan run hands in have to be stored', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runPlan(sql, org);
  await stageOutcome(sql, run, { kind: 'plan', operations: [make('a')] });
  const result = { kind: 'completed', summary: 'Planned', artifacts: [{ path: 'plan.md' }] };
  test.match(await refusal(completeRun(sql.api, run, { result })), { status: 400, reason: 'not_stored' });
  test.match(await taskRow(sql, org, run.taskId), { status: 'running' }, 'and the lease stays');
  await recordOutput(sql.api, run, 'plan.md');
  test.same(await completeRun(sql.api, run, { result }), { status: 'succeeded' });
  test.match(await runRow(run.runId), { output: { result: { artifacts: [{ path: 'plan.md' }] } } });
});

scenario('a plan run is given how things stand', async (test) => {
  const org = await createTestOrganization(sql);
  const ids = await planned(sql, org, [make('one')]);
  await failRun(sql.api, await runNext(sql, org), { code: 'no_paper' });
  const [claim] = await pull(sql.api, { organizationIds: [org.organizationId] });
  test.match(claim?.task, {
    replan: { reason: 'child_failed', taskId: ids['one'], error: { code: 'no_paper' } },
    children: [{ id: ids['one'], status: 'failed', error: { code: 'no_paper' } }],
  });
  await addDependency(sql.api, org, ids['root'] ?? '', (await createTask(sql, org)).id, { required: false });
  test.same(await statuses(sql, org, ids), { root: 'pending', one: 'failed' });
});

/** A plan run whose initiative has two tasks already. */
async function planWithTwo(org: TestOrganization) {
  const run = await runPlan(sql, org);
  const [a, b] = [
    await createTask(sql, org, { parentId: run.taskId }),
    await createTask(sql, org, { parentId: run.taskId }),
  ];
  return { run, a: a.id, b: b.id, edge: { op: 'add_dependency', task: a.id, dependsOn: b.id } };
}

scenario('a plan that needs what is an optional edge is refused, early or late', async (test) => {
  const org = await createTestOrganization(sql);
  const early = await planWithTwo(org);
  await addDependency(sql.api, org, early.a, early.b, { required: false });
  test.match(await refusal(stageOutcome(sql, early.run, { kind: 'plan', operations: [early.edge] })), {
    status: 409,
    issues: [{ path: 'outcome.operations.0.dependsOn', code: 'edge_differs' }],
  });
  test.match(await refusal(addDependency(sql.api, org, early.a, early.b)), { status: 409, reason: 'edge_differs' });
  test.same(await completePlan(sql, early.run, [make('c')]), { status: 'succeeded' });

  const late = await planWithTwo(org);
  await stageOutcome(sql, late.run, { kind: 'plan', operations: [late.edge] });
  await addDependency(sql.api, org, late.a, late.b, { required: false });
  test.same(await completeRun(sql.api, late.run), { status: 'failed' });
});

scenario('a plan goes on with a verifier that has gone: the operator judges', async (test) => {
  const org = await createTestOrganization(sql);
  const judge = await createSecondProfile(sql, org, { key: 'judge' });
  const growth = await createSecondProfile(sql, org, { kind: 'department' });
  const run = await runPlan(sql, org);
  const { id } = await createTask(sql, growth, {
    parentId: run.taskId,
    spec: { verification: 'agent', verifierProfileKey: 'judge' },
  });
  await updateProfile(sql.api, judge, { status: 'disabled' });
  await transition(sql.api, 'agent_profile_delete', {
    organizationId: org.organizationId,
    agentProfileId: judge.profileId,
  });
  const operations = [{ op: 'update_task', task: id, spec: { objective: 'Another' } }];
  test.same(await completePlan(sql, run, operations), { status: 'succeeded' });
  test.match(await taskRow(sql, org, id), { spec: { objective: 'Another', verifierProfileKey: 'judge' } });
});

t.test('a plan that cannot be applied for a reason that nobody foresaw fails its run', async (test) => {
  const spoiled = await openSql(test);
  await spoiled.owner.query(
    `create or replace function app.plan_issues(p_organization_id uuid, t app.tasks, p_operations jsonb)
     returns jsonb language sql as 'select null::jsonb'`,
  );
  const org = await createTestOrganization(spoiled);
  const run = await runPlan(spoiled, org);
  const operations = [make('a', { dependsOn: ['b'] }), make('b', { dependsOn: ['a'] })];
  test.same(await completePlan(spoiled, run, operations), { status: 'failed' });
  test.same(await childrenOf(spoiled, org, run.taskId), [], 'and nothing of it is left');
  test.match(await runRow(run.runId, spoiled), { status: 'failed', error: { code: 'plan_rejected', retryable: true } });
});
