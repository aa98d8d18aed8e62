import { randomUUID } from 'node:crypto';
import t from 'tap';
import {
  cancelTask,
  claimNext,
  createInitiative,
  createSecondProfile,
  createTask,
  createTestOrganization,
  endLease,
  lastRequest,
  pull,
  releaseClaim,
  requestRows,
  runNew,
  setWorkDispatch,
  startRun,
  taskCreate,
  taskRow,
  updateOrganization,
  updateProfile,
} from '../../support/fixtures.ts';
import { brokenInvariants, scenarios } from '../../support/invariants.ts';
import { openSession, openSql, Refusal, refusal, transition } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const lost = { status: 409, code: 'run_lease_expired', reason: 'lease_lost' };

scenario('a claim is started: the task runs, one attempt is counted, the lease is renewed', async (test) => {
  const org = await createTestOrganization(sql);
  const task = await createTask(sql, org);
  const claim = await claimNext(sql, org);
  test.match(claim, { kind: 'task', mode: 'execute', attempt: 1, task: { id: task.id, graph_revision: 1 } });
  const runId = randomUUID();
  const run = await startRun(sql.api, claim, { runId, workerId: 'w-1', leaseSeconds: 60 });
  test.match(run, { taskId: task.id, runRequestId: claim.runRequestId, runId, attempt: 1 });
  const seconds = (Date.parse(run.leaseExpiresAt) - Date.now()) / 1000;
  test.ok(seconds > 50 && seconds < 70, 'for the seconds that the backend says');
  test.match(await taskRow(sql, org, task.id), {
    status: 'running',
    active_run_id: runId,
    agent_run_count: 1,
    consumed_agent_run_count: 1,
    started_at: Date,
  });
  test.match(await lastRequest(sql, org, task.id), { state: 'started', attempt: 1, run_id: runId, worker_id: 'w-1' });
});

scenario('a start sent again returns the same, the execution token too, and counts nothing', async (test) => {
  const org = await createTestOrganization(sql);
  await createTask(sql, org);
  const claim = await claimNext(sql, org);
  const first = await startRun(sql.api, claim, { runId: '00000000-0000-4000-8000-000000000001' });
  const again = await startRun(sql.api, claim, { runId: '00000000-0000-4000-8000-000000000001' });
  test.same(again, first);
  test.match(await taskRow(sql, org, first.taskId), { agent_run_count: 1, consumed_agent_run_count: 1 });
});

scenario('of 20 starts at once with runs of their own one wins, and one attempt is counted', async (test) => {
  const org = await createTestOrganization(sql);
  const task = await createTask(sql, org);
  const claim = await claimNext(sql, org);
  const starts = await Promise.allSettled(
    Array.from({ length: 20 }, (_, worker) => startRun(sql.api, claim, { workerId: `w-${worker}` })),
  );
  const won = starts.filter((start) => start.status === 'fulfilled');
  const refused = starts.flatMap((start) => (start.status === 'rejected' ? [start.reason] : []));
  test.equal(won.length, 1);
  test.equal(refused.length, 19);
  for (const reason of refused) {
    test.ok(reason instanceof Refusal);
    test.match(reason, { status: 409, code: 'run_lease_expired', reason: 'differs', raised: true });
  }
  test.match(await taskRow(sql, org, task.id), { agent_run_count: 1, consumed_agent_run_count: 1 });
  test.match(await lastRequest(sql, org, task.id), { attempt: 1, run_id: won[0]?.value.runId });
});

scenario('of 20 starts at once of the same run all return the same, and one attempt is counted', async (test) => {
  const org = await createTestOrganization(sql);
  const task = await createTask(sql, org);
  const claim = await claimNext(sql, org);
  const runId = randomUUID();
  const starts = await Promise.all(Array.from({ length: 20 }, () => startRun(sql.api, claim, { runId })));
  for (const start of starts) test.same(start, starts[0]);
  test.match(await taskRow(sql, org, task.id), { agent_run_count: 1 });
  test.match(await lastRequest(sql, org, task.id), { attempt: 1 });
});

