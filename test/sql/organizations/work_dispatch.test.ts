import { randomUUID } from 'node:crypto';
import t from 'tap';
import {
  capability,
  claimNext,
  completeRun,
  createSecondProfile,
  createTask,
  createTestOrganization,
  dispatchAll,
  failRun,
  lastRequest,
  makeDue,
  publish,
  pull,
  runNew,
  runNext,
  SERVICE,
  setWorkDispatch,
  startRun,
  taskCallResult,
  taskCreate,
  updateProfile,
} from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSession, openSql, refusal, transition } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

scenario('work that is made while dispatch is stopped waits, and the resume publishes and counts it', async (test) => {
  const org = await createTestOrganization(sql);
  const stopped = await setWorkDispatch(sql.api, org, true);
  test.match(stopped, { organization: { work_dispatch_stopped_at: String }, published_run_requests: 0 });
  const one = await createTask(sql, org);
  await createTask(sql, org);
  test.match(one, { status: 'pending' });
  test.match(await lastRequest(sql, org, one.id), { state: 'queued', parked: true });
  await dispatchAll(sql);
  test.same(await pull(sql.api, { organizationIds: [org.organizationId] }), []);
  const resumed = await setWorkDispatch(sql.api, org, false);
  test.match(resumed, { organization: { work_dispatch_stopped_at: null }, published_run_requests: 2 });
  test.equal((await claimNext(sql, org)).task.id, one.id, 'in the order in which it was made');
});

scenario('stopping or resuming again changes nothing', async (test) => {
  const org = await createTestOrganization(sql);
  test.match(await setWorkDispatch(sql.api, org, false), { organization: { work_dispatch_stopped_at: null } });
  const first = await setWorkDispatch(sql.api, org, true);
  test.same(await setWorkDispatch(sql.api, org, true), first);
  await setWorkDispatch(sql.api, org, false);
  test.match(await setWorkDispatch(sql.api, org, false), { published_run_requests: 0 });
});

scenario('what is published, claimed or running when dispatch stops goes on to its end', async (test) => {
  const org = await createTestOrganization(sql);
  for (let n = 0; n < 3; n += 1) await createTask(sql, org);
  const running = await runNext(sql, org);
  const claimed = await claimNext(sql, org);
  await setWorkDispatch(sql.api, org, true);
  test.same(await completeRun(sql.api, running), { status: 'succeeded' });
  test.same(await completeRun(sql.api, await startRun(sql.api, claimed)), { status: 'succeeded' });
  test.same(await completeRun(sql.api, await runNext(sql, org)), { status: 'succeeded' });
});

scenario(
  'a retry that falls due while dispatch is stopped waits, one that is not due waits on after the resume',
  async (test) => {
    const org = await createTestOrganization(sql);
    const [due, later] = [await runNew(sql, org), await runNew(sql, org)];
    await failRun(sql.api, due, { retryable: true });
    await setWorkDispatch(sql.api, org, true);
    await failRun(sql.api, later, { retryable: true, backoffSeconds: 1000, backoffMaxSeconds: 1000 });
    test.match(await lastRequest(sql, org, due.taskId), { state: 'queued', parked: true }, 'parked by the stop');
    test.match(await lastRequest(sql, org, later.taskId), { state: 'queued', parked: true }, 'parked by its failure');
    await makeDue(sql, org, due.taskId);
    await dispatchAll(sql);
    test.match(await lastRequest(sql, org, due.taskId), { state: 'queued', parked: true });
    test.match(await setWorkDispatch(sql.api, org, false), { published_run_requests: 1 });
    test.match(await lastRequest(sql, org, due.taskId), { state: 'published', parked: false });
    test.match(await lastRequest(sql, org, later.taskId), { state: 'queued', parked: false });
    await makeDue(sql, org, later.taskId);
    await dispatchAll(sql);
    test.match(await lastRequest(sql, org, later.taskId), { state: 'published' });
  },
);

