import { randomUUID } from 'node:crypto';
import t from 'tap';
import {
  addDependency,
  cancelTask,
  capability,
  completeRun,
  createInitiative,
  createPlace,
  createSecondProfile,
  createTask,
  endLease,
  expire,
  failRun,
  heartbeat,
  type Place,
  publishNow,
  type Run,
  retryTask,
  runMode,
  runNew,
  runNext,
  runPlan,
  SERVICE,
  sha256,
  taskCreate,
  taskRow,
  updateOrganization,
  updateProfile,
  updateTask,
} from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { type Answer, openSession, openSql, refusal, transition } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const unauthorized = { status: 401, code: 'agent_unauthorized' };

function check(organizationId: string, executionToken: string): Promise<Answer> {
  return transition(sql.api, 'capability_check', {
    p_organization_id: organizationId,
    p_token_hash: sha256(executionToken),
  });
}

/** Everything that agents change about a task, by name. */
const changes: Readonly<Record<string, (place: Place, taskId: string, actor: Answer) => Promise<unknown>>> = {
  update: async (place, taskId, actor) =>
    updateTask(sql.api, place, taskId, (await taskRow(sql, place, taskId)).version, { title: randomUUID() }, actor),
  dependency: async (place, taskId, actor) =>
    addDependency(sql.api, place, taskId, (await createTask(sql, place)).id, { actor, required: false }),
  input: (place, taskId, actor) =>
    transition(sql.api, 'task_input_put', {
      p_organization_id: place.organizationId,
      p_task_ref: taskId,
      p_path: 'a',
      p_storage_key: 'k',
      p_size: 1,
      p_sha256: sha256(''),
      p_media_type: 'text/plain',
      p_actor: actor,
    }),
  cancel: (place, taskId, actor) => cancelTask(sql.api, place, taskId, actor),
};

scenario('a token stands for its run while the lease is current', async (test) => {
  const place = await createPlace(sql, { kind: 'operator' });
  const run = await runNew(sql, place);
  test.same(await check(place.organizationId, run.executionToken), {
    actor: {
      organizationId: place.organizationId,
      agentProfileId: place.profileId,
      profileKind: 'operator',
      runId: run.runId,
      taskId: run.taskId,
      chatId: null,
      messageId: null,
      mode: 'execute',
    },
  });
  await heartbeat(sql.api, run);
  test.ok(await check(place.organizationId, run.executionToken));
  const foreign = await createPlace(sql);
  test.match(
    await refusal(check(foreign.organizationId, run.executionToken)),
    unauthorized,
    'in its organization alone',
  );
  test.match(await refusal(check(randomUUID(), run.executionToken)), unauthorized);
  test.match(await refusal(check(place.organizationId, run.leaseToken)), unauthorized, 'a lease token is none');
  const { rows } = await sql.owner.query(
    'select count(*)::int as n from app.run_requests where execution_token_hash = $1',
    [run.executionToken],
  );
  test.same(rows, [{ n: 0 }], 'the token itself is stored nowhere');
});

scenario('every end of the lease ends the capability at once', async (test) => {
  const ends: Readonly<Record<string, (place: Place, run: Run) => Promise<unknown>>> = {
    complete: (_, run) => completeRun(sql.api, run),
    fail: (_, run) => failRun(sql.api, run),
    'fail, retryable': (_, run) => failRun(sql.api, run, { retryable: true }),
    cancel: (place, run) => cancelTask(sql.api, place, run.taskId),
    'lease over, unnoticed': (_, run) => endLease(sql, run),
    'lease over, noticed': async (_, run) => {
      await endLease(sql, run);
      await expire(sql.jobs, run);
    },
    'profile disabled': (place) => updateProfile(sql.api, place, { status: 'disabled' }),
    'profile deleted': (place) =>
      transition(sql.api, 'agent_profile_delete', {
        p_organization_id: place.organizationId,
        p_agent_profile_id: place.profileId,
      }),
    'organization deleted': (place) =>
      transition(sql.api, 'organization_delete', { p_organization_id: place.organizationId }),
  };
  for (const [name, end] of Object.entries(ends)) {
    const place = await createPlace(sql);
    const run = await runNew(sql, place);
    const other = await createTask(sql, place);
    await end(place, run);
    test.match(await refusal(check(place.organizationId, run.executionToken)), unauthorized, name);
    const used = await refusal(cancelTask(sql.api, place, other.id, capability(run.executionToken)));
    test.match(used, name === 'organization deleted' ? { status: 404 } : unauthorized, name);
    // So that the look at the invariants finds nothing half-way.
    if (name === 'lease over, unnoticed') await expire(sql.jobs, run);
  }
});

scenario('a capability does not come back when the request is started again', async (test) => {
  const place = await createPlace(sql);
  const first = await runNew(sql, place);
  await endLease(sql, first);
  await expire(sql.jobs, first);
  await publishNow(sql, place, first.taskId);
  const second = await runNext(sql, place);
  test.equal(second.runRequestId, first.runRequestId);
  test.match(await refusal(check(place.organizationId, first.executionToken)), unauthorized);
  test.match(await check(place.organizationId, second.executionToken), { actor: { runId: second.runId } });
});

scenario('a change by an agent and the end of its lease exclude each other', async (test) => {
  const place = await createPlace(sql);
  const run = await runNew(sql, place);
  const other = await createTask(sql, place);
  const [worker, agent] = [await openSession(test, sql), await openSession(test, sql)];
  await worker.begin();
  await completeRun(worker, run);
  const late = refusal(cancelTask(agent, place, other.id, capability(run.executionToken)));
  await agent.waits();
  await worker.commit();
  test.match(await late, unauthorized);
  test.match(await taskRow(sql, place, other.id), { status: 'pending' });
});

