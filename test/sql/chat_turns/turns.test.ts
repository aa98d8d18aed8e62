import { randomUUID } from 'node:crypto';
import t from 'tap';
import {
  chatRow,
  claimTurn,
  completeTurn,
  createChat,
  createChatOrganization,
  exchange,
  messageRow,
  pullTurns,
  putAttachment,
  send,
  startedTurn,
  startTurn,
  text,
  write,
} from '../../support/chat_fixtures.ts';
import {
  appendLogs,
  capability,
  checkLease,
  completeRun,
  createOrganization,
  createTask,
  failRun,
  heartbeat,
  logEntry,
  markRunning,
  recordOutput,
  releaseClaim,
  runNext,
  taskCreate,
} from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSession, openSql, refusal, transition } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const lost = { status: 409, code: 'run_lease_expired', reason: 'lease_lost' };
const differs = { status: 409, code: 'run_lease_expired', reason: 'differs' };

scenario('a turn is pulled with its chat, started, written and completed', async (test) => {
  const org = await createChatOrganization(sql);
  const chat = await createChat(sql, org, { title: 'Numbers' });
  const { assistantMessage } = await send(sql.api, org, chat.id);
  const claim = await claimTurn(sql, org);
  test.match(claim, { kind: 'chat', mode: 'execute', attempt: 1, task: null, agentProfile: { id: org.profileId } });
  test.match(claim.chat, { id: chat.id, message_id: assistantMessage.id, title: 'Numbers', summary: null });

  const turn = await startTurn(sql.api, claim);
  test.match(turn, { chatId: chat.id, messageId: assistantMessage.id, agentProfileId: org.profileId, attempt: 1 });
  test.same(await startTurn(sql.api, claim, turn.runId), turn, 'a start sent again answers the same');
  test.match(await refusal(startTurn(sql.api, claim)), differs);
  test.same(await markRunning(sql.api, turn), { status: 'running' });
  test.same(await heartbeat(sql.api, turn), { status: 'running' });
  await appendLogs(sql.api, turn, [logEntry(1)]);

  test.match(await write(sql.api, turn, 1, { append: 'One' }), { revision: 2, status: 'pending', chatId: chat.id });
  test.match(await write(sql.api, turn, 2, { append: ', two' }), { revision: 3 });
  const written = await messageRow(sql, org, assistantMessage.id);
  test.match(written, { status: 'pending', parts: [{ kind: 'text', text: 'One, two' }] });

  const output = { parts: [text('One, two, three')], summary: 'Counting', harnessSessionId: 's-1' };
  const done = await completeTurn(sql.api, turn, output);
  test.match(done, { status: 'succeeded', chatId: chat.id, messageId: assistantMessage.id, revision: 4 });
  const message = await messageRow(sql, org, assistantMessage.id);
  test.match(message, { status: 'complete', revision: 4, parts: [{ text: 'One, two, three' }], error: null });
  test.equal(message.parts[0]?.id, written.parts[0]?.id, 'the part kept its id');
  const after = await chatRow(sql, org, chat.id);
  test.match(after, { summary: 'Counting', harness_session_id: 's-1' });
  test.ok((after?.last_message_at ?? '') > chat.last_message_at);
  test.same(await completeTurn(sql.api, turn, output), { status: 'succeeded' }, 'a repeat changes nothing');
  test.match(await refusal(completeTurn(sql.api, turn, output, 'b')), differs);
  test.match(await refusal(write(sql.api, turn, 4, { append: '!' })), lost);
  test.equal((await messageRow(sql, org, assistantMessage.id)).revision, 4);
});

scenario('a revision sent again is the same one; one with a stale base is refused', async (test) => {
  const org = await createChatOrganization(sql);
  const turn = await startedTurn(sql, org);
  const parts = [{ id: 'a', ...text('x') }];
  test.match(await write(sql.api, turn, 1, { parts }), { revision: 2 });
  test.match(await write(sql.api, turn, 1, { parts }), { revision: 2 });
  test.match(await refusal(write(sql.api, turn, 1, { parts: [{ id: 'a', ...text('y') }] })), differs);
  test.match(await refusal(write(sql.api, turn, 3, { parts })), differs);
  test.match(await write(sql.api, turn, 2, { append: 'y' }), { revision: 3 });
  test.match(await write(sql.api, turn, 2, { append: 'y' }), { revision: 3 }, 'an append is not made twice');
  test.match(await write(sql.api, turn, 3, { append: 'y' }), { revision: 4 }, 'and is made again on the new base');
  test.match((await messageRow(sql, org, turn.messageId)).parts, [{ id: 'a', text: 'xyy' }]);
  const doubled = await refusal(write(sql.api, turn, 4, { parts: [...parts, ...parts] }));
  test.match(doubled, { status: 400, reason: 'duplicate_id' });
  const large = await refusal(write(sql.api, turn, 4, { append: 'x'.repeat(1_100_000) }));
  test.match(large, { status: 400, code: 'validation_failed', reason: 'too_large' });
});

