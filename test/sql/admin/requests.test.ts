import { randomUUID } from 'node:crypto';
import t from 'tap';
import { ADMIN, adminDecides, auditEntries } from '../../support/audit_fixtures.ts';
import { createChatPlace, messageRow, startedTurn } from '../../support/chat_fixtures.ts';
import {
  cancelTask,
  claimNext,
  completeRun,
  createPlace,
  createTask,
  failRun,
  heartbeat,
  lastRequest,
  type Place,
  publishNow,
  pull,
  runNew,
  runNext,
  setWorkDispatch,
  startRun,
  taskRow,
  updateOrganization,
} from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { type Connection, openSession, openSql, refusal, transition } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

function expire(connection: Connection, place: Pick<Place, 'organizationId'>, runRequestId: string, backoff = 1) {
  return adminDecides(connection, 'lease_expire', place.organizationId, {
    p_run_request_id: runRequestId,
    p_max_attempts: 3,
    p_backoff_seconds: backoff,
    p_backoff_max_seconds: 300,
  });
}

function requeue(connection: Connection, place: Pick<Place, 'organizationId'>, runRequestId: string) {
  return adminDecides(connection, 'run_request_requeue', place.organizationId, { p_run_request_id: runRequestId });
}

scenario('a lease is ended by force: the late holder changes nothing, and the work goes on', async (test) => {
  const place = await createPlace(sql);
  const run = await runNew(sql, place);
  const answer = await expire(sql.admin, place, run.runRequestId);
  test.match(answer, { run_request_id: run.runRequestId, outcome: 'expired', state: 'queued', run_id: run.runId });
  test.match(await auditEntries(sql, place.organizationId), [
    {
      id: answer['audit_entry_id'],
      actor_kind: 'admin',
      actor: ADMIN,
      action: 'lease.expire',
      subject_kind: 'run_request',
      subject_id: run.runRequestId,
      outcome: 'done',
      result: { outcome: 'expired', state: 'queued', runId: run.runId },
      request_id: 'request-1',
    },
  ]);
  for (const late of [heartbeat, completeRun, failRun]) {
    test.equal((await refusal(late(sql.api, run))).reason, 'lease_lost');
  }
  test.match(await taskRow(sql, place, run.taskId), { status: 'pending', active_run_id: null });
  const { rows } = await sql.owner.query('select status, error from app.runs where id = $1', [run.runId]);
  test.match(rows, [{ status: 'expired', error: { code: 'run_lease_expired', retryable: true } }]);
  await publishNow(sql, place, run.taskId);
  const again = await runNext(sql, place);
  test.match(again, { runRequestId: run.runRequestId, attempt: 2 });
  test.same(await completeRun(sql.api, again), { status: 'succeeded' });
});

scenario('a claim is ended by force, and nothing is counted', async (test) => {
  const place = await createPlace(sql);
  const task = await createTask(sql, place);
  const claim = await claimNext(sql, place);
  const answer = await expire(sql.admin, place, claim.runRequestId);
  test.match(answer, { outcome: 'republished', state: 'published', run_id: null });
  test.equal((await refusal(startRun(sql.api, claim))).reason, 'lease_lost');
  test.match(await lastRequest(sql, place, task.id), { state: 'published', attempt: 0 });
});

scenario('the last attempt that is ended by force fails the task', async (test) => {
  const place = await createPlace(sql);
  const run = await runNew(sql, place, { spec: { budget: { maxAttemptsPerPhase: 1 } } });
  test.match(await expire(sql.admin, place, run.runRequestId), { outcome: 'expired', state: 'finished' });
  test.match(await taskRow(sql, place, run.taskId), { status: 'failed' });
});

scenario('a cancelled run that does not report gives its slot back', async (test) => {
  const place = await createPlace(sql, { limits: { maxConcurrentRuns: 1 } });
  const run = await runNew(sql, place);
  await cancelTask(sql.api, place, run.taskId);
  await createTask(sql, place);
  test.same(await pull(sql.api, { organizationIds: [place.organizationId] }), []);
  test.match(await expire(sql.admin, place, run.runRequestId), { outcome: 'cancelled', state: 'cancelled' });
  test.equal((await pull(sql.api, { organizationIds: [place.organizationId] })).length, 1);
});

