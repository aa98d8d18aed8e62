import { randomUUID } from 'node:crypto';
import t from 'tap';
import {
  cancelMessage,
  chatRow,
  claimTurn,
  completeTurn,
  createChat,
  createChatPlace,
  createOnboardingChat,
  exchange,
  messageRow,
  putAttachment,
  send,
  startedTurn,
  startTurn,
  text,
  turnRequest,
  updateChat,
  write,
} from '../../support/chat_fixtures.ts';
import {
  createPlace,
  createProfile,
  endLease,
  expire,
  failRun,
  heartbeat,
  updateProfile,
} from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSession, openSql, refusal, transition } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const notCancellable = { status: 409, code: 'message_not_cancellable' };

scenario('a message is kept with its pending answer and the request for it', async (test) => {
  const place = await createChatPlace(sql);
  const chat = await createChat(sql, place);
  const { userMessage, assistantMessage } = await send(sql.api, place, chat.id, { parts: [text('Hi'), text('there')] });
  test.match(userMessage, {
    role: 'user',
    status: 'complete',
    revision: 1,
    author: { kind: 'human', displayName: 'Ada' },
    parts: [
      { kind: 'text', text: 'Hi' },
      { kind: 'text', text: 'there' },
    ],
    reply_to_message_id: null,
  });
  test.ok(userMessage.completed_at);
  test.match(assistantMessage, {
    role: 'assistant',
    status: 'pending',
    revision: 1,
    author: { kind: 'agent', displayName: 'Profile' },
    parts: [],
    reply_to_message_id: userMessage.id,
    completed_at: null,
  });
  test.notOk('search_text' in userMessage || 'write_hash' in userMessage);
  test.ok(assistantMessage.created_at > userMessage.created_at);
  test.match(await turnRequest(sql, place, assistantMessage.id), { state: 'published', chat_id: chat.id, attempt: 0 });
  test.equal((await chatRow(sql, place, chat.id))?.last_message_at, userMessage.created_at);
});

scenario('one answer at a time', async (test) => {
  const place = await createChatPlace(sql);
  const chat = await createChat(sql, place);
  await send(sql.api, place, chat.id);
  const active = { status: 409, code: 'chat_turn_active' };
  test.match(await refusal(send(sql.api, place, chat.id)), active);
  const turn = await startTurn(sql.api, await claimTurn(sql, place));
  test.match(await refusal(send(sql.api, place, chat.id)), active);
  await cancelMessage(sql.api, place, { id: turn.messageId, chat_id: chat.id });
  test.match(await refusal(send(sql.api, place, chat.id)), active, 'nor while it is being cancelled');
  await completeTurn(sql.api, turn);
  await send(sql.api, place, chat.id);
});

scenario('two messages at once: one is taken, the other waits and is refused', async (test) => {
  const place = await createChatPlace(sql);
  const chat = await createChat(sql, place);
  const session = await openSession(test, sql);
  const rival = await openSession(test, sql);
  await session.begin();
  await send(session, place, chat.id);
  const second = refusal(send(rival, place, chat.id));
  await rival.waits();
  await session.commit();
  test.match(await second, { code: 'chat_turn_active' });
  const outcomes = await Promise.allSettled(
    Array.from({ length: 8 }, async () => send(sql.api, place, (await createChat(sql, place)).id)),
  );
  test.ok(
    outcomes.every(({ status }) => status === 'fulfilled'),
    'other chats do not wait',
  );
});

scenario('an archived chat, one without a profile and a finished onboarding take no message', async (test) => {
  const place = await createChatPlace(sql);
  const chat = await createChat(sql, place);
  await updateChat(sql.api, place, chat.id, { status: 'archived' });
  const conflict = { status: 409, code: 'state_conflict' };
  test.match(await refusal(send(sql.api, place, chat.id)), conflict);
  await updateChat(sql.api, place, chat.id, { status: 'open' });
  await updateProfile(sql.api, place, { status: 'disabled' });
  test.match(await refusal(send(sql.api, place, chat.id)), conflict);
  const without = await createPlace(sql);
  test.match(await refusal(send(sql.api, without, (await createChat(sql, without)).id)), conflict);

  const onboarding = await createChatPlace(sql);
  const first = await createOnboardingChat(sql, onboarding);
  await exchange(sql, onboarding, first.id, [text('Welcome')]);
  await sql.owner.query('update app.organizations set onboarded_at = now() where id = $1', [onboarding.organizationId]);
  const immutable = { status: 409, code: 'onboarding_chat_immutable' };
  test.match(await refusal(send(sql.api, onboarding, first.id)), immutable);
  await send(sql.api, onboarding, (await createChat(sql, onboarding)).id);
});

