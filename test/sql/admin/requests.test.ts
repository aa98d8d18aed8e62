import { randomUUID } from 'node:crypto';
import t from 'tap';
import { ADMIN, adminDecides, auditEntries } from '../../support/audit_fixtures.ts';
import { createChatOrganization, messageRow, startedTurn } from '../../support/chat_fixtures.ts';
import {
  cancelTask,
  claimNext,
  completeRun,
  createTask,
  createTestOrganization,
  failRun,
  heartbeat,
  lastRequest,
  publishNow,
  pull,
  runNew,
  runNext,
  setWorkDispatch,
  startRun,
  type TestOrganization,
  taskRow,
  updateOrganization,
} from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { type Connection, openSession, openSql, refusal, transition } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

function expire(
  connection: Connection,
  org: Pick<TestOrganization, 'organizationId'>,
  runRequestId: string,
  backoff = 1,
) {
  return adminDecides(connection, 'lease_expire', org.organizationId, {
    runRequestId,
    maxAttempts: 3,
    backoffSeconds: backoff,
    backoffMaxSeconds: 300,
  });
}

function requeue(connection: Connection, org: Pick<TestOrganization, 'organizationId'>, runRequestId: string) {
  return adminDecides(connection, 'run_request_requeue', org.organizationId, { runRequestId });
}

scenario('a lease is ended by force: the late holder changes nothing, and the work goes on', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  const result = await expire(sql.admin, org, run.runRequestId);
  test.match(result, { run_request_id: run.runRequestId, outcome: 'expired', state: 'queued', run_id: run.runId });
  test.match(await auditEntries(sql, org.organizationId), [
    {
      id: result['audit_entry_id'],
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
  test.match(await taskRow(sql, org, run.taskId), { status: 'pending', active_run_id: null });
  const { rows } = await sql.owner.query('select status, error from app.runs where id = $1', [run.runId]);
  test.match(rows, [{ status: 'expired', error: { code: 'run_lease_expired', retryable: true } }]);
  await publishNow(sql, org, run.taskId);
  const again = await runNext(sql, org);
  test.match(again, { runRequestId: run.runRequestId, attempt: 2 });
  test.same(await completeRun(sql.api, again), { status: 'succeeded' });
});

scenario('a claim is ended by force, and nothing is counted', async (test) => {
  const org = await createTestOrganization(sql);
  const task = await createTask(sql, org);
  const claim = await claimNext(sql, org);
  const result = await expire(sql.admin, org, claim.runRequestId);
  test.match(result, { outcome: 'republished', state: 'published', run_id: null });
  test.equal((await refusal(startRun(sql.api, claim))).reason, 'lease_lost');
  test.match(await lastRequest(sql, org, task.id), { state: 'published', attempt: 0 });
});

scenario('the last attempt that is ended by force fails the task', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org, { spec: { budget: { maxAttemptsPerPhase: 1 } } });
  test.match(await expire(sql.admin, org, run.runRequestId), { outcome: 'expired', state: 'finished' });
  test.match(await taskRow(sql, org, run.taskId), { status: 'failed' });
});

scenario('a cancelled run that does not report gives its slot back', async (test) => {
  const org = await createTestOrganization(sql, { limits: { maxConcurrentRuns: 1 } });
  const run = await runNew(sql, org);
  await cancelTask(sql.api, org, run.taskId);
  await createTask(sql, org);
  test.same(await pull(sql.api, { organizationIds: [org.organizationId] }), []);
  test.match(await expire(sql.admin, org, run.runRequestId), { outcome: 'cancelled', state: 'cancelled' });
  test.equal((await pull(sql.api, { organizationIds: [org.organizationId] })).length, 1);
});

scenario('a chat turn that is ended by force fails its reply', async (test) => {
  const org = await createChatOrganization(sql);
  const turn = await startedTurn(sql, org);
  const result = await expire(sql.admin, org, turn.runRequestId);
  test.match(result, { outcome: 'expired', state: 'finished', chatId: turn.chatId });
  test.match(await messageRow(sql, org, turn.messageId), { status: 'failed', error: { code: 'run_lease_expired' } });
});

