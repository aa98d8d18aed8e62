import { randomUUID } from 'node:crypto';
import t from 'tap';
import { createChat, createChatOrganization, send } from '../../support/chat_fixtures.ts';
import {
  cancelTask,
  capability,
  claimNext,
  completeRun,
  createInitiative,
  createSecondProfile,
  createTask,
  createTestOrganization,
  insertOrganization,
  lastRequest,
  patchTask,
  requestRows,
  runNew,
  runNext,
  SERVICE,
  taskCallResult,
  taskCreate,
  taskRow,
  updateOrganization,
  updateProfile,
} from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { scheduleCreate } from '../../support/schedule_fixtures.ts';
import { type JsonObject, openSession, openSql, refusal, transition } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

scenario(
  'a task is made ready, with a number of its own, defaults in its spec and a published request',
  async (test) => {
    const org = await createTestOrganization(sql);
    const result = await taskCreate(sql.api, org, {
      title: 'Write it',
      priority: 3,
      dueAt: '2030-01-02T03:04:05.678Z',
      spec: { objective: 'A text', budget: { maxAgentRuns: 4 } },
    });
    const { task } = taskCallResult.parse(result);
    test.equal(result['created'], true);
    test.match(task, {
      identifier_scope: 'T',
      identifier_number: 1,
      kind: 'task',
      status: 'pending',
      phase: 'execute',
      title: 'Write it',
      priority: 3,
      version: 1,
      graph_revision: 1,
      depth: 0,
      parent_id: null,
      root_task_id: task.id,
      owner_agent_profile_id: org.profileId,
      dedupe_key: task.id,
      created_by_run_id: null,
      blockers: [],
    });
    test.same(task['spec'], {
      objective: 'A text',
      inputs: [],
      acceptanceCriteria: [],
      budget: { maxAgentRuns: 4, maxAttemptsPerPhase: 3, maxReplans: 2 },
    });
    test.match(await requestRows(sql, org, task.id), [
      { state: 'published', mode: 'execute', priority: 3, attempt: 0, agent_profile_id: org.profileId },
    ]);
    test.equal((await createTask(sql, org)).identifier_number, 2);
  },
);

scenario('an initiative is numbered by itself, and is planned first by its owner', async (test) => {
  const org = await createTestOrganization(sql);
  await createTask(sql, org);
  const initiative = await createTask(sql, org, { kind: 'initiative' });
  test.match(initiative, {
    identifier_scope: 'I',
    identifier_number: 1,
    status: 'pending',
    phase: 'plan',
    blockers: [],
  });
  test.match(initiative['spec'], { budget: { maxAgentRuns: 500 } });
  test.match(await requestRows(sql, org, initiative.id), [
    { state: 'published', mode: 'plan', agent_profile_id: org.profileId },
  ]);
});

scenario('tasks that are made at once have numbers without a gap, in every organization of its own', async (test) => {
  const [org, other] = [await createTestOrganization(sql), await createTestOrganization(sql)];
  const tasks = await Promise.all(Array.from({ length: 16 }, (_, n) => createTask(sql, n % 2 ? org : other)));
  for (const at of [0, 1]) {
    const numbers = tasks.filter((_, n) => n % 2 === at).map((task) => task.identifier_number);
    test.same(
      numbers.sort((a, b) => a - b),
      [1, 2, 3, 4, 5, 6, 7, 8],
    );
  }
});

scenario('a child knows its place in the hierarchy, and raises the graph revision of its root', async (test) => {
  const org = await createTestOrganization(sql);
  const { root } = await createInitiative(sql, org, []);
  const middle = await createTask(sql, org, { kind: 'initiative', parentId: root });
  const leaf = await createTask(sql, org, { parentId: middle.id });
  test.match(middle, { depth: 1, parent_id: root, root_task_id: root, graph_revision: 2 });
  test.match(leaf, { depth: 2, parent_id: middle.id, root_task_id: root, graph_revision: 3, status: 'pending' });
});