scenario('the oldest enabled chat profile answers', async (test) => {
  const place = await createChatPlace(sql, { status: 'disabled' });
  const second = await createProfile(sql, place.organizationId, { kind: 'chat' });
  await createProfile(sql, place.organizationId, { kind: 'chat' });
  const { assistantMessage } = await send(sql.api, place, (await createChat(sql, place)).id);
  test.match(await turnRequest(sql, place, assistantMessage.id), { agent_profile_id: second.id });
});

scenario('times rise within a chat, whatever the clock says', async (test) => {
  const place = await createChatPlace(sql);
  const chat = await createChat(sql, place);
  const first = await exchange(sql, place, chat.id, [text('one')]);
  const late = { ...place, id: first.id };
  await sql.owner.query('alter table app.messages disable trigger messages_keep_revision');
  await sql.owner.query(
    `update app.messages set created_at = created_at + interval '1 hour' where organization_id = $1 and id = $2`,
    [late.organizationId, late.id],
  );
  await sql.owner.query('alter table app.messages enable trigger messages_keep_revision');
  const { userMessage, assistantMessage } = await send(sql.api, place, chat.id);
  test.ok(userMessage.created_at > (await messageRow(sql, place, first.id)).created_at);
  test.ok(assistantMessage.created_at > userMessage.created_at);
});

scenario('a final message never changes, and a revision never falls', async (test) => {
  const place = await createChatPlace(sql);
  const chat = await createChat(sql, place);
  const message = await exchange(sql, place, chat.id, [text('one')]);
  const change = 'update app.messages set revision = revision + 1 where organization_id = $1 and id = $2';
  await test.rejects(sql.owner.query(change, [place.organizationId, message.id]), { code: 'P0001' });
  const { assistantMessage } = await send(sql.api, place, chat.id);
  const lower = `update app.messages set parts = '[1]' where organization_id = $1 and id = $2`;
  await test.rejects(sql.owner.query(lower, [place.organizationId, assistantMessage.id]), { code: 'P0001' });
});

scenario('a cancel before the start answers cancelling, and cancelled follows at once', async (test) => {
  const place = await createChatPlace(sql);
  const chat = await createChat(sql, place);
  const { assistantMessage } = await send(sql.api, place, chat.id);
  test.match(await cancelMessage(sql.api, place, assistantMessage), { status: 'cancelling', revision: 2 });
  test.match(await messageRow(sql, place, assistantMessage.id), { status: 'cancelled', revision: 3, error: null });
  test.match(await turnRequest(sql, place, assistantMessage.id), { state: 'cancelled' });
  test.match(await refusal(cancelMessage(sql.api, place, assistantMessage)), notCancellable);

  const { assistantMessage: claimed } = await send(sql.api, place, chat.id);
  const claim = await claimTurn(sql, place);
  await cancelMessage(sql.api, place, claimed);
  test.match(await refusal(startTurn(sql.api, claim)), { code: 'run_lease_expired', reason: 'lease_lost' });
  test.equal((await messageRow(sql, place, claimed.id)).status, 'cancelled');
});

scenario('a cancel of a started turn waits for the runtime to yield', async (test) => {
  const place = await createChatPlace(sql);
  const turn = await startedTurn(sql, place);
  await write(sql.api, turn, 1, { append: 'half' });
  const message = turn.sent.assistantMessage;
  test.match(await cancelMessage(sql.api, place, message), { status: 'cancelling', revision: 3 });
  test.match(await refusal(cancelMessage(sql.api, place, message)), notCancellable);
  test.same(await heartbeat(sql.api, turn), { status: 'cancelling' });
  test.match(await write(sql.api, turn, 3, { append: ' more' }), { revision: 3, status: 'cancelling' });
  const ended = { status: 'cancelled', chatId: turn.chatId, messageId: turn.messageId };
  test.same(await completeTurn(sql.api, turn), ended);
  test.same(await completeTurn(sql.api, turn), { status: 'cancelled' });
  test.match(await messageRow(sql, place, message.id), { status: 'cancelled', revision: 4, parts: [{ text: 'half' }] });
  test.match(await refusal(cancelMessage(sql.api, place, message)), notCancellable);
});