scenario('operators and chat profiles change any task', async (test) => {
  for (const kind of ['operator', 'chat']) {
    const place = await createPlace(sql, { kind });
    const actor = capability((await runNew(sql, place)).executionToken);
    const { leaf } = await createInitiative(sql, place, ['leaf']);
    for (const [name, change] of Object.entries(changes)) test.ok(await change(place, leaf, actor), `${kind}: ${name}`);
    test.ok(await taskCreate(sql.api, place, {}, actor));
  }
});

scenario('a department run changes its own task and what is below it, and nothing else', async (test) => {
  const place = await createPlace(sql, { kind: 'department' });
  const actor = capability((await runNew(sql, place)).executionToken);
  const { root, leaf } = await createInitiative(sql, place, ['leaf']);
  const own = (await createTask(sql, place, { parentId: root, priority: 2_000_000 })).id;
  const below = capability((await runNext(sql, place)).executionToken);
  for (const [name, change] of Object.entries(changes)) {
    for (const id of [root, leaf]) {
      test.match(await refusal(change(place, id, actor)), unauthorized, `${name}, from outside`);
      test.match(await refusal(change(place, id, below)), unauthorized, `${name}, from below`);
    }
  }
  test.match(await refusal(taskCreate(sql.api, place, {}, below)), unauthorized, 'nothing of its own beside it');
  test.match(await refusal(taskCreate(sql.api, place, { parentId: root }, below)), unauthorized, 'nor beside itself');
  test.match(
    await refusal(taskCreate(sql.api, place, { dependsOn: ['T-999'] }, below)),
    unauthorized,
    'whatever it names',
  );
  test.ok(await changes['update']?.(place, own, below), 'its own');
  test.match(await refusal(cancelTask(sql.api, place, 'T-999', below)), unauthorized, 'and it learns of no other task');
});

scenario('a department run that plans an initiative makes and changes tasks below it', async (test) => {
  const place = await createPlace(sql, { kind: 'department' });
  const run = await runPlan(sql, place);
  const root = run.taskId;
  const inner = (await createTask(sql, place, { kind: 'initiative', parentId: root })).id;
  const deep = (await createTask(sql, place, { parentId: inner })).id;
  const actor = capability(run.executionToken);
  test.match(await updateTask(sql.api, place, deep, 1, { title: 'new' }, actor), { task: { id: deep, title: 'new' } });
  test.match(await taskCreate(sql.api, place, { title: 'x', parentId: root }, actor), {
    created: true,
    task: { parent_id: root, created_by_run_id: run.runId },
  });
  const other = await createTask(sql, place);
  test.match(await refusal(updateTask(sql.api, place, other.id, 1, { title: 'new' }, actor)), unauthorized);
});

scenario('a verify run changes nothing', async (test) => {
  const place = await createPlace(sql);
  const task = await createTask(sql, place);
  const growth = await createSecondProfile(sql, place, { kind: 'department' });
  await completeRun(sql.api, await runNew(sql, growth, { spec: { verification: 'agent' } }));
  const run = await runMode(sql, place, 'verify');
  test.match(await check(place.organizationId, run.executionToken), { actor: { mode: 'verify' } }, 'it reads');
  const actor = capability(run.executionToken);
  for (const [name, change] of Object.entries(changes)) {
    test.match(await refusal(change(place, task.id, actor)), unauthorized, name);
    test.match(await refusal(change(place, run.taskId, actor)), unauthorized, name);
  }
  test.match(await refusal(taskCreate(sql.api, place, {}, actor)), unauthorized);
  test.match(await refusal(retryTask(sql.api, place, task.id, actor)), unauthorized);
});

scenario('agents and the service change nothing in a suspended organization, its owners may', async (test) => {
  const place = await createPlace(sql);
  const run = await runNew(sql, place);
  const task = await createTask(sql, place);
  await updateOrganization(sql.api, place, { status: 'suspended' });
  for (const actor of [capability(run.executionToken), SERVICE]) {
    for (const [name, change] of Object.entries(changes)) {
      test.match(await refusal(change(place, task.id, actor)), { status: 409, code: 'state_conflict' }, name);
    }
  }
  test.ok(await check(place.organizationId, run.executionToken), 'reads work');
  test.same(await completeRun(sql.api, run), { status: 'succeeded' }, 'and what runs may finish');
  test.match(await cancelTask(sql.api, place, task.id), { task: { status: 'cancelled' } });
});

scenario(
  'a capability of another organization changes nothing here, and an unknown actor is an error',
  async (test) => {
    const place = await createPlace(sql);
    const foreign = await createPlace(sql);
    const run = await runNew(sql, foreign);
    const task = await createTask(sql, place);
    test.match(await refusal(cancelTask(sql.api, place, task.id, capability(run.executionToken))), unauthorized);
    test.match(await refusal(cancelTask(sql.api, place, task.id, capability(randomUUID()))), unauthorized);
    await test.rejects(cancelTask(sql.api, place, task.id, { kind: 'admin' }), /unknown actor/);
    await test.rejects(cancelTask(sql.api, place, task.id, {}), /unknown actor/);
  },
);

scenario('a second profile does not act through the token of the first', async (test) => {
  const place = await createPlace(sql);
  const second = await createSecondProfile(sql, place, { kind: 'department' });
  const [one, two] = [await runNew(sql, place), await runNew(sql, second)];
  test.match(await check(place.organizationId, one.executionToken), { actor: { agentProfileId: place.profileId } });
  test.match(await check(place.organizationId, two.executionToken), { actor: { agentProfileId: second.profileId } });
  test.not(one.executionToken, two.executionToken);
});