scenario('without an owner a task is the operator’s, and a run’s its own profile’s', async (test) => {
  const org = await createTestOrganization(sql, { kind: 'department' });
  const unowned = (actor: JsonObject = SERVICE) =>
    transition(sql.api, 'task_create', { organizationId: org.organizationId, task: { title: 'x' }, actor });
  const missing = await refusal(unowned());
  test.match(missing, { status: 400, code: 'validation_failed', reason: 'unknown_profile' });
  test.match(missing.issues, [{ path: 'ownerProfileKey', message: /no operator profile/ }]);
  const off = await createSecondProfile(sql, org, { kind: 'operator', status: 'disabled' });
  const blocked = taskCallResult.parse(await unowned()).task;
  test.match(blocked, { owner_agent_profile_id: off.profileId, status: 'blocked' });
  const operator = await createSecondProfile(sql, org, { kind: 'operator' });
  await createSecondProfile(sql, org, { kind: 'operator' });
  test.equal(
    taskCallResult.parse(await unowned()).task['owner_agent_profile_id'],
    operator.profileId,
    'the first enabled one',
  );
  const second = await createSecondProfile(sql, org, { kind: 'operator' });
  const run = await runNew(sql, second);
  const own = taskCallResult.parse(await unowned(capability(run.executionToken))).task;
  test.equal(own['owner_agent_profile_id'], second.profileId, 'of a run');
});

scenario('an organization without profiles is told how to get them', async (test) => {
  const id = randomUUID();
  await insertOrganization(sql.api, id, { slug: `s-${id}` });
  const org = await createTestOrganization(sql);
  for (const task of [{ title: 'x' }, { title: 'x', ownerProfileKey: 'growth' }]) {
    const refused = await refusal(transition(sql.api, 'task_create', { organizationId: id, task, actor: SERVICE }));
    test.match(refused.issues, [
      { path: 'ownerProfileKey', code: 'unknown_profile', message: /agent-profiles\/provision/ },
    ]);
    const scheduled = await refusal(scheduleCreate(sql.api, { ...org, organizationId: id }, { taskTemplate: task }));
    test.match(scheduled.issues, [{ path: 'taskTemplate.ownerProfileKey', message: /agent-profiles\/provision/ }]);
  }
  const left = await createTask(sql, org);
  await transition(sql.api, 'agent_profile_delete', {
    organizationId: org.organizationId,
    agentProfileId: org.profileId,
  });
  for (const [path, patch] of [
    ['ownerProfileKey', { ownerProfileKey: 'growth' }],
    ['ownerAgentProfileId', { ownerAgentProfileId: org.profileId }],
    ['spec.verifierProfileKey', { spec: { verifierProfileKey: 'growth' } }],
  ] as const) {
    const refused = await refusal(patchTask(sql, org, left.id, patch));
    test.match(refused.issues, [{ path, code: 'unknown_profile', message: /agent-profiles\/provision/ }]);
  }
});

scenario('the owner is named by id or by key, and is one of the organization', async (test) => {
  const org = await createTestOrganization(sql);
  const foreign = await createTestOrganization(sql);
  const byKey = await createTask(sql, org, { ownerProfileKey: org.profileKey });
  test.equal(byKey['owner_agent_profile_id'], org.profileId);
  const unknown = { status: 400, code: 'validation_failed', reason: 'unknown_profile' };
  test.match(await refusal(createTask(sql, org, { ownerProfileKey: foreign.profileKey })), unknown);
  test.match(await refusal(createTask(sql, { ...org, profileId: foreign.profileId })), unknown);
  await transition(sql.api, 'agent_profile_delete', {
    organizationId: org.organizationId,
    agentProfileId: org.profileId,
  });
  test.match(await refusal(createTask(sql, org)), unknown, 'a deleted one is none');
});

scenario('a task of a disabled profile is made, and waits for it', async (test) => {
  const org = await createTestOrganization(sql);
  await updateProfile(sql.api, org, { status: 'disabled' });
  const task = await createTask(sql, org);
  test.match(task, { status: 'blocked', blockers: [{ kind: 'profile' }] });
  test.same(await requestRows(sql, org, task.id), []);
});

scenario('only an open initiative takes tasks below it', async (test) => {
  const org = await createTestOrganization(sql);
  const foreign = await createTestOrganization(sql);
  const { root, only } = await createInitiative(sql, org, ['only']);
  const conflict = { status: 409, code: 'state_conflict', reason: 'not_an_open_initiative' };
  test.match(await refusal(createTask(sql, org, { parentId: only })), conflict, 'not a task');
  test.match(await refusal(createTask(sql, org, { parentId: randomUUID() })), {
    status: 404,
    code: 'task_not_found',
  });
  test.match(await refusal(createTask(sql, foreign, { parentId: root })), { status: 404, code: 'task_not_found' });
  await completeRun(sql.api, await runNext(sql, org));
  test.match(await taskRow(sql, org, root), { status: 'completed' });
  test.match(await refusal(createTask(sql, org, { parentId: root })), conflict, 'not a closed one');
});

