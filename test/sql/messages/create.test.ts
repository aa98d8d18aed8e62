import { randomUUID } from 'node:crypto';
import t from 'tap';
import {
  cancelMessage,
  chatRow,
  claimTurn,
  completeTurn,
  createChat,
  createChatOrganization,
  createOnboardingChat,
  exchange,
  messageRow,
  putAttachment,
  send,
  startTurn,
  text,
  turnRequest,
  updateChat,
} from '../../support/chat_fixtures.ts';
import { createProfile, createTestOrganization, updateProfile } from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSession, openSql, refusal, transition } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

scenario('a message is kept with its pending reply and the request for it', async (test) => {
  const org = await createChatOrganization(sql);
  const chat = await createChat(sql, org);
  const { userMessage, assistantMessage } = await send(sql.api, org, chat.id, { parts: [text('Hi'), text('there')] });
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
  test.match(await turnRequest(sql, org, assistantMessage.id), { state: 'published', chat_id: chat.id, attempt: 0 });
  test.equal((await chatRow(sql, org, chat.id))?.last_message_at, userMessage.created_at);
});

scenario('one reply at a time', async (test) => {
  const org = await createChatOrganization(sql);
  const chat = await createChat(sql, org);
  await send(sql.api, org, chat.id);
  const active = { status: 409, code: 'chat_turn_active' };
  test.match(await refusal(send(sql.api, org, chat.id)), active);
  const turn = await startTurn(sql.api, await claimTurn(sql, org));
  test.match(await refusal(send(sql.api, org, chat.id)), active);
  await cancelMessage(sql.api, org, { id: turn.messageId, chat_id: chat.id });
  test.match(await refusal(send(sql.api, org, chat.id)), active, 'nor while it is being cancelled');
  await completeTurn(sql.api, turn);
  await send(sql.api, org, chat.id);
});

scenario('two messages at once: one is taken, the other waits and is refused', async (test) => {
  const org = await createChatOrganization(sql);
  const chat = await createChat(sql, org);
  const session = await openSession(test, sql);
  const rival = await openSession(test, sql);
  await session.begin();
  await send(session, org, chat.id);
  const second = refusal(send(rival, org, chat.id));
  await rival.waits();
  await session.commit();
  test.match(await second, { code: 'chat_turn_active' });
  const outcomes = await Promise.allSettled(
    Array.from({ length: 8 }, async () => send(sql.api, org, (await createChat(sql, org)).id)),
  );
  test.ok(
    outcomes.every(({ status }) => status === 'fulfilled'),
    'other chats do not wait',
  );
});

scenario('an archived chat, one without a profile and a finished onboarding take no message', async (test) => {
  const org = await createChatOrganization(sql);
  const chat = await createChat(sql, org);
  await updateChat(sql.api, org, chat.id, { status: 'archived' });
  const conflict = { status: 409, code: 'state_conflict' };
  test.match(await refusal(send(sql.api, org, chat.id)), conflict);
  await updateChat(sql.api, org, chat.id, { status: 'open' });
  await updateProfile(sql.api, org, { status: 'disabled' });
  test.match(await refusal(send(sql.api, org, chat.id)), conflict);
  const without = await createTestOrganization(sql);
  test.match(await refusal(send(sql.api, without, (await createChat(sql, without)).id)), conflict);

  const onboarding = await createChatOrganization(sql);
  const first = await createOnboardingChat(sql, onboarding);
  await exchange(sql, onboarding, first.id, [text('Welcome')]);
  await sql.owner.query('update app.organizations set onboarded_at = now() where id = $1', [onboarding.organizationId]);
  const immutable = { status: 409, code: 'onboarding_chat_immutable' };
  test.match(await refusal(send(sql.api, onboarding, first.id)), immutable);
  await send(sql.api, onboarding, (await createChat(sql, onboarding)).id);
});

scenario('the oldest enabled chat profile replies', async (test) => {
  const org = await createChatOrganization(sql, { status: 'disabled' });
  const second = await createProfile(sql, org.organizationId, { kind: 'chat' });
  await createProfile(sql, org.organizationId, { kind: 'chat' });
  const { assistantMessage } = await send(sql.api, org, (await createChat(sql, org)).id);
  test.match(await turnRequest(sql, org, assistantMessage.id), { agent_profile_id: second.id });
});

scenario('times rise within a chat, whatever the clock says', async (test) => {
  const org = await createChatOrganization(sql);
  const chat = await createChat(sql, org);
  const first = await exchange(sql, org, chat.id, [text('one')]);
  const late = { ...org, id: first.id };
  await sql.owner.query('alter table app.messages disable trigger messages_keep_revision');
  await sql.owner.query(
    `update app.messages set created_at = created_at + interval '1 hour' where organization_id = $1 and id = $2`,
    [late.organizationId, late.id],
  );
  await sql.owner.query('alter table app.messages enable trigger messages_keep_revision');
  const { userMessage, assistantMessage } = await send(sql.api, org, chat.id);
  test.ok(userMessage.created_at > (await messageRow(sql, org, first.id)).created_at);
  test.ok(assistantMessage.created_at > userMessage.created_at);
});

scenario('a final message never changes, and a revision never falls', async (test) => {
  const org = await createChatOrganization(sql);
  const chat = await createChat(sql, org);
  const message = await exchange(sql, org, chat.id, [text('one')]);
  const change = 'update app.messages set revision = revision + 1 where organization_id = $1 and id = $2';
  await test.rejects(sql.owner.query(change, [org.organizationId, message.id]), { code: 'P0001' });
  const { assistantMessage } = await send(sql.api, org, chat.id);
  const lower = `update app.messages set parts = '[1]' where organization_id = $1 and id = $2`;
  await test.rejects(sql.owner.query(lower, [org.organizationId, assistantMessage.id]), { code: 'P0001' });
});

scenario('attachments are named in the order given, and have to be of the chat', async (test) => {
  const org = await createChatOrganization(sql);
  const chat = await createChat(sql, org);
  const ids = [randomUUID(), randomUUID()];
  for (const id of ids) await putAttachment(sql.api, org, chat.id, { id, fileName: `${id}.txt` });
  const foreign = randomUUID();
  await putAttachment(sql.api, org, (await createChat(sql, org)).id, { id: foreign });
  const refused = await refusal(send(sql.api, org, chat.id, { parts: [text('x')], attachmentIds: [ids[0], foreign] }));
  test.match(refused, { status: 400, code: 'validation_failed', reason: 'unknown_attachment' });
  const { userMessage } = await send(sql.api, org, chat.id, { parts: [text('x')], attachmentIds: ids.toReversed() });
  test.match(userMessage.parts, [
    { kind: 'text' },
    { kind: 'attachment', attachmentId: ids[1], fileName: `${ids[1]}.txt`, mediaType: 'text/plain', sizeBytes: 5 },
    { kind: 'attachment', attachmentId: ids[0] },
  ]);
});

scenario('a message says something', async (test) => {
  const org = await createChatOrganization(sql);
  const chat = await createChat(sql, org);
  const refused = await refusal(send(sql.api, org, chat.id, { parts: [] }));
  test.match(refused, { status: 400, code: 'validation_failed', reason: 'empty' });
  const missing = transition(sql.api, 'message_create', {
    organizationId: randomUUID(),
    chatId: chat.id,
    body: { parts: [text('x')] },
    actor: { kind: 'owner' },
  });
  test.match(await refusal(missing), { status: 404, code: 'organization_not_found' });
});
