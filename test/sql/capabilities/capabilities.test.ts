import { randomUUID } from 'node:crypto';
import t from 'tap';
import {
  addDependency,
  cancelTask,
  capability,
  completeRun,
  createInitiative,
  createSecondProfile,
  createTask,
  createTestOrganization,
  deleteDependency,
  endLease,
  expire,
  failRun,
  heartbeat,
  publishNow,
  type Run,
  retryTask,
  runMode,
  runNew,
  runNext,
  runPlan,
  SERVICE,
  sha256,
  type TestOrganization,
  taskCreate,
  taskRow,
  updateOrganization,
  updateProfile,
  updateTask,
} from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { type JsonObject, openSession, openSql, refusal, transition } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const unauthorized = { status: 401, code: 'agent_unauthorized' };

function check(organizationId: string, executionToken: string): Promise<JsonObject> {
  return transition(sql.api, 'capability_check', {
    organizationId,
    tokenHash: sha256(executionToken),
  });
}

/** Everything that agents change about a task, by name. */
const changes: Readonly<
  Record<string, (org: TestOrganization, taskId: string, actor: JsonObject) => Promise<unknown>>
> = {
  update: async (org, taskId, actor) =>
    updateTask(sql.api, org, taskId, (await taskRow(sql, org, taskId)).version, { title: randomUUID() }, actor),
  dependency: async (org, taskId, actor) =>
    addDependency(sql.api, org, taskId, (await createTask(sql, org)).id, { actor, required: false }),
  'dependency removed': async (org, taskId, actor) => {
    const { id } = await createTask(sql, org);
    // A running task takes none.
    await addDependency(sql.api, org, taskId, id, { required: false }).catch(() => undefined);
    return deleteDependency(sql.api, org, taskId, id, actor);
  },
  input: (org, taskId, actor) =>
    transition(sql.api, 'task_input_put', {
      organizationId: org.organizationId,
      taskRef: taskId,
      path: 'a',
      storageKey: 'k',
      size: 1,
      sha256: sha256(''),
      mediaType: 'text/plain',
      actor,
    }),
  cancel: (org, taskId, actor) => cancelTask(sql.api, org, taskId, actor),
};

scenario('a token stands for its run while the lease is current', async (test) => {
  const org = await createTestOrganization(sql, { kind: 'operator' });
  const run = await runNew(sql, org);
  test.same(await check(org.organizationId, run.executionToken), {
    actor: {
      organizationId: org.organizationId,
      agentProfileId: org.profileId,
      profileKind: 'operator',
      runId: run.runId,
      taskId: run.taskId,
      chatId: null,
      messageId: null,
      mode: 'execute',
    },
  });
  await heartbeat(sql.api, run);
  test.ok(await check(org.organizationId, run.executionToken));
  const foreign = await createTestOrganization(sql);
  test.match(
    await refusal(check(foreign.organizationId, run.executionToken)),
    unauthorized,
    'in its organization alone',
  );
  test.match(await refusal(check(randomUUID(), run.executionToken)), unauthorized);
  test.match(await refusal(check(org.organizationId, run.leaseToken)), unauthorized, 'a lease token is none');
  const { rows } = await sql.owner.query(
    'select count(*)::int as n from app.run_requests where execution_token_hash = $1',
    [run.executionToken],
  );
  test.same(rows, [{ n: 0 }], 'the token itself is stored nowhere');
});