scenario('a hierarchy is as deep and as large as the limits of the organization say', async (test) => {
  const org = await createTestOrganization(sql, { limits: { maxTaskDepth: 1, maxInitiativeDescendants: 2 } });
  const { root } = await createInitiative(sql, org, []);
  const deepest = { kind: 'initiative', parentId: root };
  const tooDeep = { status: 409, code: 'state_conflict', reason: 'max_task_depth' };
  test.match(await refusal(createTask(sql, org, deepest)), tooDeep, 'it could have no tasks below it');
  await updateOrganization(sql.api, org, { config: { limits: { maxTaskDepth: 2 } } });
  const child = await createTask(sql, org, deepest);
  await updateOrganization(sql.api, org, { config: { limits: { maxTaskDepth: 1 } } });
  test.match(await refusal(createTask(sql, org, { parentId: child.id })), tooDeep);
  await createTask(sql, org, { parentId: root });
  test.match(await refusal(createTask(sql, org, { parentId: root })), {
    status: 409,
    reason: 'max_initiative_descendants',
  });
});

scenario('prerequisites are named by id or identifier, and block until they are completed', async (test) => {
  const org = await createTestOrganization(sql);
  const foreign = await createTestOrganization(sql);
  const one = await createTask(sql, org, { priority: 1 });
  const two = await createTask(sql, org);
  const task = await createTask(sql, org, { dependsOn: [one.id, 'T-2', two.id] });
  test.match(task, {
    status: 'blocked',
    version: 1,
    blockers: [
      { kind: 'dependency', taskId: one.id },
      { kind: 'dependency', taskId: two.id },
    ],
  });
  test.equal(task.blockers.length, 2, 'the same one twice is one');
  await completeRun(sql.api, await runNext(sql, org));
  test.match(await taskRow(sql, org, task.id), {
    status: 'blocked',
    blockers: [{ kind: 'dependency', taskId: two.id }],
  });
  await completeRun(sql.api, await runNext(sql, org));
  test.match(await taskRow(sql, org, task.id), { status: 'pending', blockers: [] });
  const late = await createTask(sql, org, { dependsOn: [one.id] });
  test.match(late, { status: 'pending' }, 'a completed one does not block');
  for (const ref of ['T-99', 'I-1', 'nonsense', randomUUID()]) {
    test.match(await refusal(createTask(sql, org, { dependsOn: [ref] })), { status: 404, code: 'task_not_found' }, ref);
  }
  test.match(await refusal(createTask(sql, foreign, { dependsOn: [one.id] })), { status: 404, code: 'task_not_found' });
});

scenario('a child that would wait for something that waits for its parent is refused', async (test) => {
  const org = await createTestOrganization(sql);
  const { root } = await createInitiative(sql, org, ['child']);
  const after = await createTask(sql, org, { dependsOn: [root] });
  test.match(await refusal(createTask(sql, org, { parentId: root, dependsOn: [after.id] })), {
    status: 409,
    reason: 'cycle',
  });
  test.match(await refusal(createTask(sql, org, { parentId: root, dependsOn: [root] })), {
    status: 409,
    reason: 'cycle',
  });
});

scenario('a time in the past does not block', async (test) => {
  const org = await createTestOrganization(sql);
  test.match(await createTask(sql, org, { scheduledAt: '2020-01-01T00:00:00Z' }), { status: 'pending' });
});

scenario('an open task with the same dedupe key is the result, a closed one is not', async (test) => {
  const org = await createTestOrganization(sql);
  const first = await createTask(sql, org, { dedupeKey: 'daily', title: 'first' });
  const again = await taskCreate(sql.api, org, { dedupeKey: 'daily', title: 'second' });
  test.match(again, { created: false, task: { id: first.id, title: 'first' } });
  const elsewhere = await createTestOrganization(sql);
  test.match(await taskCreate(sql.api, elsewhere, { dedupeKey: 'daily' }), { created: true });
  await cancelTask(sql.api, org, first.id);
  test.match(await taskCreate(sql.api, org, { dedupeKey: 'daily', title: 'third' }), {
    created: true,
    task: { title: 'third' },
  });
});

