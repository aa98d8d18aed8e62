import t from 'tap';
import {
  addDependency,
  cancelTask,
  completeRun,
  createInitiative,
  createPlace,
  createSecondProfile,
  createTask,
  endLease,
  expire,
  failRun,
  lastRequest,
  openItems,
  type Place,
  patchTask,
  requestRows,
  retryTask,
  runNew,
  runNext,
  statuses,
  taskRow,
  updateProfile,
} from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSession, openSql, refusal } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const conflict = { status: 409, code: 'state_conflict' };
/** An initiative that is never planned again: what fails below it fails it. */
const last = { spec: { budget: { maxReplans: 0 } } };

/** An initiative with one task done, one about to fail (highest priority), and work of every kind beside it. */
async function hierarchy(place: Place) {
  const { root } = await createInitiative(sql, place, [], last);
  const done = (await createTask(sql, place, { parentId: root, priority: 10 })).id;
  const middle = (await createTask(sql, place, { kind: 'initiative', parentId: root, ...last })).id;
  const failing = (await createTask(sql, place, { parentId: middle, priority: 9 })).id;
  const sibling = (await createTask(sql, place, { parentId: middle })).id;
  const after = (await createTask(sql, place, { parentId: root, dependsOn: [failing] })).id;
  const uncle = (await createTask(sql, place, { parentId: root, priority: 8 })).id;
  await completeRun(sql.api, await runNext(sql, place));
  return { root, done, middle, failing, sibling, after, uncle };
}

scenario('a failure fails its ancestors, cancels what is open beside it, and all of them remember it', async (test) => {
  const place = await createPlace(sql);
  const tree = await hierarchy(place);
  const run = await runNext(sql, place);
  const beside = await runNext(sql, place);
  test.same([run.taskId, beside.taskId], [tree.failing, tree.uncle]);
  await failRun(sql.api, run, { code: 'no_paper' });
  test.same(await statuses(sql, place, tree), {
    root: 'failed',
    done: 'completed',
    middle: 'failed',
    failing: 'failed',
    sibling: 'cancelled',
    after: 'cancelled',
    uncle: 'cancelled',
  });
  for (const id of [tree.root, tree.middle, tree.failing, tree.sibling, tree.after, tree.uncle]) {
    test.match(await taskRow(sql, place, id), { failure_origin_id: tree.failing, phase: 'closed' });
  }
  test.match(await taskRow(sql, place, tree.failing), { error: { code: 'no_paper' } });
  test.match(await taskRow(sql, place, tree.root), { error: { code: 'child_failed', taskId: tree.failing } });
  test.same(await completeRun(sql.api, beside), { status: 'cancelled' }, 'what ran beside it reports a cancelled run');
});

scenario('a retry brings back exactly what the failure touched, whichever of them is retried', async (test) => {
  for (const retried of ['failing', 'root', 'middle', 'sibling', 'after', 'uncle'] as const) {
    const place = await createPlace(sql);
    const tree = await hierarchy(place);
    const failed = await runNext(sql, place);
    await failRun(sql.api, failed, { retryable: true, maxAttempts: 1 });
    const counted = await taskRow(sql, place, tree.root);
    await retryTask(sql.api, place, tree[retried]);
    test.same(
      await statuses(sql, place, tree),
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
      test.match(await taskRow(sql, place, id), {
        blockers: [{ kind: 'children' }],
        error: null,
        failure_origin_id: null,
      });
    }
    test.match(await taskRow(sql, place, tree.after), { blockers: [{ kind: 'dependency', taskId: tree.failing }] });
    test.match(
      await taskRow(sql, place, tree.root),
      { consumed_agent_run_count: counted['consumed_agent_run_count'] },
      'budgets are not given back',
    );
    const again = await runNext(sql, place);
    test.match(again, { taskId: tree.failing, attempt: 1 }, 'attempts start again, in a new request');
    test.not(again.runRequestId, failed.runRequestId);
    test.match(
      await requestRows(sql, place, tree.failing),
      [{ state: 'finished' }, { state: 'started' }],
      'the history stays',
    );
  }
});

scenario('a retried hierarchy runs to its end', async (test) => {
  const place = await createPlace(sql);
  const tree = await hierarchy(place);
  await failRun(sql.api, await runNext(sql, place));
  await retryTask(sql.api, place, tree.failing);
  for (let n = 0; n < 4; n += 1) await completeRun(sql.api, await runNext(sql, place));
  for (const status of Object.values(await statuses(sql, place, tree))) test.equal(status, 'completed');
});