scenario('every end of the lease ends the capability at once', async (test) => {
  const ends: Readonly<Record<string, (org: TestOrganization, run: Run) => Promise<unknown>>> = {
    complete: (_, run) => completeRun(sql.api, run),
    fail: (_, run) => failRun(sql.api, run),
    'fail, retryable': (_, run) => failRun(sql.api, run, { retryable: true }),
    cancel: (org, run) => cancelTask(sql.api, org, run.taskId),
    'lease over, unnoticed': (_, run) => endLease(sql, run),
    'lease over, noticed': async (_, run) => {
      await endLease(sql, run);
      await expire(sql.jobs, run);
    },
    'profile disabled': (org) => updateProfile(sql.api, org, { status: 'disabled' }),
    'profile deleted': (org) =>
      transition(sql.api, 'agent_profile_delete', {
        organizationId: org.organizationId,
        agentProfileId: org.profileId,
      }),
    'organization deleted': (org) => transition(sql.api, 'organization_delete', { organizationId: org.organizationId }),
  };
  for (const [name, end] of Object.entries(ends)) {
    const org = await createTestOrganization(sql);
    const run = await runNew(sql, org);
    const other = await createTask(sql, org);
    await end(org, run);
    test.match(await refusal(check(org.organizationId, run.executionToken)), unauthorized, name);
    const used = await refusal(cancelTask(sql.api, org, other.id, capability(run.executionToken)));
    test.match(used, name === 'organization deleted' ? { status: 404 } : unauthorized, name);
    // So that the look at the invariants finds nothing half-way.
    if (name === 'lease over, unnoticed') await expire(sql.jobs, run);
  }
});

scenario('a capability does not come back when the request is started again', async (test) => {
  const org = await createTestOrganization(sql);
  const first = await runNew(sql, org);
  await endLease(sql, first);
  await expire(sql.jobs, first);
  await publishNow(sql, org, first.taskId);
  const second = await runNext(sql, org);
  test.equal(second.runRequestId, first.runRequestId);
  test.match(await refusal(check(org.organizationId, first.executionToken)), unauthorized);
  test.match(await check(org.organizationId, second.executionToken), { actor: { runId: second.runId } });
});

scenario('a change by an agent and the end of its lease exclude each other', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  const other = await createTask(sql, org);
  const [worker, agent] = [await openSession(test, sql), await openSession(test, sql)];
  await worker.begin();
  await completeRun(worker, run);
  const late = refusal(cancelTask(agent, org, other.id, capability(run.executionToken)));
  await agent.waits();
  await worker.commit();
  test.match(await late, unauthorized);
  test.match(await taskRow(sql, org, other.id), { status: 'pending' });
});

scenario('operators and chat profiles change any task', async (test) => {
  for (const kind of ['operator', 'chat']) {
    const org = await createTestOrganization(sql, { kind });
    const actor = capability((await runNew(sql, org)).executionToken);
    const { leaf } = await createInitiative(sql, org, ['leaf']);
    for (const [name, change] of Object.entries(changes)) test.ok(await change(org, leaf, actor), `${kind}: ${name}`);
    test.ok(await taskCreate(sql.api, org, {}, actor));
  }
});

scenario('a department run changes its own task and what is below it, and nothing else', async (test) => {
  const org = await createTestOrganization(sql, { kind: 'department' });
  const actor = capability((await runNew(sql, org)).executionToken);
  const { root, leaf } = await createInitiative(sql, org, ['leaf']);
  const own = (await createTask(sql, org, { parentId: root, priority: 2_000_000 })).id;
  const below = capability((await runNext(sql, org)).executionToken);
  for (const [name, change] of Object.entries(changes)) {
    for (const id of [root, leaf]) {
      test.match(await refusal(change(org, id, actor)), unauthorized, `${name}, from outside`);
      test.match(await refusal(change(org, id, below)), unauthorized, `${name}, from below`);
    }
  }
  test.match(await refusal(taskCreate(sql.api, org, {}, below)), unauthorized, 'nothing of its own beside it');
  test.match(await refusal(taskCreate(sql.api, org, { parentId: root }, below)), unauthorized, 'nor beside itself');
  test.match(
    await refusal(taskCreate(sql.api, org, { dependsOn: ['T-999'] }, below)),
    unauthorized,
    'whatever it names',
  );
  test.ok(await changes['update']?.(org, own, below), 'its own');
  test.match(await refusal(cancelTask(sql.api, org, 'T-999', below)), unauthorized, 'and it learns of no other task');
});

