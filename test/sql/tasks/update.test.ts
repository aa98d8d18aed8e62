import { randomUUID } from 'node:crypto';
import t from 'tap';
import {
  cancelTask,
  claimNext,
  createInitiative,
  createSecondProfile,
  createTask,
  createTestOrganization,
  lastRequest,
  openItems,
  patchTask,
  pull,
  requestRows,
  runNew,
  runNext,
  setWorkDispatch,
  startRun,
  taskRow,
  updateProfile,
  updateTask,
} from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSession, openSql, refusal, transition } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const lost = { status: 409, code: 'run_lease_expired', reason: 'lease_lost' };

scenario('a patch changes what it names and raises the version once', async (test) => {
  const org = await createTestOrganization(sql);
  const task = await createTask(sql, org, { spec: { objective: 'old' }, dueAt: '2030-01-01T00:00:00Z' });
  const patched = await patchTask(sql, org, task.id, {
    title: 'New',
    priority: 9,
    dueAt: null,
    spec: { objective: 'new', extra: [1] },
  });
  test.match(patched, { version: 2, title: 'New', priority: 9, due_at: null, spec: { objective: 'new', extra: [1] } });
  test.match(await lastRequest(sql, org, task.id), { state: 'published', priority: 9 });
  const removed = await patchTask(sql, org, task.id, { spec: { objective: null, extra: null } });
  test.match(removed, { version: 3, spec: { objective: '' } }, 'what is removed has its default again');
  test.notOk('extra' in (removed['spec'] as object));
});

scenario('a patch that changes nothing leaves the version as it is', async (test) => {
  const org = await createTestOrganization(sql);
  const task = await createTask(sql, org, { dueAt: '2030-01-01T00:00:00Z' });
  for (const patch of [{}, { title: task['title'] }, { priority: 0, dueAt: '2030-01-01T00:00:00Z' }, { spec: {} }]) {
    test.match(await patchTask(sql, org, task.id, patch), { version: 1 });
  }
  await patchTask(sql, org, task.id, { priority: 1 });
  const before = await taskRow(sql, org, task.id);
  test.same(await taskRow(sql, org, (await patchTask(sql, org, task.id, { priority: 1 })).id), before);
});

scenario('a task is found by its identifier too, in its own organization alone', async (test) => {
  const org = await createTestOrganization(sql);
  const foreign = await createTestOrganization(sql);
  const task = await createTask(sql, org);
  test.match(await updateTask(sql.api, org, 'T-1', 1, { title: 'By name' }), { task: { id: task.id, version: 2 } });
  const missing = { status: 404, code: 'task_not_found' };
  for (const ref of ['T-2', 'I-1', 'T-01', 'X-1', 'T-99999999999', randomUUID(), '']) {
    test.match(await refusal(updateTask(sql.api, org, ref, 1, {})), missing, ref);
  }
  test.match(await refusal(updateTask(sql.api, foreign, task.id, 2, {})), missing);
  const nowhere = { ...org, organizationId: randomUUID() };
  test.match(await refusal(updateTask(sql.api, nowhere, task.id, 2, {})), {
    status: 404,
    code: 'organization_not_found',
  });
});

scenario('a stale version is refused, also when two patch at once', async (test) => {
  const org = await createTestOrganization(sql);
  const task = await createTask(sql, org);
  const [one, two] = [await openSession(test, sql), await openSession(test, sql)];
  await one.begin();
  await updateTask(one, org, task.id, 1, { title: 'one' });
  const late = refusal(updateTask(two, org, task.id, 1, { title: 'two' }));
  await two.waits();
  await one.commit();
  test.match(await late, { status: 409, code: 'state_conflict', reason: 'stale' });
  test.match(await taskRow(sql, org, task.id), { title: 'one', version: 2 });
});

scenario('a closed task takes no patch', async (test) => {
  const org = await createTestOrganization(sql);
  const task = await createTask(sql, org);
  await cancelTask(sql.api, org, task.id);
  test.match(await refusal(patchTask(sql, org, task.id, { title: 'x' })), { status: 409, code: 'state_conflict' });
});

scenario(
  'a running task keeps its spec, owner and schedule; its title, priority and due time may change',
  async (test) => {
    const org = await createTestOrganization(sql);
    const run = await runNew(sql, org);
    for (const patch of [
      { spec: { objective: 'x' } },
      { ownerProfileKey: org.profileKey },
      { ownerAgentProfileId: org.profileId },
      { scheduledAt: null },
      { title: 'x', spec: {} },
    ]) {
      test.match(await refusal(patchTask(sql, org, run.taskId, patch)), { status: 409, code: 'state_conflict' });
    }
    const patched = await patchTask(sql, org, run.taskId, {
      title: 'Renamed',
      priority: 4,
      dueAt: '2031-01-01T00:00:00Z',
    });
    test.match(patched, { status: 'running', title: 'Renamed', priority: 4 });
  },
);

scenario(
  'a changed spec ends the claim of who was handed the old one; the request is published again',
  async (test) => {
    const org = await createTestOrganization(sql);
    const task = await createTask(sql, org);
    const claim = await claimNext(sql, org);
    await patchTask(sql, org, task.id, { title: 'Only the title', priority: 2 });
    test.match(await lastRequest(sql, org, task.id), { state: 'leased', priority: 2 });
    await patchTask(sql, org, task.id, { spec: { objective: 'new' } });
    test.match(await refusal(startRun(sql.api, claim)), lost);
    test.match(await requestRows(sql, org, task.id), [{ state: 'published', attempt: 0 }]);
    test.match(await claimNext(sql, org), { task: { spec: { objective: 'new' } } });
  },
);

