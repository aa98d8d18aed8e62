import { randomUUID } from 'node:crypto';
import t from 'tap';
import { createChat, createChatPlace, send } from '../../support/chat_fixtures.ts';
import {
  cancelTask,
  capability,
  claimNext,
  completeRun,
  createInitiative,
  createPlace,
  createSecondProfile,
  createTask,
  lastRequest,
  requestRows,
  runNew,
  runNext,
  SERVICE,
  taskAnswer,
  taskCreate,
  taskRow,
  updateOrganization,
  updateProfile,
} from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSession, openSql, refusal, transition } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

scenario(
  'a task is made ready, with a number of its own, defaults in its spec and a published request',
  async (test) => {
    const place = await createPlace(sql);
    const answer = await taskCreate(sql.api, place, {
      title: 'Write it',
      priority: 3,
      dueAt: '2030-01-02T03:04:05.678Z',
      spec: { objective: 'A text', budget: { maxAgentRuns: 4 } },
    });
    const { task } = taskAnswer.parse(answer);
    test.equal(answer['created'], true);
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
      owner_agent_profile_id: place.profileId,
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
    test.match(await requestRows(sql, place, task.id), [
      { state: 'published', mode: 'execute', priority: 3, attempt: 0, agent_profile_id: place.profileId },
    ]);
    test.equal((await createTask(sql, place)).identifier_number, 2);
  },
);

scenario('an initiative is numbered by itself, and is planned first by its owner', async (test) => {
  const place = await createPlace(sql);
  await createTask(sql, place);
  const initiative = await createTask(sql, place, { kind: 'initiative' });
  test.match(initiative, {
    identifier_scope: 'I',
    identifier_number: 1,
    status: 'pending',
    phase: 'plan',
    blockers: [],
  });
  test.match(initiative['spec'], { budget: { maxAgentRuns: 500 } });
  test.match(await requestRows(sql, place, initiative.id), [
    { state: 'published', mode: 'plan', agent_profile_id: place.profileId },
  ]);
});

scenario('tasks that are made at once have numbers without a gap, in every organization of its own', async (test) => {
  const [place, other] = [await createPlace(sql), await createPlace(sql)];
  const tasks = await Promise.all(Array.from({ length: 16 }, (_, n) => createTask(sql, n % 2 ? place : other)));
  for (const at of [0, 1]) {
    const numbers = tasks.filter((_, n) => n % 2 === at).map((task) => task.identifier_number);
    test.same(
      numbers.sort((a, b) => a - b),
      [1, 2, 3, 4, 5, 6, 7, 8],
    );
  }
});

scenario('a child knows its place in the hierarchy, and raises the graph revision of its root', async (test) => {
  const place = await createPlace(sql);
  const { root } = await createInitiative(sql, place, []);
  const middle = await createTask(sql, place, { kind: 'initiative', parentId: root });
  const leaf = await createTask(sql, place, { parentId: middle.id });
  test.match(middle, { depth: 1, parent_id: root, root_task_id: root, graph_revision: 2 });
  test.match(leaf, { depth: 2, parent_id: middle.id, root_task_id: root, graph_revision: 3, status: 'pending' });
});

scenario('the owner is named by id or by key, and is one of the organization', async (test) => {
  const place = await createPlace(sql);
  const foreign = await createPlace(sql);
  const byKey = await createTask(sql, place, { ownerProfileKey: place.profileKey });
  test.equal(byKey['owner_agent_profile_id'], place.profileId);
  const unknown = { status: 400, code: 'validation_failed', reason: 'unknown_profile' };
  test.match(await refusal(createTask(sql, place, { ownerProfileKey: foreign.profileKey })), unknown);
  test.match(await refusal(createTask(sql, { ...place, profileId: foreign.profileId })), unknown);
  test.match(
    await refusal(
      transition(sql.api, 'task_create', {
        p_organization_id: place.organizationId,
        p_task: { title: 'x' },
        p_actor: SERVICE,
      }),
    ),
    unknown,
    'who is no agent has to name one',
  );
  await transition(sql.api, 'agent_profile_delete', {
    p_organization_id: place.organizationId,
    p_agent_profile_id: place.profileId,
  });
  test.match(await refusal(createTask(sql, place)), unknown, 'a deleted one is none');
});

scenario('a task of a disabled profile is made, and waits for it', async (test) => {
  const place = await createPlace(sql);
  await updateProfile(sql.api, place, { status: 'disabled' });
  const task = await createTask(sql, place);
  test.match(task, { status: 'blocked', blockers: [{ kind: 'profile' }] });
  test.same(await requestRows(sql, place, task.id), []);
});

