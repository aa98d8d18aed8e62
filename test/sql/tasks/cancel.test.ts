import { randomUUID } from 'node:crypto';
import t from 'tap';
import {
  cancelTask,
  claimNext,
  completeRun,
  createInitiative,
  createPlace,
  createTask,
  failRun,
  lastRequest,
  openItems,
  requestRows,
  retryTask,
  runNew,
  runNext,
  startRun,
  statuses,
  taskAnswer,
  taskRow,
} from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSession, openSql, refusal } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const conflict = { status: 409, code: 'state_conflict' };

scenario('an open task is cancelled from every state, and its request ends', async (test) => {
  const place = await createPlace(sql);
  const pending = await createTask(sql, place);
  const blocked = await createTask(sql, place, { dependsOn: [pending.id] });
  const scheduled = await createTask(sql, place, { scheduledAt: '2099-01-01T00:00:00Z' });
  const waiting = await runNew(sql, place);
  await completeRun(sql.api, waiting, { result: { kind: 'waiting', until: '2099-01-01T00:00:00Z', reason: '' } });
  const asking = await runNew(sql, place);
  await completeRun(sql.api, asking, { result: { kind: 'needs_input', question: '?' } });
  const backoff = await runNew(sql, place);
  await failRun(sql.api, backoff, { retryable: true });
  await createTask(sql, place, { priority: 2_000_000 });
  const claimed = await claimNext(sql, place);
  const running = await runNew(sql, place);
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
    const { task } = taskAnswer.parse(await cancelTask(sql.api, place, id));
    test.match(task, {
      status: 'cancelled',
      phase: 'closed',
      blockers: [],
      active_run_id: null,
      waiting_until: null,
      failure_origin_id: null,
      completed_at: null,
    });
    test.same(await openItems(sql, place, id), []);
    const live = (await requestRows(sql, place, id)).filter(
      (request) => !['finished', 'cancelled'].includes(request.state),
    );
    test.equal(live.length, id === running.taskId ? 1 : 0);
  }
  test.match(await lastRequest(sql, place, running.taskId), { state: 'started', cancel_requested_at: Date });
});

scenario('a cancel again is the same answer; a completed or failed task is not cancelled', async (test) => {
  const place = await createPlace(sql);
  const task = await createTask(sql, place);
  const first = await cancelTask(sql.api, place, 'T-1');
  test.same(await cancelTask(sql.api, place, task.id), first);
  const completed = await runNew(sql, place);
  await completeRun(sql.api, completed);
  test.match(await refusal(cancelTask(sql.api, place, completed.taskId)), conflict);
  const failed = await runNew(sql, place);
  await failRun(sql.api, failed);
  test.match(await refusal(cancelTask(sql.api, place, failed.taskId)), conflict);
});

scenario('eight cancels at once are one', async (test) => {
  const place = await createPlace(sql);
  const run = await runNew(sql, place);
  const answers = await Promise.all(Array.from({ length: 8 }, () => cancelTask(sql.api, place, run.taskId)));
  for (const answer of answers) test.same(answer, answers[0]);
  test.match(await taskRow(sql, place, run.taskId), { status: 'cancelled', version: 3 });
});

scenario('a task of another organization is not found', async (test) => {
  const place = await createPlace(sql);
  const foreign = await createPlace(sql);
  const task = await createTask(sql, place);
  const missing = { status: 404, code: 'task_not_found' };
  test.match(await refusal(cancelTask(sql.api, foreign, task.id)), missing);
  test.match(await refusal(cancelTask(sql.api, foreign, 'T-1')), missing);
  test.match(await refusal(cancelTask(sql.api, place, randomUUID())), missing);
  test.match(await taskRow(sql, place, task.id), { status: 'pending' });
});

scenario('an initiative is cancelled with all that is open below it; what is over stays', async (test) => {
  const place = await createPlace(sql);
  const { root, done, ready } = await createInitiative(sql, place, ['done', 'ready']);
  const middle = (await createTask(sql, place, { kind: 'initiative', parentId: root })).id;
  const deep = (await createTask(sql, place, { parentId: middle, dependsOn: [ready] })).id;
  const outside = (await createTask(sql, place)).id;
  await completeRun(sql.api, await runNext(sql, place));
  const { version } = await taskRow(sql, place, root);
  await cancelTask(sql.api, place, root);
  test.same(await statuses(sql, place, { root, done, ready, middle, deep, outside }), {
    root: 'cancelled',
    done: 'completed',
    ready: 'cancelled',
    middle: 'cancelled',
    deep: 'cancelled',
    outside: 'pending',
  });
  test.match(await taskRow(sql, place, root), { version: version + 1 });
});