scenario('a wrong secret, a stale fence, a token of another request and nonsense start nothing', async (test) => {
  const org = await createTestOrganization(sql);
  const task = await createTask(sql, org);
  const other = await createTask(sql, org);
  const claim = await claimNext(sql, org);
  const foreign = await claimNext(sql, org);
  const [fence = '', secret = ''] = claim.leaseToken.split('.');
  for (const leaseToken of [
    `${fence}.${'0'.repeat(64)}`,
    `${Number(fence) - 1}.${secret}`,
    `${Number(fence) + 1}.${secret}`,
    foreign.leaseToken,
    secret,
    fence,
    '',
    '.',
    `${fence}.`,
  ]) {
    test.match(await refusal(startRun(sql.api, { ...claim, leaseToken })), { ...lost, raised: true }, leaseToken);
  }
  for (const { id } of [task, other]) test.match(await lastRequest(sql, org, id), { state: 'leased', attempt: 0 });
});

scenario('a claim that ended, was given back or was handed out again cannot be started', async (test) => {
  const org = await createTestOrganization(sql);
  const task = await createTask(sql, org);
  const ended = await claimNext(sql, org);
  await endLease(sql, ended);
  test.match(await refusal(startRun(sql.api, ended)), lost, 'ended, before anything has noticed');
  await sql.owner.query(
    `update app.run_requests set lease_expires_at = clock_timestamp() + interval '1 minute'
    where id = $1`,
    [ended.runRequestId],
  );
  test.same(await releaseClaim(sql.api, ended), { released: true });
  test.match(await refusal(startRun(sql.api, ended)), lost, 'given back');
  const again = await claimNext(sql, org);
  test.equal(again.runRequestId, ended.runRequestId);
  test.match(await refusal(startRun(sql.api, ended)), lost, 'handed out again');
  test.same(await releaseClaim(sql.api, ended), { released: false }, 'nor can its old holder give it back');
  test.match(await lastRequest(sql, org, task.id), { state: 'leased', attempt: 0, fence: 2 });
  test.equal((await startRun(sql.api, again)).attempt, 1);
});

scenario('a request of another organization, or of none, cannot be started', async (test) => {
  const org = await createTestOrganization(sql);
  const foreign = await createTestOrganization(sql);
  await createTask(sql, org);
  const claim = await claimNext(sql, org);
  test.match(await refusal(startRun(sql.api, { ...claim, organizationId: foreign.organizationId })), lost);
  test.match(await refusal(startRun(sql.api, { ...claim, organizationId: randomUUID() })), lost);
  test.match(await refusal(startRun(sql.api, { ...claim, runRequestId: randomUUID() })), lost);
  test.match(await lastRequest(sql, org, claim.task.id), { state: 'leased', attempt: 0 });
});

scenario('a run id that another request used is refused, also when both start at once', async (test) => {
  const org = await createTestOrganization(sql);
  const used = await runNew(sql, org);
  await createTask(sql, org);
  await createTask(sql, org);
  const [one, two] = [await claimNext(sql, org), await claimNext(sql, org)];
  test.match(await refusal(startRun(sql.api, one, { runId: used.runId })), { status: 409, reason: 'differs' });
  const runId = randomUUID();
  const [first, second] = [await openSession(test, sql), await openSession(test, sql)];
  await first.begin();
  await startRun(first, one, { runId });
  const late = refusal(startRun(second, two, { runId }));
  await second.waits();
  await first.commit();
  test.match(await late, { status: 409, code: 'run_lease_expired', reason: 'differs' });
  test.match(await lastRequest(sql, org, two.task.id), { state: 'leased', attempt: 0 }, 'and counts nothing');
});