scenario('only an open initiative takes tasks below it', async (test) => {
  const place = await createPlace(sql);
  const foreign = await createPlace(sql);
  const { root, only } = await createInitiative(sql, place, ['only']);
  const conflict = { status: 409, code: 'state_conflict', reason: 'not_an_open_initiative' };
  test.match(await refusal(createTask(sql, place, { parentId: only })), conflict, 'not a task');
  test.match(await refusal(createTask(sql, place, { parentId: randomUUID() })), {
    status: 404,
    code: 'task_not_found',
  });
  test.match(await refusal(createTask(sql, foreign, { parentId: root })), { status: 404, code: 'task_not_found' });
  await completeRun(sql.api, await runNext(sql, place));
  test.match(await taskRow(sql, place, root), { status: 'completed' });
  test.match(await refusal(createTask(sql, place, { parentId: root })), conflict, 'not a closed one');
});

scenario('a hierarchy is as deep and as large as the limits of the organization say', async (test) => {
  const place = await createPlace(sql, { limits: { maxTaskDepth: 1, maxInitiativeDescendants: 2 } });
  const { root } = await createInitiative(sql, place, []);
  const deepest = { kind: 'initiative', parentId: root };
  const tooDeep = { status: 409, code: 'state_conflict', reason: 'max_task_depth' };
  test.match(await refusal(createTask(sql, place, deepest)), tooDeep, 'it could have no tasks below it');
  await updateOrganization(sql.api, place, { config: { limits: { maxTaskDepth: 2 } } });
  const child = await createTask(sql, place, deepest);
  await updateOrganization(sql.api, place, { config: { limits: { maxTaskDepth: 1 } } });
  test.match(await refusal(createTask(sql, place, { parentId: child.id })), tooDeep);
  await createTask(sql, place, { parentId: root });
  test.match(await refusal(createTask(sql, place, { parentId: root })), {
    status: 409,
    reason: 'max_initiative_descendants',
  });
});

scenario('prerequisites are named by id or identifier, and block until they are completed', async (test) => {
  const place = await createPlace(sql);
  const foreign = await createPlace(sql);
  const one = await createTask(sql, place, { priority: 1 });
  const two = await createTask(sql, place);
  const task = await createTask(sql, place, { dependsOn: [one.id, 'T-2', two.id] });
  test.match(task, {
    status: 'blocked',
    version: 1,
    blockers: [
      { kind: 'dependency', taskId: one.id },
      { kind: 'dependency', taskId: two.id },
    ],
  });
  test.equal(task.blockers.length, 2, 'the same one twice is one');
  await completeRun(sql.api, await runNext(sql, place));
  test.match(await taskRow(sql, place, task.id), {
    status: 'blocked',
    blockers: [{ kind: 'dependency', taskId: two.id }],
  });
  await completeRun(sql.api, await runNext(sql, place));
  test.match(await taskRow(sql, place, task.id), { status: 'pending', blockers: [] });
  const late = await createTask(sql, place, { dependsOn: [one.id] });
  test.match(late, { status: 'pending' }, 'a completed one does not block');
  for (const ref of ['T-99', 'I-1', 'nonsense', randomUUID()]) {
    test.match(
      await refusal(createTask(sql, place, { dependsOn: [ref] })),
      { status: 404, code: 'task_not_found' },
      ref,
    );
  }
  test.match(await refusal(createTask(sql, foreign, { dependsOn: [one.id] })), { status: 404, code: 'task_not_found' });
});

scenario('a child that would wait for something that waits for its parent is refused', async (test) => {
  const place = await createPlace(sql);
  const { root } = await createInitiative(sql, place, ['child']);
  const after = await createTask(sql, place, { dependsOn: [root] });
  test.match(await refusal(createTask(sql, place, { parentId: root, dependsOn: [after.id] })), {
    status: 409,
    reason: 'circle',
  });
  test.match(await refusal(createTask(sql, place, { parentId: root, dependsOn: [root] })), {
    status: 409,
    reason: 'circle',
  });
});

scenario('a time in the past does not block', async (test) => {
  const place = await createPlace(sql);
  test.match(await createTask(sql, place, { scheduledAt: '2020-01-01T00:00:00Z' }), { status: 'pending' });
});

scenario('an open task with the same dedupe key is the answer, a closed one is not', async (test) => {
  const place = await createPlace(sql);
  const first = await createTask(sql, place, { dedupeKey: 'daily', title: 'first' });
  const again = await taskCreate(sql.api, place, { dedupeKey: 'daily', title: 'second' });
  test.match(again, { created: false, task: { id: first.id, title: 'first' } });
  const elsewhere = await createPlace(sql);
  test.match(await taskCreate(sql.api, elsewhere, { dedupeKey: 'daily' }), { created: true });
  await cancelTask(sql.api, place, first.id);
  test.match(await taskCreate(sql.api, place, { dedupeKey: 'daily', title: 'third' }), {
    created: true,
    task: { title: 'third' },
  });
});

