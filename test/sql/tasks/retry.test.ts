import t from 'tap';
import {
  addDependency,
  cancelTask,
  completeRun,
  createInitiative,
  createSecondProfile,
  createTask,
  createTestOrganization,
  failingHierarchy,
  failRun,
  NO_REPLANS,
  openItems,
  patchTask,
  requestRows,
  retryTask,
  runNew,
  runNext,
  SERVICE,
  statuses,
  taskRow,
  updateProfile,
} from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSession, openSql, refusal } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const conflict = { status: 409, code: 'state_conflict' };

scenario('a retry brings back exactly what the failure touched, whichever of them is retried', async (test) => {
  for (const retried of ['failing', 'root', 'middle', 'sibling', 'after', 'uncle'] as const) {
    const org = await createTestOrganization(sql);
    const tree = await failingHierarchy(sql, org);
    const failed = await runNext(sql, org);
    await failRun(sql.api, failed, { retryable: true, maxAttempts: 1 });
    const counted = await taskRow(sql, org, tree.root);
    await retryTask(sql.api, org, tree[retried]);
    test.same(
      await statuses(sql, org, tree),
      {
        root: 'blocked',
        done: 'completed',
        middle: 'blocked',
        failing: 'pending',
        sibling: 'pending',
        after: 'blocked',
        uncle: 'pending',
      },
      retried,
    );
    for (const id of [tree.root, tree.middle]) {
      test.match(await taskRow(sql, org, id), {
        blockers: [{ kind: 'children' }],
        error: null,
        failure_origin_id: null,
      });
    }
    test.match(await taskRow(sql, org, tree.after), { blockers: [{ kind: 'dependency', taskId: tree.failing }] });
    test.match(
      await taskRow(sql, org, tree.root),
      { consumed_agent_run_count: counted['consumed_agent_run_count'] },
      'budgets are not given back',
    );
    const again = await runNext(sql, org);
    test.match(again, { taskId: tree.failing, attempt: 1 }, 'attempts start again, in a new request');
    test.not(again.runRequestId, failed.runRequestId);
    test.match(
      await requestRows(sql, org, tree.failing),
      [{ state: 'finished' }, { state: 'started' }],
      'the history stays',
    );
  }
});

scenario('a retried hierarchy runs to its end', async (test) => {
  const org = await createTestOrganization(sql);
  const tree = await failingHierarchy(sql, org);
  await failRun(sql.api, await runNext(sql, org));
  await retryTask(sql.api, org, tree.failing);
  for (let n = 0; n < 4; n += 1) await completeRun(sql.api, await runNext(sql, org));
  for (const status of Object.values(await statuses(sql, org, tree))) test.equal(status, 'completed');
});

scenario('a lone task that failed is retried, and once more it is only open', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  await failRun(sql.api, run);
  await retryTask(sql.api, org, run.taskId);
  test.match(await taskRow(sql, org, run.taskId), {
    status: 'pending',
    phase: 'execute',
    error: null,
    failure_origin_id: null,
  });
  test.match(await refusal(retryTask(sql.api, org, run.taskId)), conflict);
});

scenario('two retries at once: one brings back, the other finds it open', async (test) => {
  const org = await createTestOrganization(sql);
  const tree = await failingHierarchy(sql, org);
  await failRun(sql.api, await runNext(sql, org));
  const [one, two] = [await openSession(test, sql), await openSession(test, sql)];
  await one.begin();
  await retryTask(one, org, tree.failing);
  const late = refusal(retryTask(two, org, tree.root));
  await two.waits();
  await one.commit();
  test.match(await late, conflict);
  test.equal((await requestRows(sql, org, tree.sibling)).filter((request) => request.state === 'published').length, 1);
});

scenario('what is open or completed is not retried, and what a person cancelled by no agent', async (test) => {
  const org = await createTestOrganization(sql);
  const foreign = await createTestOrganization(sql);
  const pending = await createTask(sql, org);
  const completed = await runNew(sql, org);
  await completeRun(sql.api, completed);
  const running = await runNew(sql, org);
  const blocked = await createTask(sql, org, { dependsOn: [pending.id] });
  const cancelled = await createTask(sql, org);
  await cancelTask(sql.api, org, cancelled.id);
  for (const id of [pending.id, completed.taskId, running.taskId, blocked.id]) {
    test.match(await refusal(retryTask(sql.api, org, id)), conflict);
  }
  test.match(await refusal(retryTask(sql.api, org, cancelled.id, SERVICE)), conflict);
  test.match(await refusal(retryTask(sql.api, foreign, completed.taskId)), { status: 404, code: 'task_not_found' });
});