scenario(
  'parts without an id keep that of the part in their place; an append after another part begins a text',
  async (test) => {
    const org = await createChatOrganization(sql);
    const turn = await startedTurn(sql, org);
    await write(sql.api, turn, 1, { parts: [text('a'), { kind: 'question', question: '?', options: [] }] });
    const before = (await messageRow(sql, org, turn.messageId)).parts;
    await write(sql.api, turn, 2, { parts: [text('b'), { kind: 'question', question: '??', options: [] }] });
    const after = (await messageRow(sql, org, turn.messageId)).parts;
    test.same(
      after.map(({ id }) => id),
      before.map(({ id }) => id),
    );
    await write(sql.api, turn, 3, { append: 'c' });
    test.match((await messageRow(sql, org, turn.messageId)).parts, [
      { text: 'b' },
      { kind: 'question' },
      { text: 'c' },
    ]);
  },
);

scenario('two writes with one base: one is kept, the other refused', async (test) => {
  const org = await createChatOrganization(sql);
  const turn = await startedTurn(sql, org);
  const session = await openSession(test, sql);
  const rival = await openSession(test, sql);
  await session.begin();
  await write(session, turn, 1, { append: 'first' });
  const second = refusal(write(rival, turn, 1, { append: 'second' }));
  await rival.waits();
  await session.commit();
  test.match(await second, differs);
  test.match((await messageRow(sql, org, turn.messageId)).parts, [{ text: 'first' }]);
});

scenario('chat turns go on while work dispatch is stopped, and beside tasks at their capacity', async (test) => {
  const org = await createChatOrganization(sql, { limits: { maxConcurrentRuns: 1 }, maxConcurrentRuns: 1 });
  await createTask(sql, org);
  await runNext(sql, org);
  const stop = { p_organization_id: org.organizationId, p_stopped: true, p_actor: { kind: 'owner' } };
  await transition(sql.api, 'work_dispatch_set', stop);
  const turn = await startedTurn(sql, org);
  test.match(await completeTurn(sql.api, turn), { status: 'succeeded' });
});

scenario('a claim that reached nobody is given back', async (test) => {
  const org = await createChatOrganization(sql);
  const chat = await createChat(sql, org);
  await send(sql.api, org, chat.id);
  test.same(await releaseClaim(sql.api, await claimTurn(sql, org)), { released: true });
  await startTurn(sql.api, await claimTurn(sql, org));
});

scenario('the output has to be that of the run', async (test) => {
  const org = await createChatOrganization(sql);
  const turn = await startedTurn(sql, org);
  const refused = { status: 400, code: 'validation_failed', reason: 'output_of_kind' };
  test.match(await refusal(completeRun(sql.api, turn)), refused);
  test.equal((await messageRow(sql, org, turn.messageId)).status, 'pending', 'the lease stays');
  test.match(await refusal(recordOutput(sql.api, turn, 'out.txt')), refused);
  await completeTurn(sql.api, turn);
  await createTask(sql, org);
  const run = await runNext(sql, org);
  test.match(await refusal(completeTurn(sql.api, run)), refused);
  await completeRun(sql.api, run);
});

scenario('the capability of a turn is bound to it, and ends with it', async (test) => {
  const org = await createChatOrganization(sql);
  const turn = await startedTurn(sql, org);
  const check = (organizationId: string) =>
    transition(sql.api, 'capability_check', {
      p_organization_id: organizationId,
      p_token_hash: capability(turn.executionToken).tokenHash,
    });
  test.match(await check(org.organizationId), {
    actor: { profileKind: 'chat', runId: turn.runId, chatId: turn.chatId, messageId: turn.messageId, taskId: null },
  });
  test.match(await refusal(check(await createOrganization(sql))), { status: 401 });
  await taskCreate(sql.api, org, { title: 'From the chat' }, capability(turn.executionToken));
  await completeTurn(sql.api, turn);
  test.match(await refusal(check(org.organizationId)), { status: 401, code: 'agent_unauthorized' });
  const late = taskCreate(sql.api, org, { title: 'Late' }, capability(turn.executionToken));
  test.match(await refusal(late), { status: 401 });
});