scenario('a start after the limits were lowered counts nothing and publishes the request again', async (test) => {
  const org = await createTestOrganization(sql, { limits: { maxConcurrentRuns: 2 } });
  await createTask(sql, org);
  await createTask(sql, org);
  const claims = await pull(sql.api, { organizationIds: [org.organizationId], limit: 2 });
  test.equal(claims.length, 2);
  const [one, two] = claims;
  if (!one || !two) return;
  await updateOrganization(sql.api, org, { config: { limits: { maxConcurrentRuns: 1 } } });
  const refused = await refusal(startRun(sql.api, one));
  test.match(refused, { status: 409, code: 'run_lease_expired', reason: 'capacity', raised: false });
  test.match(await taskRow(sql, org, one.task.id), { status: 'pending', agent_run_count: 0, version: 1 });
  test.match(await lastRequest(sql, org, one.task.id), { state: 'published', attempt: 0 });
  test.match(await refusal(startRun(sql.api, one)), lost, 'the claim is over');
  test.equal((await startRun(sql.api, two)).attempt, 1, 'the other one has its place');
  test.same(await pull(sql.api, { organizationIds: [org.organizationId] }), [], 'and nothing is free');
});

scenario('of two starts at once for one free place one goes back', async (test) => {
  const org = await createTestOrganization(sql, { maxConcurrentRuns: 2 });
  await createTask(sql, org);
  await createTask(sql, org);
  const [one, two] = [await claimNext(sql, org), await claimNext(sql, org)];
  await updateProfile(sql.api, org, { config: { maxConcurrentRuns: 1 } });
  const [first, second] = [await openSession(test, sql), await openSession(test, sql)];
  await first.begin();
  test.match(await refusal(startRun(first, one)), { reason: 'capacity' });
  const late = startRun(second, two);
  await second.waits();
  await first.commit();
  test.equal((await late).attempt, 1);
});

scenario('a claim on a task that was cancelled, or whose profile was disabled, is over', async (test) => {
  const org = await createTestOrganization(sql);
  const cancelled = await createTask(sql, org);
  const claim = await claimNext(sql, org);
  await cancelTask(sql.api, org, cancelled.id);
  test.match(await refusal(startRun(sql.api, claim)), lost);
  await createTask(sql, org);
  const disabled = await claimNext(sql, org);
  await updateProfile(sql.api, org, { status: 'disabled' });
  test.match(await refusal(startRun(sql.api, disabled)), lost);
});

scenario('claims end when the organization is suspended, and are handed out when that is lifted', async (test) => {
  const org = await createTestOrganization(sql);
  const task = await createTask(sql, org);
  const claim = await claimNext(sql, org);
  await updateOrganization(sql.api, org, { status: 'suspended' });
  test.match(await refusal(startRun(sql.api, claim)), lost);
  test.same(await pull(sql.api, { organizationIds: [org.organizationId] }), []);
  await updateOrganization(sql.api, org, { status: 'active' });
  test.equal((await claimNext(sql, org)).task.id, task.id);
});

scenario('a claim that was being handed out while the organization was suspended cannot be started', async (test) => {
  const org = await createTestOrganization(sql);
  const task = await createTask(sql, org);
  const [puller, operator] = [await openSession(test, sql), await openSession(test, sql)];
  await puller.begin();
  const [claim] = await pull(puller, { organizationIds: [org.organizationId] });
  const suspended = updateOrganization(operator, org, { status: 'suspended' });
  await operator.waits();
  await puller.commit();
  await suspended;
  if (!claim) throw new Error('nothing pulled');
  test.match(await refusal(startRun(sql.api, claim)), { ...lost, raised: false });
  test.match(await lastRequest(sql, org, task.id), { state: 'published', attempt: 0 });
  test.match(await refusal(startRun(sql.api, claim)), lost);
});

scenario('a claim that was being handed out while the organization was deleted cannot be started', async (test) => {
  const org = await createTestOrganization(sql);
  const task = await createTask(sql, org);
  const [puller, operator] = [await openSession(test, sql), await openSession(test, sql)];
  await puller.begin();
  const [claim] = await pull(puller, { organizationIds: [org.organizationId] });
  const deleted = transition(operator, 'organization_delete', { organizationId: org.organizationId });
  await operator.waits();
  await puller.commit();
  await deleted;
  if (!claim) throw new Error('nothing pulled');
  test.match(await refusal(startRun(sql.api, claim)), lost);
  test.match(await taskRow(sql, org, task.id), { agent_run_count: 0 });
});