scenario('a retry below an ancestor that a person had cancelled meanwhile is refused', async (test) => {
  const org = await createTestOrganization(sql);
  const tree = await failingHierarchy(sql, org);
  await failRun(sql.api, await runNext(sql, org));
  await retryTask(sql.api, org, tree.failing);
  await cancelTask(sql.api, org, tree.root);
  test.match(await refusal(retryTask(sql.api, org, tree.failing)), conflict);
  test.match(await refusal(retryTask(sql.api, org, tree.sibling)), conflict);
});

scenario('a retry is refused while an open task has the dedupe key of one that would come back', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org, { dedupeKey: 'k' });
  await failRun(sql.api, run);
  const other = await createTask(sql, org, { dedupeKey: 'k' });
  test.match(await refusal(retryTask(sql.api, org, run.taskId)), conflict);
  test.match(await taskRow(sql, org, run.taskId), { status: 'failed' });
  await cancelTask(sql.api, org, other.id);
  await retryTask(sql.api, org, run.taskId);
});

scenario('a retry while the profile is disabled waits for the profile', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  await failRun(sql.api, run);
  await updateProfile(sql.api, org, { status: 'disabled' });
  await retryTask(sql.api, org, run.taskId);
  test.match(await taskRow(sql, org, run.taskId), { status: 'blocked', blockers: [{ kind: 'profile' }] });
  await updateProfile(sql.api, org, { status: 'enabled' });
  test.match(await taskRow(sql, org, run.taskId), { status: 'pending' });
});

scenario('a retry and the end of its profile at once: none is left ready that nobody runs', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  await failRun(sql.api, run);
  const [one, two] = [await openSession(test, sql), await openSession(test, sql)];
  await one.begin();
  await retryTask(one, org, run.taskId);
  const disabling = updateProfile(two, org, { status: 'disabled' });
  await two.waits();
  await one.commit();
  await disabling;
  test.match(await taskRow(sql, org, run.taskId), { status: 'blocked', blockers: [{ kind: 'profile' }] });
});

scenario('a retry with a used-up budget asks for more', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org, { spec: { budget: { maxAgentRuns: 1 } } });
  await failRun(sql.api, run);
  await retryTask(sql.api, org, run.taskId);
  test.match(await taskRow(sql, org, run.taskId), { status: 'blocked', blockers: [{ kind: 'budget' }] });
  test.match(await openItems(sql, org, run.taskId), [{ purpose: 'budget' }]);
  await patchTask(sql, org, run.taskId, { spec: { budget: { maxAgentRuns: 2 } } });
  test.equal((await runNext(sql, org)).taskId, run.taskId);
});

scenario('a failure tells those who wait for it in other hierarchies, and a retry takes that back', async (test) => {
  const org = await createTestOrganization(sql);
  const tree = await failingHierarchy(sql, org);
  const other = await createInitiative(sql, org, ['waits']);
  await addDependency(sql.api, org, other.waits, tree.failing);
  const initiative = (await createTask(sql, org, { kind: 'initiative', dependsOn: [tree.root] })).id;
  await failRun(sql.api, await runNext(sql, org));
  test.match(await taskRow(sql, org, other.waits), {
    status: 'blocked',
    blockers: [{ kind: 'dependency', taskId: tree.failing }],
  });
  test.match(await openItems(sql, org, other.waits), [{ purpose: 'prerequisite', kind: 'question' }]);
  test.match(await openItems(sql, org, initiative), [{ purpose: 'prerequisite' }]);
  await retryTask(sql.api, org, tree.sibling);
  test.same(await openItems(sql, org, other.waits), []);
  test.same(await openItems(sql, org, initiative), []);
  await completeRun(sql.api, await runNext(sql, org));
  test.match(await taskRow(sql, org, other.waits), { status: 'pending' });
});