scenario('the conversation is the latest messages up to the one that is answered, oldest first', async (test) => {
  const org = await createChatOrganization(sql);
  const chat = await createChat(sql, org);
  const attachmentId = randomUUID();
  await putAttachment(sql.api, org, chat.id, { id: attachmentId });
  await exchange(sql, org, chat.id, [text('one')], { parts: [text('1')], attachmentIds: [attachmentId] });
  await exchange(sql, org, chat.id, [text('two')], { parts: [text('2')] });
  await send(sql.api, org, chat.id, { parts: [text('3')] });
  const turn = await startTurn(sql.api, await claimTurn(sql, org));
  const read = (limit: number, bytes: number, organizationId = turn.organizationId) =>
    transition(sql.api, 'run_conversation', {
      p_organization_id: organizationId,
      p_run_id: turn.runId,
      p_lease_token: turn.leaseToken,
      p_limit: limit,
      p_max_bytes: bytes,
    });
  const texts = (answer: Record<string, unknown>) =>
    (answer['messages'] as { parts: { text: string }[] }[]).map(({ parts }) => parts[0]?.text);
  const all = await read(100, 1_000_000);
  test.same(texts(all), ['1', 'one', '2', 'two', '3']);
  test.match(all, { chat: { id: chat.id }, messageId: turn.messageId, earlier: false });
  const some = await read(2, 1_000_000);
  test.same(texts(some), ['two', '3']);
  test.equal(some['earlier'], true);
  test.same(texts(await read(100, 1)), ['3'], 'the one that is answered is always there');
  test.match(await refusal(read(1, 1, randomUUID())), lost);

  const attachment = (id: string) =>
    transition(sql.api, 'run_attachment', {
      p_organization_id: turn.organizationId,
      p_run_id: turn.runId,
      p_lease_token: turn.leaseToken,
      p_attachment_id: id,
    });
  test.match(await attachment(attachmentId), { attachment: { id: attachmentId, file_name: 'notes.txt' } });
  test.match(await refusal(attachment(randomUUID())), { status: 404, code: 'attachment_not_found' });
  await completeTurn(sql.api, turn);
  test.match(await refusal(read(100, 1000)), lost);
  test.match(await refusal(attachment(attachmentId)), lost);
});

scenario('calls of another organization, another run or another token change nothing', async (test) => {
  const org = await createChatOrganization(sql);
  const other = await createChatOrganization(sql);
  const turn = await startedTurn(sql, org);
  const strangers = [
    { ...turn, organizationId: other.organizationId },
    { ...turn, runId: randomUUID() },
    { ...turn, leaseToken: `1.${'0'.repeat(64)}` },
    { ...turn, leaseToken: (await startedTurn(sql, org)).leaseToken },
  ];
  for (const stranger of strangers) {
    test.match(await refusal(write(sql.api, stranger, 1, { append: 'x' })), lost);
    test.match(await refusal(completeTurn(sql.api, stranger)), lost);
    test.match(await refusal(failRun(sql.api, stranger)), lost);
    test.match(await refusal(checkLease(sql.api, stranger)), lost);
  }
  await createTask(sql, org);
  const run = await runNext(sql, org);
  test.match(await refusal(write(sql.api, run, 1, { append: 'x' })), lost, 'a task’s run has no message');
  test.match(await messageRow(sql, org, turn.messageId), { status: 'pending', revision: 1 });
});

scenario('one runtime claims a turn once', async (test) => {
  const org = await createChatOrganization(sql);
  const chat = await createChat(sql, org);
  await send(sql.api, org, chat.id);
  const pulls = await Promise.all([1, 2, 3].map(() => pullTurns(sql.api, org)));
  test.equal(pulls.flat().length, 1);
});

scenario('parts name tasks of the organization alone; a refusal leaves the lease', async (test) => {
  const org = await createChatOrganization(sql);
  const foreign = await createChatOrganization(sql);
  const turn = await startedTurn(sql, org);
  const own = await createTask(sql, org);
  const naming = (taskId: string) => [text('Made'), { kind: 'task', taskId }];
  const unknown = { status: 400, code: 'validation_failed', reason: 'unknown_task' };
  for (const id of [randomUUID(), (await createTask(sql, foreign)).id]) {
    test.match(await refusal(write(sql.api, turn, 1, { parts: naming(id) })), unknown);
    test.match(await refusal(completeTurn(sql.api, turn, { parts: naming(id) })), unknown);
  }
  test.match(await messageRow(sql, org, turn.messageId), { status: 'pending', revision: 1 });
  test.match(await write(sql.api, turn, 1, { parts: naming(own.id) }), { revision: 2 });
  test.match(await completeTurn(sql.api, turn, { parts: naming(own.id) }), { status: 'succeeded' });
});