scenario('of two tasks with one dedupe key at once one is made', async (test) => {
  const org = await createTestOrganization(sql);
  const [one, two] = [await openSession(test, sql), await openSession(test, sql)];
  await one.begin();
  const first = taskCallResult.parse(await taskCreate(one, org, { dedupeKey: 'k' }));
  const second = taskCreate(two, org, { dedupeKey: 'k' });
  await two.waits();
  await one.commit();
  test.match(await second, { created: false, task: { id: first.task.id } });
  const all = await Promise.all(Array.from({ length: 12 }, () => taskCreate(sql.api, org, { dedupeKey: 'many' })));
  test.equal(all.filter((result) => result['created']).length, 1);
  test.equal(new Set(all.map((result) => taskCallResult.parse(result).task.id)).size, 1);
});

scenario('a dedupe key whose first task was rolled back is free', async (test) => {
  const org = await createTestOrganization(sql);
  const [one, two] = [await openSession(test, sql), await openSession(test, sql)];
  await one.begin();
  await taskCreate(one, org, { dedupeKey: 'k' });
  const second = taskCreate(two, org, { dedupeKey: 'k', title: 'second' });
  await two.waits();
  await one.rollback();
  test.match(await second, { created: true, task: { title: 'second' } });
});

scenario('an agent makes tasks in the name of its run, its own profile being the default owner', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  const result = await transition(sql.api, 'task_create', {
    organizationId: org.organizationId,
    task: { title: 'made by an agent' },
    actor: capability(run.executionToken),
  });
  test.match(result, {
    task: { owner_agent_profile_id: org.profileId, created_by_run_id: run.runId, status: 'pending' },
  });
});

scenario('nobody makes tasks in an organization that is unknown or deleted', async (test) => {
  const org = await createTestOrganization(sql);
  const gone = { status: 404, code: 'organization_not_found' };
  test.match(await refusal(createTask(sql, { ...org, organizationId: randomUUID() })), gone);
  await transition(sql.api, 'organization_delete', { organizationId: org.organizationId });
  test.match(await refusal(createTask(sql, org)), gone);
  test.match(await refusal(createTask(sql, org, { dependsOn: ['T-1'] })), gone);
});

scenario('a request belongs to the lane of the profile that owns its task', async (test) => {
  const org = await createTestOrganization(sql);
  const second = await createSecondProfile(sql, org);
  const task = await createTask(sql, second);
  test.match(await lastRequest(sql, org, task.id), { agent_profile_id: second.profileId });
  test.match(await claimNext(sql, org), { agentProfile: { key: second.profileKey } });
});

scenario('a task comes from a chat and a message of its organization, and the message is of the chat', async (test) => {
  const org = await createChatOrganization(sql);
  const foreign = await createChatOrganization(sql);
  const [chat, other] = [await createChat(sql, org), await createChat(sql, org)];
  const abroad = await createChat(sql, foreign);
  const { userMessage } = await send(sql.api, org, chat.id);
  const { userMessage: far } = await send(sql.api, foreign, abroad.id);
  const noChat = { status: 400, code: 'validation_failed', reason: 'unknown_chat' };
  const noMessage = { status: 400, code: 'validation_failed', reason: 'unknown_message' };
  const from = (source: Readonly<Record<string, string>>) => createTask(sql, org, source);
  test.match(await refusal(from({ sourceChatId: randomUUID() })), noChat);
  test.match(await refusal(from({ sourceChatId: abroad.id, sourceMessageId: far.id })), noChat);
  test.match(await refusal(from({ sourceMessageId: far.id })), noMessage);
  test.match(await refusal(from({ sourceChatId: chat.id, sourceMessageId: far.id })), noMessage);
  test.match(await refusal(from({ sourceChatId: other.id, sourceMessageId: userMessage.id })), noMessage);
  const source = { sourceChatId: chat.id, sourceMessageId: userMessage.id };
  const { id } = await from(source);
  test.match(await taskRow(sql, org, id), { source_chat_id: chat.id, source_message_id: userMessage.id });
  await from({ sourceMessageId: userMessage.id });
  const run = await runNew(sql, org);
  const byAgent = (task: Readonly<Record<string, string>>) =>
    taskCreate(sql.api, org, task, capability(run.executionToken));
  test.match(await refusal(byAgent({ sourceChatId: abroad.id })), noChat);
  const gone = "update app.chats set status = 'archived', archived_at = now(), removed_at = now() where id = $1";
  await sql.owner.query(gone, [other.id]);
  test.match(await refusal(from({ sourceChatId: other.id })), noChat, 'a removed one is none');
});