scenario('a lone task that failed is retried, and once more it is only open', async (test) => {
  const place = await createPlace(sql);
  const run = await runNew(sql, place);
  await failRun(sql.api, run);
  await retryTask(sql.api, place, run.taskId);
  test.match(await taskRow(sql, place, run.taskId), {
    status: 'pending',
    phase: 'execute',
    error: null,
    failure_origin_id: null,
  });
  test.match(await refusal(retryTask(sql.api, place, run.taskId)), conflict);
});

scenario('two retries at once: one brings back, the other finds it open', async (test) => {
  const place = await createPlace(sql);
  const tree = await hierarchy(place);
  await failRun(sql.api, await runNext(sql, place));
  const [one, two] = [await openSession(test, sql), await openSession(test, sql)];
  await one.begin();
  await retryTask(one, place, tree.failing);
  const late = refusal(retryTask(two, place, tree.root));
  await two.waits();
  await one.commit();
  test.match(await late, conflict);
  test.equal(
    (await requestRows(sql, place, tree.sibling)).filter((request) => request.state === 'published').length,
    1,
  );
});

scenario('what is open, completed or cancelled by a person is not retried', async (test) => {
  const place = await createPlace(sql);
  const foreign = await createPlace(sql);
  const pending = await createTask(sql, place);
  const completed = await runNew(sql, place);
  await completeRun(sql.api, completed);
  const running = await runNew(sql, place);
  const blocked = await createTask(sql, place, { dependsOn: [pending.id] });
  const cancelled = await createTask(sql, place);
  await cancelTask(sql.api, place, cancelled.id);
  for (const id of [pending.id, completed.taskId, running.taskId, blocked.id, cancelled.id]) {
    test.match(await refusal(retryTask(sql.api, place, id)), conflict);
  }
  test.match(await refusal(retryTask(sql.api, foreign, completed.taskId)), { status: 404, code: 'task_not_found' });
});

scenario('a retry below an ancestor that a person had cancelled meanwhile is refused', async (test) => {
  const place = await createPlace(sql);
  const tree = await hierarchy(place);
  await failRun(sql.api, await runNext(sql, place));
  await retryTask(sql.api, place, tree.failing);
  await cancelTask(sql.api, place, tree.root);
  test.match(await refusal(retryTask(sql.api, place, tree.failing)), conflict);
  test.match(await refusal(retryTask(sql.api, place, tree.sibling)), conflict);
});

scenario('a retry is refused while an open task has the dedupe key of one that would come back', async (test) => {
  const place = await createPlace(sql);
  const run = await runNew(sql, place, { dedupeKey: 'k' });
  await failRun(sql.api, run);
  const other = await createTask(sql, place, { dedupeKey: 'k' });
  test.match(await refusal(retryTask(sql.api, place, run.taskId)), conflict);
  test.match(await taskRow(sql, place, run.taskId), { status: 'failed' });
  await cancelTask(sql.api, place, other.id);
  await retryTask(sql.api, place, run.taskId);
});

scenario('a retry while the profile is disabled waits for the profile', async (test) => {
  const place = await createPlace(sql);
  const run = await runNew(sql, place);
  await failRun(sql.api, run);
  await updateProfile(sql.api, place, { status: 'disabled' });
  await retryTask(sql.api, place, run.taskId);
  test.match(await taskRow(sql, place, run.taskId), { status: 'blocked', blockers: [{ kind: 'profile' }] });
  await updateProfile(sql.api, place, { status: 'enabled' });
  test.match(await taskRow(sql, place, run.taskId), { status: 'pending' });
});

scenario('a retry and the end of its profile at once: none is left ready that nobody runs', async (test) => {
  const place = await createPlace(sql);
  const run = await runNew(sql, place);
  await failRun(sql.api, run);
  const [one, two] = [await openSession(test, sql), await openSession(test, sql)];
  await one.begin();
  await retryTask(one, place, run.taskId);
  const disabling = updateProfile(two, place, { status: 'disabled' });
  await two.waits();
  await one.commit();
  await disabling;
  test.match(await taskRow(sql, place, run.taskId), { status: 'blocked', blockers: [{ kind: 'profile' }] });
});