scenario('a cancelled turn ends with a failure of the runtime, or with its lease, as cancelled', async (test) => {
  const place = await createChatPlace(sql);
  const failing = await startedTurn(sql, place);
  await cancelMessage(sql.api, place, failing.sent.assistantMessage);
  test.match(await failRun(sql.api, failing), { status: 'cancelled' });
  test.match(await messageRow(sql, place, failing.messageId), { status: 'cancelled', error: null });
  const silent = await startedTurn(sql, place);
  await cancelMessage(sql.api, place, silent.sent.assistantMessage);
  await endLease(sql, silent);
  test.equal(await expire(sql.jobs, silent), 'cancelled');
  test.match(await messageRow(sql, place, silent.messageId), { status: 'cancelled', error: null });
});

scenario('only an answer that is under way is cancelled, by its own organization and chat', async (test) => {
  const place = await createChatPlace(sql);
  const chat = await createChat(sql, place);
  const answer = await exchange(sql, place, chat.id, [text('done')]);
  test.match(await refusal(cancelMessage(sql.api, place, answer)), notCancellable);
  const { userMessage, assistantMessage } = await send(sql.api, place, chat.id);
  test.match(await refusal(cancelMessage(sql.api, place, userMessage)), notCancellable);
  const missing = { status: 404, code: 'message_not_found' };
  const other = await createChatPlace(sql);
  test.match(await refusal(cancelMessage(sql.api, other, assistantMessage)), missing);
  const elsewhere = { ...assistantMessage, chat_id: (await createChat(sql, place)).id };
  test.match(await refusal(cancelMessage(sql.api, place, elsewhere)), missing);
  test.match(await refusal(cancelMessage(sql.api, place, { ...assistantMessage, id: randomUUID() })), missing);
  test.equal((await messageRow(sql, place, assistantMessage.id)).status, 'pending');
});

scenario('a cancel and a completion at once: the first decides', async (test) => {
  const place = await createChatPlace(sql);
  const [one, two] = [await startedTurn(sql, place), await startedTurn(sql, place)];
  const session = await openSession(test, sql);
  const rival = await openSession(test, sql);
  await session.begin();
  await completeTurn(session, one);
  const cancelling = refusal(cancelMessage(rival, place, one.sent.assistantMessage));
  await rival.waits();
  await session.commit();
  test.match(await cancelling, notCancellable);
  test.equal((await messageRow(sql, place, one.messageId)).status, 'complete');

  await session.begin();
  await cancelMessage(session, place, two.sent.assistantMessage);
  const completing = completeTurn(rival, two);
  await rival.waits();
  await session.commit();
  test.match(await completing, { status: 'cancelled' });
  test.equal((await messageRow(sql, place, two.messageId)).status, 'cancelled');
});

scenario('a cancel and a start at once: the first decides', async (test) => {
  const place = await createChatPlace(sql);
  const chat = await createChat(sql, place);
  const { assistantMessage } = await send(sql.api, place, chat.id);
  const claim = await claimTurn(sql, place);
  const session = await openSession(test, sql);
  const rival = await openSession(test, sql);
  await session.begin();
  const turn = await startTurn(session, claim);
  const cancelling = cancelMessage(rival, place, assistantMessage);
  await rival.waits();
  await session.commit();
  test.match(await cancelling, { status: 'cancelling' });
  test.equal((await messageRow(sql, place, assistantMessage.id)).status, 'cancelling', 'the runtime has it');
  await completeTurn(sql.api, turn);
});