scenario('a changed spec ends a claim that was just being handed out', async (test) => {
  const org = await createTestOrganization(sql);
  const task = await createTask(sql, org);
  const [puller, person] = [await openSession(test, sql), await openSession(test, sql)];
  await puller.begin();
  const [claim] = await pull(puller, { organizationIds: [org.organizationId] });
  const patching = updateTask(person, org, task.id, 1, { spec: { objective: 'new' } });
  await person.waits();
  await puller.commit();
  await patching;
  if (!claim) throw new Error('nothing pulled');
  test.match(await refusal(startRun(sql.api, claim)), lost);
  test.match(await lastRequest(sql, org, task.id), { state: 'published' });
});

scenario('another owner gets a request in its own lane, and the claim of the old one ends', async (test) => {
  const org = await createTestOrganization(sql);
  const second = await createSecondProfile(sql, org);
  const task = await createTask(sql, org);
  const claim = await claimNext(sql, org);
  const patched = await patchTask(sql, org, task.id, { ownerProfileKey: second.profileKey });
  test.match(patched, { owner_agent_profile_id: second.profileId, status: 'pending' });
  test.match(await refusal(startRun(sql.api, claim)), lost);
  test.match(await requestRows(sql, org, task.id), [
    { state: 'cancelled', agent_profile_id: org.profileId },
    { state: 'published', agent_profile_id: second.profileId },
  ]);
  const foreign = await createTestOrganization(sql);
  const unknown = { status: 400, code: 'validation_failed', reason: 'unknown_profile' };
  test.match(await refusal(patchTask(sql, org, task.id, { ownerAgentProfileId: foreign.profileId })), unknown);
  await updateProfile(sql.api, org, { status: 'disabled' });
  test.match(await patchTask(sql, org, task.id, { ownerAgentProfileId: org.profileId }), {
    status: 'blocked',
    blockers: [{ kind: 'profile' }],
  });
});

scenario('a schedule blocks a ready task, and a schedule that is taken away frees it', async (test) => {
  const org = await createTestOrganization(sql);
  const task = await createTask(sql, org);
  const claim = await claimNext(sql, org);
  const later = await patchTask(sql, org, task.id, { scheduledAt: '2099-01-01T00:00:00.000Z' });
  test.match(later, { status: 'blocked', blockers: [{ kind: 'schedule', until: '2099-01-01T00:00:00.000Z' }] });
  test.match(await refusal(startRun(sql.api, claim)), lost);
  test.match(await patchTask(sql, org, task.id, { scheduledAt: '2098-01-01T00:00:00.000Z' }), {
    blockers: [{ until: '2098-01-01T00:00:00.000Z' }],
  });
  test.match(await patchTask(sql, org, task.id, { scheduledAt: null }), { status: 'pending', blockers: [] });
});

scenario('a patch of a task whose request is parked leaves it parked', async (test) => {
  const org = await createTestOrganization(sql);
  await setWorkDispatch(sql.api, org, true);
  const task = await createTask(sql, org);
  await patchTask(sql, org, task.id, { spec: { objective: 'x' }, priority: 3 });
  test.match(await requestRows(sql, org, task.id), [{ state: 'queued', parked: true, priority: 3 }]);
});

scenario('a budget lowered below what is used blocks the task with a question, once', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  await transition(sql.api, 'run_complete', {
    organizationId: org.organizationId,
    runId: run.runId,
    leaseToken: run.leaseToken,
    bodyHash: 'a',
    result: { kind: 'waiting', until: '2020-01-01T00:00:00Z', reason: '' },
    report: {},
    checks: null,
    evaluationDigest: null,
  });
  const lowered = await patchTask(sql, org, run.taskId, { spec: { budget: { maxAgentRuns: 1 } } });
  test.match(lowered, { status: 'blocked', blockers: [{ kind: 'budget' }] });
  await patchTask(sql, org, run.taskId, { spec: { budget: { maxAgentRuns: 0 } } });
  test.equal((await openItems(sql, org, run.taskId)).length, 1);
  test.match(await patchTask(sql, org, run.taskId, { spec: { budget: { maxAgentRuns: null } } }), {
    status: 'pending',
  });
  test.same(await openItems(sql, org, run.taskId), []);
});

scenario('a raised budget of an initiative frees every task below that waited for it', async (test) => {
  const org = await createTestOrganization(sql);
  const { root, one, two } = await createInitiative(sql, org, ['one', 'two'], {
    spec: { budget: { maxAgentRuns: 1 } },
  });
  const middle = await createTask(sql, org, { kind: 'initiative', parentId: root });
  const deep = await createTask(sql, org, { parentId: middle.id });
  await runNext(sql, org);
  for (let n = 0; n < 2; n += 1) {
    test.match(await refusal(startRun(sql.api, await claimNext(sql, org))), { reason: 'task_not_ready' });
  }
  for (const id of [two, deep.id]) {
    test.match(await taskRow(sql, org, id), { status: 'blocked', blockers: [{ kind: 'budget' }] });
    test.equal((await openItems(sql, org, id)).length, 1);
  }
  await patchTask(sql, org, root, { spec: { budget: { maxAgentRuns: 3 } } });
  for (const id of [two, deep.id]) {
    test.match(await taskRow(sql, org, id), { status: 'pending', blockers: [] });
    test.same(await openItems(sql, org, id), [], 'the questions are answered');
  }
  test.match(await taskRow(sql, org, one), { status: 'running' });
  await runNext(sql, org);
  await runNext(sql, org);
  test.match(await taskRow(sql, org, root), { consumed_agent_run_count: 3 });
});