scenario('what a retry brings back waits for exactly what it has to wait for, of whatever kind', async (test) => {
  const org = await createTestOrganization(sql);
  const away = await createSecondProfile(sql, org);
  const { root } = await createInitiative(sql, org, [], NO_REPLANS);
  const below = (fields: Record<string, unknown>) => createTask(sql, org, { parentId: root, ...fields });
  const outside = (await createTask(sql, org, { scheduledAt: '2999-01-01T00:00:00Z' })).id;
  const done = (await below({ priority: 10 })).id;
  const failing = (await below({ priority: 9 })).id;
  await completeRun(sql.api, await runNext(sql, org));
  const tired = (await below({ priority: 8, dependsOn: [done], spec: { budget: { maxAgentRuns: 1 } } })).id;
  const ids = {
    failing,
    tired,
    group: (await below({ kind: 'initiative', dependsOn: [failing] })).id,
    empty: (await below({ kind: 'initiative' })).id,
    abroad: (await below({ dependsOn: [outside, done] })).id,
    optional: (await below({})).id,
    later: (await below({ scheduledAt: '2999-01-01T00:00:00Z', dependsOn: [failing] })).id,
    disabled: (await below({ ownerAgentProfileId: away.profileId, dependsOn: [failing] })).id,
  };
  await createTask(sql, org, { parentId: ids.group });
  await addDependency(sql.api, org, ids.optional, failing, { required: false });
  const run = await runNext(sql, org);
  await failRun(sql.api, await runNext(sql, org), { retryable: true });
  await failRun(sql.api, run);
  await updateProfile(sql.api, away, { status: 'disabled' });
  await retryTask(sql.api, org, root);

  const causes = new Map<string, unknown>();
  for (const [name, id] of Object.entries(ids)) {
    const { blockers } = (await taskRow(sql, org, id)) as unknown as { blockers: { kind: string }[] };
    causes.set(
      name,
      blockers.map((one) => one.kind),
    );
  }
  test.same(Object.fromEntries(causes), {
    failing: [],
    tired: ['budget'],
    group: ['dependency', 'children'],
    empty: [],
    abroad: ['dependency'],
    optional: [],
    later: ['dependency', 'schedule'],
    disabled: ['dependency', 'profile'],
  });
});

scenario('an owner brings back what was cancelled, with all that this cancel ended, and nothing else', async (test) => {
  const org = await createTestOrganization(sql);
  const root = (await createTask(sql, org, { kind: 'initiative' })).id;
  const middle = (await createTask(sql, org, { kind: 'initiative', parentId: root })).id;
  const [deep, before] = [
    (await createTask(sql, org, { parentId: middle })).id,
    (await createTask(sql, org, { parentId: middle })).id,
  ];
  const beside = (await createTask(sql, org, { parentId: root })).id;
  await cancelTask(sql.api, org, before);
  await cancelTask(sql.api, org, middle);
  await cancelTask(sql.api, org, middle);
  const together = await refusal(retryTask(sql.api, org, deep));
  test.match(together, { ...conflict, message: /cancelled together with I-2/ });
  test.match(await refusal(retryTask(sql.api, org, before)), conflict, 'its initiative is cancelled');
  await retryTask(sql.api, org, middle);
  test.same(await statuses(sql, org, { root, middle, deep, before, beside }), {
    root: 'blocked',
    middle: 'blocked',
    deep: 'pending',
    before: 'cancelled',
    beside: 'pending',
  });
  test.match(await taskRow(sql, org, middle), { phase: 'execute', cancel_origin_id: null });
  await retryTask(sql.api, org, before);
  test.match(await taskRow(sql, org, before), { status: 'pending' });
  await cancelTask(sql.api, org, root);
  test.match(await refusal(retryTask(sql.api, org, middle)), conflict);
  await retryTask(sql.api, org, root);
  for (const id of [deep, before, beside]) test.match(await taskRow(sql, org, id), { status: 'pending' });
});

scenario('what was cancelled comes back only while the initiative above is open', async (test) => {
  const org = await createTestOrganization(sql);
  const { root, one, two } = await createInitiative(sql, org, ['one', 'two']);
  await cancelTask(sql.api, org, two);
  await completeRun(sql.api, await runNext(sql, org));
  test.match(await taskRow(sql, org, one), { status: 'completed' });
  test.match(await taskRow(sql, org, root), { status: 'completed' });
  test.match(await refusal(retryTask(sql.api, org, two)), conflict);
});