scenario('of two tasks with one dedupe key at once one is made', async (test) => {
  const place = await createPlace(sql);
  const [one, two] = [await openSession(test, sql), await openSession(test, sql)];
  await one.begin();
  const first = taskAnswer.parse(await taskCreate(one, place, { dedupeKey: 'k' }));
  const second = taskCreate(two, place, { dedupeKey: 'k' });
  await two.waits();
  await one.commit();
  test.match(await second, { created: false, task: { id: first.task.id } });
  const all = await Promise.all(Array.from({ length: 12 }, () => taskCreate(sql.api, place, { dedupeKey: 'many' })));
  test.equal(all.filter((answer) => answer['created']).length, 1);
  test.equal(new Set(all.map((answer) => taskAnswer.parse(answer).task.id)).size, 1);
});

scenario('a dedupe key whose first task was rolled back is free', async (test) => {
  const place = await createPlace(sql);
  const [one, two] = [await openSession(test, sql), await openSession(test, sql)];
  await one.begin();
  await taskCreate(one, place, { dedupeKey: 'k' });
  const second = taskCreate(two, place, { dedupeKey: 'k', title: 'second' });
  await two.waits();
  await one.rollback();
  test.match(await second, { created: true, task: { title: 'second' } });
});

scenario('an agent makes tasks in the name of its run, its own profile being the default owner', async (test) => {
  const place = await createPlace(sql);
  const run = await runNew(sql, place);
  const answer = await transition(sql.api, 'task_create', {
    p_organization_id: place.organizationId,
    p_task: { title: 'made by an agent' },
    p_actor: capability(run.executionToken),
  });
  test.match(answer, {
    task: { owner_agent_profile_id: place.profileId, created_by_run_id: run.runId, status: 'pending' },
  });
});

scenario('nobody makes tasks in an organization that is unknown or deleted', async (test) => {
  const place = await createPlace(sql);
  const gone = { status: 404, code: 'organization_not_found' };
  test.match(await refusal(createTask(sql, { ...place, organizationId: randomUUID() })), gone);
  await transition(sql.api, 'organization_delete', { p_organization_id: place.organizationId });
  test.match(await refusal(createTask(sql, place)), gone);
  test.match(await refusal(createTask(sql, place, { dependsOn: ['T-1'] })), gone);
});

scenario('a request belongs to the lane of the profile that owns its task', async (test) => {
  const place = await createPlace(sql);
  const second = await createSecondProfile(sql, place);
  const task = await createTask(sql, second);
  test.match(await lastRequest(sql, place, task.id), { agent_profile_id: second.profileId });
  test.match(await claimNext(sql, place), { agentProfile: { key: second.profileKey } });
});

scenario('a task comes from a chat and a message of its organization, and the message is of the chat', async (test) => {
  const place = await createChatPlace(sql);
  const foreign = await createChatPlace(sql);
  const [chat, other] = [await createChat(sql, place), await createChat(sql, place)];
  const abroad = await createChat(sql, foreign);
  const { userMessage } = await send(sql.api, place, chat.id);
  const { userMessage: far } = await send(sql.api, foreign, abroad.id);
  const noChat = { status: 400, code: 'validation_failed', reason: 'unknown_chat' };
  const noMessage = { status: 400, code: 'validation_failed', reason: 'unknown_message' };
  const from = (source: Readonly<Record<string, string>>) => createTask(sql, place, source);
  test.match(await refusal(from({ sourceChatId: randomUUID() })), noChat);
  test.match(await refusal(from({ sourceChatId: abroad.id, sourceMessageId: far.id })), noChat);
  test.match(await refusal(from({ sourceMessageId: far.id })), noMessage);
  test.match(await refusal(from({ sourceChatId: chat.id, sourceMessageId: far.id })), noMessage);
  test.match(await refusal(from({ sourceChatId: other.id, sourceMessageId: userMessage.id })), noMessage);
  const source = { sourceChatId: chat.id, sourceMessageId: userMessage.id };
  const { id } = await from(source);
  test.match(await taskRow(sql, place, id), { source_chat_id: chat.id, source_message_id: userMessage.id });
  await from({ sourceMessageId: userMessage.id });
  const run = await runNew(sql, place);
  const byAgent = (task: Readonly<Record<string, string>>) =>
    taskCreate(sql.api, place, task, capability(run.executionToken));
  test.match(await refusal(byAgent({ sourceChatId: abroad.id })), noChat);
  const gone = "update app.chats set status = 'archived', archived_at = now(), removed_at = now() where id = $1";
  await sql.owner.query(gone, [other.id]);
  test.match(await refusal(from({ sourceChatId: other.id })), noChat, 'a removed one is none');
});