scenario('a task whose creation crossed with the resume is published by the dispatch job', async (test) => {
  const org = await createTestOrganization(sql);
  await setWorkDispatch(sql.api, org, true);
  const session = await openSession(test, sql);
  await session.begin();
  const { task } = taskCallResult.parse(await taskCreate(session, org));
  test.match(await setWorkDispatch(sql.api, org, false), { published_run_requests: 0 }, 'the resume does not see it');
  await session.commit();
  test.match(await lastRequest(sql, org, task.id), { state: 'queued', parked: true });
  await dispatchAll(sql);
  test.match(await lastRequest(sql, org, task.id), { state: 'published', parked: false });
  test.equal((await claimNext(sql, org)).task.id, task.id);
});

scenario('a task whose creation crossed with the stop was made before it', async (test) => {
  const org = await createTestOrganization(sql);
  const session = await openSession(test, sql);
  await session.begin();
  const { task } = taskCallResult.parse(await taskCreate(session, org));
  await setWorkDispatch(sql.api, org, true);
  await session.commit();
  test.equal((await claimNext(sql, org)).task.id, task.id);
});

scenario('a failure that crossed with the stop is parked by the dispatch job when it is due', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  const worker = await openSession(test, sql);
  await worker.begin();
  await failRun(worker, run, { retryable: true });
  await setWorkDispatch(sql.api, org, true);
  await worker.commit();
  test.match(await lastRequest(sql, org, run.taskId), { state: 'queued', parked: false });
  await makeDue(sql, org, run.taskId);
  await dispatchAll(sql);
  test.match(await lastRequest(sql, org, run.taskId), { state: 'queued', parked: true });
  test.match(await setWorkDispatch(sql.api, org, false), { published_run_requests: 1 });
});

scenario('the dispatch job and a stop at once: what it publishes first stays published', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  await failRun(sql.api, run, { retryable: true });
  await makeDue(sql, org, run.taskId);
  const [job, person] = [await openSession(test, sql, 'runner_jobs'), await openSession(test, sql)];
  await job.begin();
  test.match(await publish(job, org, [run.runRequestId]), { published: 1 });
  const stopping = setWorkDispatch(person, org, true);
  await person.waits();
  await job.commit();
  await stopping;
  test.match(await lastRequest(sql, org, run.taskId), { state: 'published', parked: false });
});

scenario('agents may stop work dispatch, and only owners and the service lift that', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  const agent = capability(run.executionToken);
  test.match(await setWorkDispatch(sql.api, org, true, agent), {
    organization: { work_dispatch_stopped_at: String },
  });
  test.match(await refusal(setWorkDispatch(sql.api, org, false, agent)), { status: 401, code: 'agent_unauthorized' });
  test.match(await setWorkDispatch(sql.api, org, false, SERVICE), {
    organization: { work_dispatch_stopped_at: null },
  });
  const department = await createSecondProfile(sql, org, { kind: 'department' });
  const limited = capability((await runNew(sql, department)).executionToken);
  test.match(await refusal(setWorkDispatch(sql.api, org, true, limited)), { status: 401 }, 'a department may not');
  await completeRun(sql.api, run);
  test.match(await refusal(setWorkDispatch(sql.api, org, true, agent)), { status: 401 }, 'nor who has finished');
});

scenario('an unknown or deleted organization has no work dispatch', async (test) => {
  const org = await createTestOrganization(sql);
  const missing = { ...org, organizationId: randomUUID() };
  const gone = { status: 404, code: 'organization_not_found' };
  test.match(await refusal(setWorkDispatch(sql.api, missing, true)), gone);
  await transition(sql.api, 'organization_delete', { organizationId: org.organizationId });
  test.match(await refusal(setWorkDispatch(sql.api, org, true)), gone);
});

scenario('an agent that stops dispatch and a change of its profile do not lock each other out', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  const [agent, person] = [await openSession(test, sql), await openSession(test, sql)];
  await person.begin();
  await updateProfile(person, org, { name: 'Renamed' });
  const stopping = refusal(setWorkDispatch(agent, org, true, capability(run.executionToken)));
  await agent.waits();
  await updateProfile(person, org, { status: 'disabled' });
  await person.commit();
  test.match(await stopping, { status: 401, code: 'agent_unauthorized' });
});
