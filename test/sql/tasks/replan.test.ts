import t from 'tap';
import {
  cancelTask,
  completePlan,
  completeRun,
  createTask,
  createTestOrganization,
  failRun,
  make,
  openItems,
  patchTask,
  planned,
  retryTask,
  runMode,
  runNext,
  stageOutcome,
  statuses,
  taskRow,
} from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSession, openSql, refusal } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const conflict = { status: 409, code: 'state_conflict' };

scenario('a failed child has its initiative planned again, and the siblings stay as they are', async (test) => {
  const org = await createTestOrganization(sql);
  const ids = await planned(sql, org, [
    make('failing', { priority: 9 }),
    make('beside', { priority: 8 }),
    make('after', { dependsOn: ['failing'] }),
  ]);
  const root = ids['root'] ?? '';
  const failing = await runNext(sql, org);
  const beside = await runNext(sql, org);
  await failRun(sql.api, failing, { code: 'no_paper' });
  test.same(await statuses(sql, org, ids), {
    root: 'pending',
    failing: 'failed',
    beside: 'running',
    after: 'blocked',
  });
  test.match(await taskRow(sql, org, root), {
    phase: 'plan',
    replan_count: 1,
    replan: { reason: 'child_failed', taskId: ids['failing'], error: { code: 'no_paper' } },
    failure_origin_id: null,
    error: null,
  });
  test.match(await taskRow(sql, org, ids['failing'] ?? ''), { failure_origin_id: ids['failing'] });
  const plan = await runMode(sql, org, 'plan');
  test.same(await completeRun(sql.api, beside), { status: 'succeeded' });
  test.match(await taskRow(sql, org, root), { status: 'running', phase: 'plan' });
  await completePlan(sql, plan, [make('instead'), { op: 'cancel_task', task: ids['after'] }]);
  test.match(await taskRow(sql, org, root), { status: 'blocked', phase: 'execute', replan: null, replan_count: 1 });
  await completeRun(sql.api, await runMode(sql, org, 'execute'));
  test.match(await taskRow(sql, org, root), { status: 'completed' });
});

scenario('when the replans are used up, a failure fails the initiative and those above it', async (test) => {
  const org = await createTestOrganization(sql);
  const outer = await planned(sql, org, [
    make('inner', { kind: 'initiative', priority: 50, spec: { budget: { maxReplans: 1 } } }),
    make('beside'),
  ]);
  const inner = outer['inner'] ?? '';
  await completePlan(sql, await runMode(sql, org, 'plan'), [make('first', { priority: 50 })]);
  await failRun(sql.api, await runNext(sql, org));
  test.match(await taskRow(sql, org, inner), { phase: 'plan', replan_count: 1 });
  test.match(await taskRow(sql, org, outer['root'] ?? ''), { phase: 'execute', replan_count: 0 }, 'not of those above');
  await completePlan(sql, await runMode(sql, org, 'plan'), [make('second', { priority: 50 })]);
  const last = await runNext(sql, org);
  await failRun(sql.api, last, { code: 'no_luck' });
  test.same(await statuses(sql, org, outer), { root: 'failed', inner: 'failed', beside: 'cancelled' });
  for (const id of Object.values(outer)) test.match(await taskRow(sql, org, id), { failure_origin_id: last.taskId });
  await retryTask(sql.api, org, outer['beside'] ?? '');
  test.same(await statuses(sql, org, { ...outer, second: last.taskId }), {
    root: 'blocked',
    inner: 'blocked',
    beside: 'pending',
    second: 'pending',
  });
  test.match(await taskRow(sql, org, inner), { phase: 'execute', replan_count: 1 });
});

scenario('an inner initiative whose plan fails for good is a failed child of the outer one', async (test) => {
  const org = await createTestOrganization(sql);
  const ids = await planned(sql, org, [make('inner', { kind: 'initiative' })]);
  await failRun(sql.api, await runMode(sql, org, 'plan'));
  test.match(await taskRow(sql, org, ids['inner'] ?? ''), { status: 'failed' });
  test.match(await taskRow(sql, org, ids['root'] ?? ''), { status: 'pending', phase: 'plan', replan_count: 1 });
});

scenario('a failure while the next plan is only waiting belongs to it', async (test) => {
  const org = await createTestOrganization(sql);
  const ids = await planned(sql, org, [make('one', { priority: 9 }), make('two', { priority: 8 })]);
  const [one, two] = [await runNext(sql, org), await runNext(sql, org)];
  await failRun(sql.api, one);
  await failRun(sql.api, two);
  test.match(await taskRow(sql, org, ids['root'] ?? ''), { status: 'pending', phase: 'plan', replan_count: 1 });
  await completePlan(sql, await runMode(sql, org, 'plan'), [make('three')]);
  await completeRun(sql.api, await runNext(sql, org));
  test.match(await taskRow(sql, org, ids['root'] ?? ''), { status: 'completed' });
});

scenario('a failure that a running plan has not seen counts when that plan is applied', async (test) => {
  for (const maxReplans of [2, 1]) {
    const org = await createTestOrganization(sql);
    const ids = await planned(sql, org, [make('one', { priority: 9 }), make('two', { priority: 8 })], {
      spec: { budget: { maxReplans } },
    });
    const [one, two] = [await runNext(sql, org), await runNext(sql, org)];
    await failRun(sql.api, one);
    const plan = await runMode(sql, org, 'plan');
    await stageOutcome(sql, plan, { kind: 'plan', operations: [make('three')] });
    await failRun(sql.api, two);
    test.match(await taskRow(sql, org, ids['root'] ?? ''), { status: 'running', replan: { missed: true } });
    test.same(await completeRun(sql.api, plan), { status: 'succeeded' });
    test.match(
      await taskRow(sql, org, ids['root'] ?? ''),
      maxReplans === 2
        ? { status: 'pending', phase: 'plan', replan_count: 2, replan: { taskId: ids['two'] } }
        : { status: 'failed', failure_origin_id: ids['two'] },
    );
  }
});