scenario(
  'a task that was made while its profile was disabled is blocked, and free when it is enabled',
  async (test) => {
    const org = await createTestOrganization(sql);
    const [maker, operator] = [await openSession(test, sql), await openSession(test, sql)];
    for (const status of ['disabled', 'enabled']) {
      // Once the task is made first, once the profile is changed first.
      await maker.begin();
      await taskCreate(maker, org, { title: `before ${status}` });
      const changed = updateProfile(operator, org, { status });
      await operator.waits();
      await maker.commit();
      await changed;
      await operator.begin();
      await updateProfile(operator, org, { status: status === 'disabled' ? 'enabled' : 'disabled' });
      const made = taskCreate(maker, org, { title: `after ${status}` });
      await maker.waits();
      await operator.commit();
      await made;
      test.same(await brokenInvariants(sql), {}, status);
      await updateProfile(sql.api, org, { status });
      test.same(await brokenInvariants(sql), {}, `${status} again`);
    }
  },
);

scenario('a start that a sibling left no budget for is refused, and the task asks for more', async (test) => {
  const org = await createTestOrganization(sql);
  const { one, two, root } = await createInitiative(sql, org, ['one', 'two'], {
    spec: { budget: { maxAgentRuns: 1 } },
  });
  const [first, second] = [await claimNext(sql, org), await claimNext(sql, org)];
  await startRun(sql.api, first);
  const refused = await refusal(startRun(sql.api, second));
  test.match(refused, { status: 409, code: 'run_lease_expired', reason: 'task_not_ready', raised: false });
  const [running, refusedTask] = first.task.id === one ? [one, two] : [two, one];
  test.match(await taskRow(sql, org, running), { status: 'running', consumed_agent_run_count: 1 });
  test.match(await taskRow(sql, org, refusedTask), {
    status: 'blocked',
    blockers: [{ kind: 'budget' }],
    agent_run_count: 0,
  });
  test.match(await taskRow(sql, org, root), { consumed_agent_run_count: 1, agent_run_count: 0 });
  test.match(await requestRows(sql, org, refusedTask), [{ state: 'cancelled', attempt: 0 }]);
});

scenario('a start counts in every initiative above, and in no other', async (test) => {
  const org = await createTestOrganization(sql);
  const { root, other } = await createInitiative(sql, org, ['other']);
  const middle = (await createTask(sql, org, { kind: 'initiative', parentId: root })).id;
  const leaf = (await createTask(sql, org, { parentId: middle, priority: 5 })).id;
  const claim = await claimNext(sql, org);
  test.equal(claim.task.id, leaf, 'the higher priority first');
  await startRun(sql.api, claim);
  const counted = await Promise.all([root, middle, leaf, other].map((id) => taskRow(sql, org, id)));
  test.same(
    counted.map((row) => [row['agent_run_count'], row['consumed_agent_run_count']]),
    [
      [0, 1],
      [0, 1],
      [1, 1],
      [0, 0],
    ],
  );
});

scenario('work that is published or claimed when dispatch stops may still be started', async (test) => {
  const org = await createTestOrganization(sql);
  await createTask(sql, org);
  await createTask(sql, org);
  const claimed = await claimNext(sql, org);
  await setWorkDispatch(sql.api, org, true);
  test.equal((await startRun(sql.api, claimed)).attempt, 1);
  test.equal((await startRun(sql.api, await claimNext(sql, org))).attempt, 1);
});

scenario('a run belongs to the profile of its request', async (test) => {
  const org = await createTestOrganization(sql);
  const second = await createSecondProfile(sql, org);
  const task = await createTask(sql, second);
  const run = await startRun(sql.api, await claimNext(sql, org));
  test.equal(run.taskId, task.id);
  const { rows } = await sql.owner.query('select agent_profile_id, organization_id from app.runs where id = $1', [
    run.runId,
  ]);
  test.same(rows, [{ agent_profile_id: second.profileId, organization_id: org.organizationId }]);
});