scenario('a department run that plans an initiative makes and changes tasks below it', async (test) => {
  const org = await createTestOrganization(sql, { kind: 'department' });
  const run = await runPlan(sql, org);
  const root = run.taskId;
  const inner = (await createTask(sql, org, { kind: 'initiative', parentId: root })).id;
  const deep = (await createTask(sql, org, { parentId: inner })).id;
  const actor = capability(run.executionToken);
  test.match(await updateTask(sql.api, org, deep, 1, { title: 'new' }, actor), { task: { id: deep, title: 'new' } });
  test.match(await taskCreate(sql.api, org, { title: 'x', parentId: root }, actor), {
    created: true,
    task: { parent_id: root, created_by_run_id: run.runId },
  });
  const other = await createTask(sql, org);
  test.match(await refusal(updateTask(sql.api, org, other.id, 1, { title: 'new' }, actor)), unauthorized);
});

scenario('a verify run changes nothing', async (test) => {
  const org = await createTestOrganization(sql);
  const task = await createTask(sql, org);
  const growth = await createSecondProfile(sql, org, { kind: 'department' });
  await completeRun(sql.api, await runNew(sql, growth, { spec: { verification: 'agent' } }));
  const run = await runMode(sql, org, 'verify');
  test.match(await check(org.organizationId, run.executionToken), { actor: { mode: 'verify' } }, 'it reads');
  const actor = capability(run.executionToken);
  for (const [name, change] of Object.entries(changes)) {
    test.match(await refusal(change(org, task.id, actor)), unauthorized, name);
    test.match(await refusal(change(org, run.taskId, actor)), unauthorized, name);
  }
  test.match(await refusal(taskCreate(sql.api, org, {}, actor)), unauthorized);
  test.match(await refusal(retryTask(sql.api, org, task.id, actor)), unauthorized);
});

scenario('agents and the service change nothing in a suspended organization, its owners may', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  const task = await createTask(sql, org);
  await updateOrganization(sql.api, org, { status: 'suspended' });
  for (const actor of [capability(run.executionToken), SERVICE]) {
    for (const [name, change] of Object.entries(changes)) {
      test.match(await refusal(change(org, task.id, actor)), { status: 409, code: 'state_conflict' }, name);
    }
  }
  test.ok(await check(org.organizationId, run.executionToken), 'reads work');
  test.same(await completeRun(sql.api, run), { status: 'succeeded' }, 'and what runs may finish');
  test.match(await cancelTask(sql.api, org, task.id), { task: { status: 'cancelled' } });
});

scenario(
  'a capability of another organization changes nothing here, and an unknown actor is an error',
  async (test) => {
    const org = await createTestOrganization(sql);
    const foreign = await createTestOrganization(sql);
    const run = await runNew(sql, foreign);
    const task = await createTask(sql, org);
    test.match(await refusal(cancelTask(sql.api, org, task.id, capability(run.executionToken))), unauthorized);
    test.match(await refusal(cancelTask(sql.api, org, task.id, capability(randomUUID()))), unauthorized);
    await test.rejects(cancelTask(sql.api, org, task.id, { kind: 'admin' }), /unknown actor/);
    await test.rejects(cancelTask(sql.api, org, task.id, {}), /unknown actor/);
  },
);

scenario('a second profile does not act through the token of the first', async (test) => {
  const org = await createTestOrganization(sql);
  const second = await createSecondProfile(sql, org, { kind: 'department' });
  const [one, two] = [await runNew(sql, org), await runNew(sql, second)];
  test.match(await check(org.organizationId, one.executionToken), { actor: { agentProfileId: org.profileId } });
  test.match(await check(org.organizationId, two.executionToken), { actor: { agentProfileId: second.profileId } });
  test.not(one.executionToken, two.executionToken);
});