scenario('a chat turn that is ended by force fails its answer', async (test) => {
  const place = await createChatPlace(sql);
  const turn = await startedTurn(sql, place);
  const answer = await expire(sql.admin, place, turn.runRequestId);
  test.match(answer, { outcome: 'expired', state: 'finished', chatId: turn.chatId });
  test.match(await messageRow(sql, place, turn.messageId), { status: 'failed', error: { code: 'run_lease_expired' } });
});

scenario('a lease that nobody holds is not ended', async (test) => {
  const place = await createPlace(sql);
  const task = await createTask(sql, place);
  const { id } = await lastRequest(sql, place, task.id);
  const refuses = async (state: string) => {
    test.match(await lastRequest(sql, place, task.id), { state });
    test.match(
      await refusal(expire(sql.admin, place, id)),
      { status: 409, code: 'state_conflict', raised: true },
      state,
    );
  };
  await refuses('published');
  await runNext(sql, place);
  await expire(sql.admin, place, id);
  await refuses('queued');
  await publishNow(sql, place, task.id);
  await completeRun(sql.api, await runNext(sql, place));
  await refuses('finished');
  test.equal((await auditEntries(sql, place.organizationId)).length, 1, 'and what was refused left no entry');
});

scenario('the request of another organization, or of none, is not found', async (test) => {
  const [place, other] = [await createPlace(sql), await createPlace(sql)];
  const run = await runNew(sql, place);
  for (const decide of [expire, requeue]) {
    const foreign = await refusal(decide(sql.admin, other, run.runRequestId));
    test.match(foreign, { status: 404, code: 'not_found' });
    test.match(await refusal(decide(sql.admin, place, randomUUID())), { status: 404, code: 'not_found' });
    const nowhere = await refusal(decide(sql.admin, { organizationId: randomUUID() }, run.runRequestId));
    test.match(nowhere, { status: 404, code: 'organization_not_found' });
  }
  test.same(await auditEntries(sql, other.organizationId), []);
  await heartbeat(sql.api, run);
  await transition(sql.api, 'organization_delete', { p_organization_id: place.organizationId });
  for (const decide of [expire, requeue]) {
    test.equal((await refusal(decide(sql.admin, place, run.runRequestId))).code, 'organization_not_found');
  }
});

scenario('two end one lease at once: one does, the other finds it ended', async (test) => {
  const place = await createPlace(sql);
  const run = await runNew(sql, place);
  const [one, two] = [await openSession(test, sql, 'runner_admin'), await openSession(test, sql, 'runner_admin')];
  await one.begin();
  await expire(one, place, run.runRequestId);
  const second = refusal(expire(two, place, run.runRequestId));
  await two.waits();
  await one.commit();
  test.equal((await second).code, 'state_conflict');
  test.equal((await auditEntries(sql, place.organizationId)).length, 1);
});

scenario('the worker completes while its lease is being ended: the first one wins', async (test) => {
  const place = await createPlace(sql);
  const [first, second] = [await runNew(sql, place), await runNew(sql, place)];
  const [admin, worker] = [await openSession(test, sql, 'runner_admin'), await openSession(test, sql)];
  await admin.begin();
  await expire(admin, place, first.runRequestId);
  const late = refusal(completeRun(worker, first));
  await worker.waits();
  await admin.commit();
  test.equal((await late).reason, 'lease_lost');
  await worker.begin();
  await completeRun(worker, second);
  const ending = refusal(expire(admin, place, second.runRequestId));
  await admin.waits();
  await worker.commit();
  test.equal((await ending).code, 'state_conflict');
  test.match(await taskRow(sql, place, second.taskId), { status: 'completed' });
});

scenario('a decision that is rolled back leaves no entry', async (test) => {
  const place = await createPlace(sql);
  const run = await runNew(sql, place);
  const session = await openSession(test, sql, 'runner_admin');
  await session.begin();
  await expire(session, place, run.runRequestId);
  await session.rollback();
  test.same(await auditEntries(sql, place.organizationId), []);
  test.same(await completeRun(sql.api, run), { status: 'succeeded' });
});

