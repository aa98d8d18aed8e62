import { randomUUID } from 'node:crypto';
import t from 'tap';
import {
  cancelTask,
  claimNext,
  completeRun,
  createInitiative,
  createTask,
  createTestOrganization,
  failRun,
  lastRequest,
  openItems,
  requestRows,
  retryTask,
  runNew,
  runNext,
  startRun,
  statuses,
  taskCallResult,
  taskRow,
} from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSession, openSql, refusal } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const conflict = { status: 409, code: 'state_conflict' };

scenario('an open task is cancelled from every state, and its request ends', async (test) => {
  const org = await createTestOrganization(sql);
  const pending = await createTask(sql, org);
  const blocked = await createTask(sql, org, { dependsOn: [pending.id] });
  const scheduled = await createTask(sql, org, { scheduledAt: '2099-01-01T00:00:00Z' });
  const waiting = await runNew(sql, org);
  await completeRun(sql.api, waiting, { result: { kind: 'waiting', until: '2099-01-01T00:00:00Z', reason: '' } });
  const asking = await runNew(sql, org);
  await completeRun(sql.api, asking, { result: { kind: 'needs_input', question: '?' } });
  const backoff = await runNew(sql, org);
  await failRun(sql.api, backoff, { retryable: true });
  await createTask(sql, org, { priority: 2_000_000 });
  const claimed = await claimNext(sql, org);
  const running = await runNew(sql, org);
  for (const id of [
    blocked.id,
    pending.id,
    scheduled.id,
    waiting.taskId,
    asking.taskId,
    backoff.taskId,
    claimed.task.id,
    running.taskId,
  ]) {
    const { task } = taskCallResult.parse(await cancelTask(sql.api, org, id));
    test.match(task, {
      status: 'cancelled',
      phase: 'closed',
      blockers: [],
      active_run_id: null,
      waiting_until: null,
      failure_origin_id: null,
      completed_at: null,
    });
    test.same(await openItems(sql, org, id), []);
    const live = (await requestRows(sql, org, id)).filter(
      (request) => !['finished', 'cancelled'].includes(request.state),
    );
    test.equal(live.length, id === running.taskId ? 1 : 0);
  }
  test.match(await lastRequest(sql, org, running.taskId), { state: 'started', cancel_requested_at: Date });
});

scenario('a cancel again is the same result; a completed or failed task is not cancelled', async (test) => {
  const org = await createTestOrganization(sql);
  const task = await createTask(sql, org);
  const first = await cancelTask(sql.api, org, 'T-1');
  test.same(await cancelTask(sql.api, org, task.id), first);
  const completed = await runNew(sql, org);
  await completeRun(sql.api, completed);
  test.match(await refusal(cancelTask(sql.api, org, completed.taskId)), conflict);
  const failed = await runNew(sql, org);
  await failRun(sql.api, failed);
  test.match(await refusal(cancelTask(sql.api, org, failed.taskId)), conflict);
});

scenario('eight cancels at once are one', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  const results = await Promise.all(Array.from({ length: 8 }, () => cancelTask(sql.api, org, run.taskId)));
  for (const result of results) test.same(result, results[0]);
  test.match(await taskRow(sql, org, run.taskId), { status: 'cancelled', version: 3 });
});

scenario('a task of another organization is not found', async (test) => {
  const org = await createTestOrganization(sql);
  const foreign = await createTestOrganization(sql);
  const task = await createTask(sql, org);
  const missing = { status: 404, code: 'task_not_found' };
  test.match(await refusal(cancelTask(sql.api, foreign, task.id)), missing);
  test.match(await refusal(cancelTask(sql.api, foreign, 'T-1')), missing);
  test.match(await refusal(cancelTask(sql.api, org, randomUUID())), missing);
  test.match(await taskRow(sql, org, task.id), { status: 'pending' });
});

scenario('an initiative is cancelled with all that is open below it; what is over stays', async (test) => {
  const org = await createTestOrganization(sql);
  const { root, done, ready } = await createInitiative(sql, org, ['done', 'ready']);
  const middle = (await createTask(sql, org, { kind: 'initiative', parentId: root })).id;
  const deep = (await createTask(sql, org, { parentId: middle, dependsOn: [ready] })).id;
  const outside = (await createTask(sql, org)).id;
  await completeRun(sql.api, await runNext(sql, org));
  const { version } = await taskRow(sql, org, root);
  await cancelTask(sql.api, org, root);
  test.same(await statuses(sql, org, { root, done, ready, middle, deep, outside }), {
    root: 'cancelled',
    done: 'completed',
    ready: 'cancelled',
    middle: 'cancelled',
    deep: 'cancelled',
    outside: 'pending',
  });
  test.match(await taskRow(sql, org, root), { version: version + 1 });
});