scenario('nothing completed is planned again, until a person is asked for more replans', async (test) => {
  const org = await createTestOrganization(sql);
  const ids = await planned(sql, org, [make('one')], { spec: { budget: { maxReplans: 1 } } });
  const root = ids['root'] ?? '';
  await cancelTask(sql.api, org, ids['one'] ?? '');
  test.match(await taskRow(sql, org, root), {
    status: 'pending',
    phase: 'plan',
    replan: { reason: 'none_completed' },
  });
  test.same(await completePlan(sql, await runMode(sql, org, 'plan'), []), { status: 'succeeded' });
  test.match(await taskRow(sql, org, root), {
    status: 'blocked',
    phase: 'plan',
    blockers: [{ kind: 'budget' }],
    replan_count: 1,
  });
  test.match(await openItems(sql, org, root), [
    { purpose: 'budget', title: /^Replans used up/, options: ['raise', 'cancel'] },
  ]);
  await patchTask(sql, org, root, { spec: { budget: { maxReplans: 2 } } });
  test.match(await taskRow(sql, org, root), { status: 'pending', phase: 'plan', replan_count: 2 });
  test.same(await openItems(sql, org, root), []);
  await completePlan(sql, await runMode(sql, org, 'plan'), [make('two')]);
  await completeRun(sql.api, await runNext(sql, org));
  test.match(await taskRow(sql, org, root), { status: 'completed' });
});

scenario(
  'a failed child may be retried while its initiative is open, and not when it went on without it',
  async (test) => {
    const org = await createTestOrganization(sql);
    const ids = await planned(sql, org, [make('one', { priority: 9 }), make('two')]);
    const root = ids['root'] ?? '';
    await failRun(sql.api, await runNext(sql, org));
    await retryTask(sql.api, org, ids['one'] ?? '');
    test.match(await taskRow(sql, org, ids['one'] ?? ''), { status: 'pending' });
    await patchTask(sql, org, root, { priority: 100 });
    await completePlan(sql, await runMode(sql, org, 'plan'), []);
    test.match(await taskRow(sql, org, root), {
      status: 'blocked',
      phase: 'execute',
      blockers: [{ kind: 'children' }],
    });
    await failRun(sql.api, await runNext(sql, org));
    await completePlan(sql, await runMode(sql, org, 'plan'), []);
    await completeRun(sql.api, await runNext(sql, org));
    test.match(await taskRow(sql, org, root), { status: 'completed' });
    test.match(await refusal(retryTask(sql.api, org, ids['one'] ?? '')), conflict);
  },
);

scenario('a failure of a plan run cancels what is open below, and a retry plans again', async (test) => {
  const org = await createTestOrganization(sql);
  const ids = await planned(sql, org, [make('one', { priority: 9 }), make('two')]);
  await failRun(sql.api, await runNext(sql, org));
  await patchTask(sql, org, ids['root'] ?? '', { priority: 100 });
  await failRun(sql.api, await runMode(sql, org, 'plan'));
  test.same(await statuses(sql, org, ids), { root: 'failed', one: 'failed', two: 'cancelled' });
  await retryTask(sql.api, org, ids['two'] ?? '');
  test.match(await taskRow(sql, org, ids['root'] ?? ''), { status: 'pending', phase: 'plan', replan_count: 1 });
  test.match(await taskRow(sql, org, ids['two'] ?? ''), { status: 'pending' });
});

scenario('two children that fail at once take one replan', async (test) => {
  const org = await createTestOrganization(sql);
  const ids = await planned(sql, org, [make('one'), make('two')]);
  const [first, second] = [await runNext(sql, org), await runNext(sql, org)];
  const [one, two] = [await openSession(test, sql), await openSession(test, sql)];
  await one.begin();
  await failRun(one, first);
  const failing = failRun(two, second);
  await two.waits();
  await one.commit();
  await failing;
  test.match(await taskRow(sql, org, ids['root'] ?? ''), { status: 'pending', phase: 'plan', replan_count: 1 });
});

scenario('a replan needs a run of the budget, and another hierarchy waits for the initiative', async (test) => {
  const org = await createTestOrganization(sql);
  const ids = await planned(sql, org, [make('one')], { spec: { budget: { maxAgentRuns: 2 } } });
  const waiting = await createTask(sql, org, { dependsOn: [ids['root']], priority: -5 });
  await failRun(sql.api, await runNext(sql, org));
  test.match(await taskRow(sql, org, ids['root'] ?? ''), {
    status: 'blocked',
    phase: 'plan',
    blockers: [{ kind: 'budget' }],
  });
  await patchTask(sql, org, ids['root'] ?? '', { spec: { budget: { maxAgentRuns: 9 } } });
  await completePlan(sql, await runMode(sql, org, 'plan'), [make('two')]);
  await completeRun(sql.api, await runNext(sql, org));
  test.match(await taskRow(sql, org, waiting.id), { status: 'pending' });
});