scenario('a lease that nobody holds is not ended', async (test) => {
  const org = await createTestOrganization(sql);
  const task = await createTask(sql, org);
  const { id } = await lastRequest(sql, org, task.id);
  const refuses = async (state: string) => {
    test.match(await lastRequest(sql, org, task.id), { state });
    test.match(await refusal(expire(sql.admin, org, id)), { status: 409, code: 'state_conflict', raised: true }, state);
  };
  await refuses('published');
  await runNext(sql, org);
  await expire(sql.admin, org, id);
  await refuses('queued');
  await publishNow(sql, org, task.id);
  await completeRun(sql.api, await runNext(sql, org));
  await refuses('finished');
  test.equal((await auditEntries(sql, org.organizationId)).length, 1, 'and what was refused left no entry');
});

scenario('the request of another organization, or of none, is not found', async (test) => {
  const [org, other] = [await createTestOrganization(sql), await createTestOrganization(sql)];
  const run = await runNew(sql, org);
  for (const decide of [expire, requeue]) {
    const foreign = await refusal(decide(sql.admin, other, run.runRequestId));
    test.match(foreign, { status: 404, code: 'not_found' });
    test.match(await refusal(decide(sql.admin, org, randomUUID())), { status: 404, code: 'not_found' });
    const nowhere = await refusal(decide(sql.admin, { organizationId: randomUUID() }, run.runRequestId));
    test.match(nowhere, { status: 404, code: 'organization_not_found' });
  }
  test.same(await auditEntries(sql, other.organizationId), []);
  await heartbeat(sql.api, run);
  await transition(sql.api, 'organization_delete', { organizationId: org.organizationId });
  for (const decide of [expire, requeue]) {
    test.equal((await refusal(decide(sql.admin, org, run.runRequestId))).code, 'organization_not_found');
  }
});

scenario('two end one lease at once: one does, the other finds it ended', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  const [one, two] = [await openSession(test, sql, 'runner_admin'), await openSession(test, sql, 'runner_admin')];
  await one.begin();
  await expire(one, org, run.runRequestId);
  const second = refusal(expire(two, org, run.runRequestId));
  await two.waits();
  await one.commit();
  test.equal((await second).code, 'state_conflict');
  test.equal((await auditEntries(sql, org.organizationId)).length, 1);
});

scenario('the worker completes while its lease is being ended: the first one wins', async (test) => {
  const org = await createTestOrganization(sql);
  const [first, second] = [await runNew(sql, org), await runNew(sql, org)];
  const [admin, worker] = [await openSession(test, sql, 'runner_admin'), await openSession(test, sql)];
  await admin.begin();
  await expire(admin, org, first.runRequestId);
  const late = refusal(completeRun(worker, first));
  await worker.waits();
  await admin.commit();
  test.equal((await late).reason, 'lease_lost');
  await worker.begin();
  await completeRun(worker, second);
  const ending = refusal(expire(admin, org, second.runRequestId));
  await admin.waits();
  await worker.commit();
  test.equal((await ending).code, 'state_conflict');
  test.match(await taskRow(sql, org, second.taskId), { status: 'completed' });
});

scenario('a decision that is rolled back leaves no entry', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  const session = await openSession(test, sql, 'runner_admin');
  await session.begin();
  await expire(session, org, run.runRequestId);
  await session.rollback();
  test.same(await auditEntries(sql, org.organizationId), []);
  test.same(await completeRun(sql.api, run), { status: 'succeeded' });
});