scenario('an initiative whose last open task is cancelled completes with the others', async (test) => {
  const place = await createPlace(sql);
  const { root, done, dropped } = await createInitiative(sql, place, ['done', 'dropped']);
  await completeRun(sql.api, await runNext(sql, place));
  await cancelTask(sql.api, place, dropped);
  test.same(await statuses(sql, place, { root, done, dropped }), {
    root: 'completed',
    done: 'completed',
    dropped: 'cancelled',
  });
  test.match(await taskRow(sql, place, root), {
    phase: 'closed',
    completed_at: Date,
    result: { kind: 'completed' },
    blockers: [],
  });
});

scenario('an initiative of which nothing was completed is planned again, or asks for another plan', async (test) => {
  const place = await createPlace(sql);
  const outer = (await createTask(sql, place, { kind: 'initiative' })).id;
  const other = (await createTask(sql, place, { parentId: outer })).id;
  for (const maxReplans of [1, 0]) {
    const spec = { budget: { maxReplans } };
    const inner = (await createTask(sql, place, { kind: 'initiative', parentId: outer, spec })).id;
    const only = (await createTask(sql, place, { parentId: inner })).id;
    await cancelTask(sql.api, place, only);
    test.match(await taskRow(sql, place, inner), {
      status: maxReplans === 1 ? 'pending' : 'blocked',
      phase: 'plan',
      blockers: maxReplans === 1 ? [] : [{ kind: 'budget' }],
      replan: { reason: 'none_completed' },
      replan_count: maxReplans,
    });
    test.equal((await openItems(sql, place, inner)).length, 1 - maxReplans);
  }
  test.match(await taskRow(sql, place, outer), { status: 'blocked', blockers: [{ kind: 'children' }] });
  test.match(await taskRow(sql, place, other), { status: 'pending' });
});

scenario('dependents of a cancelled task stay blocked, and a person is told once', async (test) => {
  const place = await createPlace(sql);
  const one = await createTask(sql, place, { title: 'one' });
  const two = await createTask(sql, place, { title: 'two' });
  const after = await createTask(sql, place, { title: 'after', dependsOn: [one.id, two.id] });
  await cancelTask(sql.api, place, one.id);
  await cancelTask(sql.api, place, two.id);
  test.match(await taskRow(sql, place, after.id), { status: 'blocked' });
  const items = await openItems(sql, place, after.id);
  test.match(items, [
    { kind: 'notification', purpose: 'prerequisite', blocking: false, body: /T-3 needs T-1, which is cancelled/ },
  ]);
  test.equal(items.length, 1);
  await cancelTask(sql.api, place, after.id);
  test.same(await openItems(sql, place, after.id), [], 'and the notice ends with the task');
});

scenario('what a failure had cancelled is a person’s after a cancel, and no retry brings it back', async (test) => {
  const place = await createPlace(sql);
  const { root, failing } = await createInitiative(sql, place, ['failing'], { spec: { budget: { maxReplans: 0 } } });
  const middle = (await createTask(sql, place, { kind: 'initiative', parentId: root })).id;
  const deep = (await createTask(sql, place, { parentId: middle })).id;
  const kept = (await createTask(sql, place, { parentId: root })).id;
  await failRun(sql.api, await runNext(sql, place));
  test.match(await taskRow(sql, place, deep), { status: 'cancelled', failure_origin_id: failing });
  await cancelTask(sql.api, place, middle);
  for (const id of [middle, deep])
    test.match(await taskRow(sql, place, id), { status: 'cancelled', failure_origin_id: null });
  await retryTask(sql.api, place, failing);
  test.same(await statuses(sql, place, { root, failing, middle, deep, kept }), {
    root: 'blocked',
    failing: 'pending',
    middle: 'cancelled',
    deep: 'cancelled',
    kept: 'pending',
  });
  test.match(await refusal(retryTask(sql.api, place, deep)), conflict);
});

scenario('a cancel of an initiative and the start of a task below it at once', async (test) => {
  const place = await createPlace(sql);
  const { root, leaf } = await createInitiative(sql, place, ['leaf']);
  const claim = await claimNext(sql, place);
  const [worker, person] = [await openSession(test, sql), await openSession(test, sql)];
  await worker.begin();
  const run = await startRun(worker, claim);
  const cancelling = cancelTask(person, place, root);
  await person.waits();
  await worker.commit();
  await cancelling;
  test.same(await statuses(sql, place, { root, leaf }), { root: 'cancelled', leaf: 'cancelled' });
  test.same(await completeRun(sql.api, run), { status: 'cancelled' });

  const again = await createInitiative(sql, place, ['leaf']);
  const late = await claimNext(sql, place);
  await person.begin();
  await cancelTask(person, place, again.root);
  const starting = refusal(startRun(worker, late));
  await worker.waits();
  await person.commit();
  test.match(await starting, { status: 409, reason: 'lease_lost' });
});