scenario('two cancels at once: one is taken', async (test) => {
  const place = await createChatPlace(sql);
  const turn = await startedTurn(sql, place);
  const session = await openSession(test, sql);
  const rival = await openSession(test, sql);
  await session.begin();
  await cancelMessage(session, place, turn.sent.assistantMessage);
  const second = refusal(cancelMessage(rival, place, turn.sent.assistantMessage));
  await rival.waits();
  await session.commit();
  test.match(await second, notCancellable);
  await completeTurn(sql.api, turn);
});

scenario('attachments are named in the order given, and have to be of the chat', async (test) => {
  const place = await createChatPlace(sql);
  const chat = await createChat(sql, place);
  const ids = [randomUUID(), randomUUID()];
  for (const id of ids) await putAttachment(sql.api, place, chat.id, { id, fileName: `${id}.txt` });
  const foreign = randomUUID();
  await putAttachment(sql.api, place, (await createChat(sql, place)).id, { id: foreign });
  const refused = await refusal(
    send(sql.api, place, chat.id, { parts: [text('x')], attachmentIds: [ids[0], foreign] }),
  );
  test.match(refused, { status: 400, code: 'validation_failed', reason: 'unknown_attachment' });
  const { userMessage } = await send(sql.api, place, chat.id, { parts: [text('x')], attachmentIds: ids.toReversed() });
  test.match(userMessage.parts, [
    { kind: 'text' },
    { kind: 'attachment', attachmentId: ids[1], fileName: `${ids[1]}.txt`, mediaType: 'text/plain', sizeBytes: 5 },
    { kind: 'attachment', attachmentId: ids[0] },
  ]);
});

scenario('an attachment is recorded once; the same id with other bytes is refused', async (test) => {
  const place = await createChatPlace(sql);
  const chat = await createChat(sql, place);
  const id = randomUUID();
  test.same(await putAttachment(sql.api, place, chat.id, { id, storageKey: null }), {
    attachment: null,
    stored: false,
    storageKey: null,
  });
  const first = await putAttachment(sql.api, place, chat.id, { id, storageKey: 'k1' });
  test.match(first, { stored: true, attachment: { id, chat_id: chat.id, storage_key: 'k1', size_bytes: 5 } });
  const again = await putAttachment(sql.api, place, chat.id, { id, storageKey: 'k2' });
  test.same(again, { ...first, stored: false });
  test.same(await putAttachment(sql.api, place, chat.id, { id, storageKey: null }), again, 'the look says so too');
  const notAllowed = { status: 409, code: 'attachment_not_allowed' };
  test.match(await refusal(putAttachment(sql.api, place, chat.id, { id, bytes: 'other' })), notAllowed);
  const elsewhere = await createChat(sql, place);
  test.match(await putAttachment(sql.api, place, elsewhere.id, { id, bytes: 'other' }), { stored: true });
  await updateChat(sql.api, place, chat.id, { status: 'archived' });
  test.match(await refusal(putAttachment(sql.api, place, chat.id)), notAllowed);
  const onboarding = await createOnboardingChat(sql, place);
  test.match(await refusal(putAttachment(sql.api, place, onboarding.id, { storageKey: null })), notAllowed);
});

scenario('two uploads with one id at once: one is recorded', async (test) => {
  const place = await createChatPlace(sql);
  const chat = await createChat(sql, place);
  const id = randomUUID();
  const session = await openSession(test, sql);
  const rival = await openSession(test, sql);
  await session.begin();
  await putAttachment(session, place, chat.id, { id, storageKey: 'k1' });
  const second = putAttachment(rival, place, chat.id, { id, storageKey: 'k2' });
  await rival.waits();
  await session.commit();
  test.match(await second, { stored: false, attachment: { storage_key: 'k1' } });
});

scenario('a message says something', async (test) => {
  const place = await createChatPlace(sql);
  const chat = await createChat(sql, place);
  const refused = await refusal(send(sql.api, place, chat.id, { parts: [] }));
  test.match(refused, { status: 400, code: 'validation_failed', reason: 'empty' });
  const missing = transition(sql.api, 'message_create', {
    p_organization_id: randomUUID(),
    p_chat_id: chat.id,
    p_body: { parts: [text('x')] },
    p_actor: { kind: 'owner' },
  });
  test.match(await refusal(missing), { status: 404, code: 'organization_not_found' });
});