scenario('a request that waits for its backoff is published at once', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  await failRun(sql.api, run, { retryable: true, backoffSeconds: 1000, backoffMaxSeconds: 1000 });
  const result = await requeue(sql.admin, org, run.runRequestId);
  test.match(result, { run_request_id: run.runRequestId, state: 'published', outcome: 'published' });
  test.match(
    await requeue(sql.admin, org, run.runRequestId),
    { state: 'published', outcome: 'unchanged' },
    'and stays so',
  );
  test.match(await auditEntries(sql, org.organizationId), [
    {
      id: result['audit_entry_id'],
      action: 'run_request.requeue',
      result: { outcome: 'published', state: 'published' },
    },
    { action: 'run_request.requeue', result: { outcome: 'unchanged' } },
  ]);
  test.match(await runNext(sql, org), { runRequestId: run.runRequestId, attempt: 2 });
});

scenario('while dispatch is stopped, a request that is requeued is due and waits', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  await failRun(sql.api, run, { retryable: true, backoffSeconds: 1000, backoffMaxSeconds: 1000 });
  await setWorkDispatch(sql.api, org, true);
  test.match(await requeue(sql.admin, org, run.runRequestId), { state: 'queued', outcome: 'due' });
  test.match(await lastRequest(sql, org, run.taskId), { state: 'queued', parked: true });
  test.match(await setWorkDispatch(sql.api, org, false), { published_run_requests: 1 });
});

scenario('a claim is revoked by requeueing, also for a suspended organization', async (test) => {
  const org = await createTestOrganization(sql);
  const task = await createTask(sql, org);
  const claim = await claimNext(sql, org);
  test.match(await requeue(sql.admin, org, claim.runRequestId), { state: 'published', outcome: 'published' });
  test.equal((await refusal(startRun(sql.api, claim))).reason, 'lease_lost');
  test.match(await lastRequest(sql, org, task.id), { state: 'published', attempt: 0 });
  await updateOrganization(sql.api, org, { status: 'suspended' });
  test.match(await requeue(sql.admin, org, claim.runRequestId), { outcome: 'unchanged' });
  test.same(await pull(sql.api, { organizationIds: [org.organizationId] }), []);
});

scenario('what runs or is over is not requeued', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  test.equal((await refusal(requeue(sql.admin, org, run.runRequestId))).code, 'state_conflict');
  await completeRun(sql.api, run);
  test.equal((await refusal(requeue(sql.admin, org, run.runRequestId))).code, 'state_conflict');
  const cancelled = await createTask(sql, org);
  const { id } = await lastRequest(sql, org, cancelled.id);
  await cancelTask(sql.api, org, cancelled.id);
  test.equal((await refusal(requeue(sql.admin, org, id))).code, 'state_conflict');
  test.same(await auditEntries(sql, org.organizationId), []);
});

scenario('a start and a requeueing at once: the first one wins', async (test) => {
  const org = await createTestOrganization(sql);
  await createTask(sql, org);
  await createTask(sql, org);
  const [first, second] = [await claimNext(sql, org), await claimNext(sql, org)];
  const [admin, worker] = [await openSession(test, sql, 'runner_admin'), await openSession(test, sql)];
  await admin.begin();
  await requeue(admin, org, first.runRequestId);
  const late = refusal(startRun(worker, first));
  await worker.waits();
  await admin.commit();
  test.equal((await late).reason, 'lease_lost');
  await worker.begin();
  const run = await startRun(worker, second);
  const refused = refusal(requeue(admin, org, second.runRequestId));
  await admin.waits();
  await worker.commit();
  test.equal((await refused).code, 'state_conflict');
  test.same(await completeRun(sql.api, run), { status: 'succeeded' });
});

scenario('a stop of dispatch that is under way is seen by a requeueing', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  await failRun(sql.api, run, { retryable: true, backoffSeconds: 1000, backoffMaxSeconds: 1000 });
  const [admin, owner] = [await openSession(test, sql, 'runner_admin'), await openSession(test, sql)];
  await owner.begin();
  await setWorkDispatch(owner, org, true);
  const requeued = requeue(admin, org, run.runRequestId);
  await admin.waits();
  await owner.commit();
  test.match(await requeued, { state: 'queued', outcome: 'due' });
});