scenario('a retry with a used-up budget asks for more', async (test) => {
  const place = await createPlace(sql);
  const run = await runNew(sql, place, { spec: { budget: { maxAgentRuns: 1 } } });
  await failRun(sql.api, run);
  await retryTask(sql.api, place, run.taskId);
  test.match(await taskRow(sql, place, run.taskId), { status: 'blocked', blockers: [{ kind: 'budget' }] });
  test.match(await openItems(sql, place, run.taskId), [{ purpose: 'budget' }]);
  await patchTask(sql, place, run.taskId, { spec: { budget: { maxAgentRuns: 2 } } });
  test.equal((await runNext(sql, place)).taskId, run.taskId);
});

scenario('a failure tells those who wait for it in other hierarchies, and a retry takes that back', async (test) => {
  const place = await createPlace(sql);
  const tree = await hierarchy(place);
  const other = await createInitiative(sql, place, ['waits']);
  await addDependency(sql.api, place, other.waits, tree.failing);
  const initiative = (await createTask(sql, place, { kind: 'initiative', dependsOn: [tree.root] })).id;
  await failRun(sql.api, await runNext(sql, place));
  test.match(await taskRow(sql, place, other.waits), {
    status: 'blocked',
    blockers: [{ kind: 'dependency', taskId: tree.failing }],
  });
  test.match(await openItems(sql, place, other.waits), [{ purpose: 'prerequisite', kind: 'notification' }]);
  test.match(await openItems(sql, place, initiative), [{ purpose: 'prerequisite' }]);
  await retryTask(sql.api, place, tree.sibling);
  test.same(await openItems(sql, place, other.waits), []);
  test.same(await openItems(sql, place, initiative), []);
  await completeRun(sql.api, await runNext(sql, place));
  test.match(await taskRow(sql, place, other.waits), { status: 'pending' });
});

scenario('leases that end fail the hierarchy as a reported failure does', async (test) => {
  const place = await createPlace(sql);
  const tree = await hierarchy(place);
  const run = await runNext(sql, place);
  await endLease(sql, run);
  test.equal(await expire(sql.jobs, run, { maxAttempts: 1 }), 'expired');
  test.match(await statuses(sql, place, tree), { root: 'failed', failing: 'failed', sibling: 'cancelled' });
  test.match(await taskRow(sql, place, tree.failing), { error: { code: 'run_lease_expired' } });
});

scenario('a failure and the completion of the last sibling at once', async (test) => {
  const place = await createPlace(sql);
  const second = await createSecondProfile(sql, place);
  const { root } = await createInitiative(sql, place, [], last);
  const one = (await createTask(sql, place, { parentId: root })).id;
  const two = (await createTask(sql, second, { parentId: root })).id;
  const [first, other] = [await runNext(sql, place), await runNext(sql, place)];
  const [a, b] = [await openSession(test, sql), await openSession(test, sql)];
  await a.begin();
  await completeRun(a, first);
  const failing = failRun(b, other);
  await b.waits();
  await a.commit();
  test.same(await failing, { status: 'failed' });
  test.same(await statuses(sql, place, { root, one, two }), { root: 'failed', one: 'completed', two: 'failed' });
  await retryTask(sql.api, place, two);
  test.same(await statuses(sql, place, { root, one, two }), { root: 'blocked', one: 'completed', two: 'pending' });
  test.match(await lastRequest(sql, place, two), { state: 'published', attempt: 0 });
});

scenario('what a retry brings back waits for exactly what it has to wait for, of whatever kind', async (test) => {
  const place = await createPlace(sql);
  const away = await createSecondProfile(sql, place);
  const { root } = await createInitiative(sql, place, [], last);
  const below = (fields: Record<string, unknown>) => createTask(sql, place, { parentId: root, ...fields });
  const outside = (await createTask(sql, place, { scheduledAt: '2999-01-01T00:00:00Z' })).id;
  const done = (await below({ priority: 10 })).id;
  const failing = (await below({ priority: 9 })).id;
  await completeRun(sql.api, await runNext(sql, place));
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
  await createTask(sql, place, { parentId: ids.group });
  await addDependency(sql.api, place, ids.optional, failing, { required: false });
  const run = await runNext(sql, place);
  await failRun(sql.api, await runNext(sql, place), { retryable: true });
  await failRun(sql.api, run);
  await updateProfile(sql.api, away, { status: 'disabled' });
  await retryTask(sql.api, place, root);

  const causes = new Map<string, unknown>();
  for (const [name, id] of Object.entries(ids)) {
    const { blockers } = (await taskRow(sql, place, id)) as unknown as { blockers: { kind: string }[] };
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