scenario('a request that waits for its backoff is published at once', async (test) => {
  const place = await createPlace(sql);
  const run = await runNew(sql, place);
  await failRun(sql.api, run, { retryable: true, backoffSeconds: 1000, backoffMaxSeconds: 1000 });
  const answer = await requeue(sql.admin, place, run.runRequestId);
  test.match(answer, { run_request_id: run.runRequestId, state: 'published', outcome: 'published' });
  test.match(
    await requeue(sql.admin, place, run.runRequestId),
    { state: 'published', outcome: 'kept' },
    'and stays so',
  );
  test.match(await auditEntries(sql, place.organizationId), [
    {
      id: answer['audit_entry_id'],
      action: 'run_request.requeue',
      result: { outcome: 'published', state: 'published' },
    },
    { action: 'run_request.requeue', result: { outcome: 'kept' } },
  ]);
  test.match(await runNext(sql, place), { runRequestId: run.runRequestId, attempt: 2 });
});

scenario('while dispatch is stopped, a request that is requeued is due and waits', async (test) => {
  const place = await createPlace(sql);
  const run = await runNew(sql, place);
  await failRun(sql.api, run, { retryable: true, backoffSeconds: 1000, backoffMaxSeconds: 1000 });
  await setWorkDispatch(sql.api, place, true);
  test.match(await requeue(sql.admin, place, run.runRequestId), { state: 'queued', outcome: 'due' });
  test.match(await lastRequest(sql, place, run.taskId), { state: 'queued', parked: true });
  test.match(await setWorkDispatch(sql.api, place, false), { published_run_requests: 1 });
});

scenario('a claim is revoked by requeueing, also for a suspended organization', async (test) => {
  const place = await createPlace(sql);
  const task = await createTask(sql, place);
  const claim = await claimNext(sql, place);
  test.match(await requeue(sql.admin, place, claim.runRequestId), { state: 'published', outcome: 'published' });
  test.equal((await refusal(startRun(sql.api, claim))).reason, 'lease_lost');
  test.match(await lastRequest(sql, place, task.id), { state: 'published', attempt: 0 });
  await updateOrganization(sql.api, place, { status: 'suspended' });
  test.match(await requeue(sql.admin, place, claim.runRequestId), { outcome: 'kept' });
  test.same(await pull(sql.api, { organizationIds: [place.organizationId] }), []);
});

scenario('what runs or is over is not requeued', async (test) => {
  const place = await createPlace(sql);
  const run = await runNew(sql, place);
  test.equal((await refusal(requeue(sql.admin, place, run.runRequestId))).code, 'state_conflict');
  await completeRun(sql.api, run);
  test.equal((await refusal(requeue(sql.admin, place, run.runRequestId))).code, 'state_conflict');
  const cancelled = await createTask(sql, place);
  const { id } = await lastRequest(sql, place, cancelled.id);
  await cancelTask(sql.api, place, cancelled.id);
  test.equal((await refusal(requeue(sql.admin, place, id))).code, 'state_conflict');
  test.same(await auditEntries(sql, place.organizationId), []);
});

scenario('a start and a requeueing at once: the first one wins', async (test) => {
  const place = await createPlace(sql);
  await createTask(sql, place);
  await createTask(sql, place);
  const [first, second] = [await claimNext(sql, place), await claimNext(sql, place)];
  const [admin, worker] = [await openSession(test, sql, 'runner_admin'), await openSession(test, sql)];
  await admin.begin();
  await requeue(admin, place, first.runRequestId);
  const late = refusal(startRun(worker, first));
  await worker.waits();
  await admin.commit();
  test.equal((await late).reason, 'lease_lost');
  await worker.begin();
  const run = await startRun(worker, second);
  const refused = refusal(requeue(admin, place, second.runRequestId));
  await admin.waits();
  await worker.commit();
  test.equal((await refused).code, 'state_conflict');
  test.same(await completeRun(sql.api, run), { status: 'succeeded' });
});

scenario('a stop of dispatch that is under way is seen by a requeueing', async (test) => {
  const place = await createPlace(sql);
  const run = await runNew(sql, place);
  await failRun(sql.api, run, { retryable: true, backoffSeconds: 1000, backoffMaxSeconds: 1000 });
  const [admin, owner] = [await openSession(test, sql, 'runner_admin'), await openSession(test, sql)];
  await owner.begin();
  await setWorkDispatch(owner, place, true);
  const requeued = requeue(admin, place, run.runRequestId);
  await admin.waits();
  await owner.commit();
  test.match(await requeued, { state: 'queued', outcome: 'due' });
});