scenario('an initiative whose last open task is cancelled completes with the others', async (test) => {
  const org = await createTestOrganization(sql);
  const { root, done, dropped } = await createInitiative(sql, org, ['done', 'dropped']);
  await completeRun(sql.api, await runNext(sql, org));
  await cancelTask(sql.api, org, dropped);
  test.same(await statuses(sql, org, { root, done, dropped }), {
    root: 'completed',
    done: 'completed',
    dropped: 'cancelled',
  });
  test.match(await taskRow(sql, org, root), {
    phase: 'closed',
    completed_at: Date,
    result: { kind: 'completed' },
    blockers: [],
  });
});

scenario('an initiative of which nothing was completed is planned again, or asks for another plan', async (test) => {
  const org = await createTestOrganization(sql);
  const outer = (await createTask(sql, org, { kind: 'initiative' })).id;
  const other = (await createTask(sql, org, { parentId: outer })).id;
  for (const maxReplans of [1, 0]) {
    const spec = { budget: { maxReplans } };
    const inner = (await createTask(sql, org, { kind: 'initiative', parentId: outer, spec })).id;
    const only = (await createTask(sql, org, { parentId: inner })).id;
    await cancelTask(sql.api, org, only);
    test.match(await taskRow(sql, org, inner), {
      status: maxReplans === 1 ? 'pending' : 'blocked',
      phase: 'plan',
      blockers: maxReplans === 1 ? [] : [{ kind: 'budget' }],
      replan: { reason: 'none_completed' },
      replan_count: maxReplans,
    });
    test.equal((await openItems(sql, org, inner)).length, 1 - maxReplans);
  }
  test.match(await taskRow(sql, org, outer), { status: 'blocked', blockers: [{ kind: 'children' }] });
  test.match(await taskRow(sql, org, other), { status: 'pending' });
});

scenario('dependents of a cancelled task stay blocked, and a person is asked once', async (test) => {
  const org = await createTestOrganization(sql);
  const one = await createTask(sql, org, { title: 'one' });
  const two = await createTask(sql, org, { title: 'two' });
  const after = await createTask(sql, org, { title: 'after', dependsOn: [one.id, two.id] });
  await cancelTask(sql.api, org, one.id);
  await cancelTask(sql.api, org, two.id);
  test.match(await taskRow(sql, org, after.id), { status: 'blocked' });
  const items = await openItems(sql, org, after.id);
  test.match(items, [
    { kind: 'question', purpose: 'prerequisite', blocking: false, body: /T-3 needs T-1, which is cancelled/ },
  ]);
  test.equal(items.length, 1);
  await cancelTask(sql.api, org, after.id);
  test.same(await openItems(sql, org, after.id), [], 'and the question ends with the task');
});

scenario('what a failure had cancelled is a person’s after a cancel, and no retry brings it back', async (test) => {
  const org = await createTestOrganization(sql);
  const { root, failing } = await createInitiative(sql, org, ['failing'], { spec: { budget: { maxReplans: 0 } } });
  const middle = (await createTask(sql, org, { kind: 'initiative', parentId: root })).id;
  const deep = (await createTask(sql, org, { parentId: middle })).id;
  const kept = (await createTask(sql, org, { parentId: root })).id;
  await failRun(sql.api, await runNext(sql, org));
  test.match(await taskRow(sql, org, deep), { status: 'cancelled', failure_origin_id: failing });
  await cancelTask(sql.api, org, middle);
  for (const id of [middle, deep])
    test.match(await taskRow(sql, org, id), { status: 'cancelled', failure_origin_id: null });
  await retryTask(sql.api, org, failing);
  test.same(await statuses(sql, org, { root, failing, middle, deep, kept }), {
    root: 'blocked',
    failing: 'pending',
    middle: 'cancelled',
    deep: 'cancelled',
    kept: 'pending',
  });
  test.match(await refusal(retryTask(sql.api, org, deep)), conflict);
});

scenario('a cancel of an initiative and the start of a task below it at once', async (test) => {
  const org = await createTestOrganization(sql);
  const { root, leaf } = await createInitiative(sql, org, ['leaf']);
  const claim = await claimNext(sql, org);
  const [worker, person] = [await openSession(test, sql), await openSession(test, sql)];
  await worker.begin();
  const run = await startRun(worker, claim);
  const cancelling = cancelTask(person, org, root);
  await person.waits();
  await worker.commit();
  await cancelling;
  test.same(await statuses(sql, org, { root, leaf }), { root: 'cancelled', leaf: 'cancelled' });
  test.same(await completeRun(sql.api, run), { status: 'cancelled' });

  const again = await createInitiative(sql, org, ['leaf']);
  const late = await claimNext(sql, org);
  await person.begin();
  await cancelTask(person, org, again.root);
  const starting = refusal(startRun(worker, late));
  await worker.waits();
  await person.commit();
  test.match(await starting, { status: 409, reason: 'lease_lost' });
});
