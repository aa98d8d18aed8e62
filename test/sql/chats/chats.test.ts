import { randomUUID } from 'node:crypto';
import t from 'tap';
import {
  chatRow,
  createChat,
  createChatOrganization,
  createOnboardingChat,
  deleteChat,
  exchange,
  messageRow,
  putAttachment,
  send,
  text,
  turnRequest,
  updateChat,
} from '../../support/chat_fixtures.ts';
import { createTask } from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSession, openSql, refusal, transition } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

scenario('a chat is made open, with its defaults', async (test) => {
  const org = await createChatOrganization(sql);
  const chat = await createChat(sql, org, { title: 'Hello' });
  test.match(chat, {
    title: 'Hello',
    status: 'open',
    summary: null,
    settings: { pinnedTaskIds: [] },
    archived_at: null,
  });
  test.equal(chat.last_message_at, chat['created_at']);
  const nowhere = { ...org, organizationId: randomUUID() };
  test.match(await refusal(createChat(sql, nowhere)), { status: 404, code: 'organization_not_found' });
});

scenario('title and pinned tasks are patched, and pinned tasks are the organization’s own', async (test) => {
  const org = await createChatOrganization(sql);
  const chat = await createChat(sql, org);
  const task = await createTask(sql, org);
  const patched = await updateChat(sql.api, org, chat.id, { title: 'New', settings: { pinnedTaskIds: [task.id] } });
  test.match(patched, { title: 'New', settings: { pinnedTaskIds: [task.id] } });
  test.same(await updateChat(sql.api, org, chat.id, { title: 'New' }), patched, 'a repeat changes nothing');
  const foreign = await createTask(sql, await createChatOrganization(sql));
  const refused = await refusal(
    updateChat(sql.api, org, chat.id, { settings: { pinnedTaskIds: [task.id, foreign.id] } }),
  );
  test.match(refused, { status: 400, code: 'validation_failed', reason: 'unknown_task' });
  test.match(await refusal(createChat(sql, org, { settings: { pinnedTaskIds: [randomUUID()] } })), { status: 400 });
  const cleared = await updateChat(sql.api, org, chat.id, { settings: null });
  test.same(cleared.settings, { pinnedTaskIds: [] });
});

scenario('a chat is archived, and opened again', async (test) => {
  const org = await createChatOrganization(sql);
  const chat = await createChat(sql, org);
  const archived = await updateChat(sql.api, org, chat.id, { status: 'archived' });
  test.equal(archived.status, 'archived');
  test.ok(archived.archived_at);
  test.same(await updateChat(sql.api, org, chat.id, { status: 'archived' }), archived);
  test.match(await updateChat(sql.api, org, chat.id, { status: 'open' }), { status: 'open', archived_at: null });
});

scenario('a chat is not archived while an answer is under way', async (test) => {
  const org = await createChatOrganization(sql);
  const chat = await createChat(sql, org);
  await send(sql.api, org, chat.id);
  const active = { status: 409, code: 'chat_response_active' };
  test.match(await refusal(updateChat(sql.api, org, chat.id, { status: 'archived' })), active);
  test.match(await updateChat(sql.api, org, chat.id, { title: 'Named' }), { title: 'Named', status: 'open' });
});

scenario('a deletion archives, and cancels an answer that nobody has started', async (test) => {
  const org = await createChatOrganization(sql);
  const chat = await createChat(sql, org);
  const { assistantMessage } = await send(sql.api, org, chat.id);
  const deleted = await deleteChat(sql.api, org, chat.id);
  test.equal(deleted.status, 'archived');
  test.match(await messageRow(sql, org, assistantMessage.id), { status: 'cancelled', revision: 3 });
  test.match(await turnRequest(sql, org, assistantMessage.id), { state: 'cancelled' });
  test.same(await deleteChat(sql.api, org, chat.id), deleted, 'a repeat answers the chat');
});

scenario('the onboarding chat is neither changed nor deleted', async (test) => {
  const org = await createChatOrganization(sql);
  const chat = await createOnboardingChat(sql, org);
  const immutable = { status: 409, code: 'onboarding_chat_immutable' };
  test.match(await refusal(updateChat(sql.api, org, chat.id, { title: 'x' })), immutable);
  test.match(await refusal(deleteChat(sql.api, org, chat.id)), immutable);
  await test.rejects(createOnboardingChat(sql, org), { code: '23505' }, 'there is one at most');
});

scenario('another organization’s chat is not there', async (test) => {
  const org = await createChatOrganization(sql);
  const chat = await createChat(sql, org);
  const other = await createChatOrganization(sql);
  const missing = { status: 404, code: 'chat_not_found' };
  test.match(await refusal(updateChat(sql.api, other, chat.id, { title: 'x' })), missing);
  test.match(await refusal(deleteChat(sql.api, other, chat.id)), missing);
  test.match(await refusal(send(sql.api, other, chat.id)), missing);
  test.match(await refusal(putAttachment(sql.api, other, chat.id)), missing);
  test.equal((await chatRow(sql, org, chat.id))?.status, 'open');
});

scenario('an archiving waits for a message, and then refuses; a message waits for it, and is refused', async (test) => {
  const org = await createChatOrganization(sql);
  const [first, second] = [await createChat(sql, org), await createChat(sql, org)];
  const session = await openSession(test, sql);
  const rival = await openSession(test, sql);

  await session.begin();
  await send(session, org, first.id);
  const archiving = refusal(updateChat(rival, org, first.id, { status: 'archived' }));
  await rival.waits();
  await session.commit();
  test.match(await archiving, { code: 'chat_response_active' });

  await session.begin();
  await updateChat(session, org, second.id, { status: 'archived' });
  const sending = refusal(send(rival, org, second.id));
  await rival.waits();
  await session.commit();
  test.match(await sending, { status: 409, code: 'state_conflict' });
});

scenario('a deletion that finds another answer than the one it locked is tried again', async (test) => {
  const org = await createChatOrganization(sql);
  const chat = await createChat(sql, org);
  const session = await openSession(test, sql);
  const rival = await openSession(test, sql);
  await session.begin();
  const { assistantMessage } = await send(session, org, chat.id);
  const deleting = test.rejects(deleteChat(rival, org, chat.id), { code: '40001' });
  await rival.waits();
  await session.commit();
  await deleting;
  test.equal((await deleteChat(sql.api, org, chat.id)).status, 'archived');
  test.equal((await messageRow(sql, org, assistantMessage.id)).status, 'cancelled');
});

scenario(
  'heads are what is new of chats: the latest answer, the end of the one before, and that a chat is over',
  async (test) => {
    const org = await createChatOrganization(sql);
    const [quiet, busy] = [await createChat(sql, org), await createChat(sql, org)];
    const foreign = await createChat(sql, await createChatOrganization(sql));
    const literal = (values: readonly (string | number | null)[]) => `{${values.map((one) => one ?? 'null').join()}}`;
    type Head = Readonly<{ chatId: string; closed: boolean; head: unknown; earlier: unknown }>;
    const heads = async (
      known: readonly (readonly [chatId: string, messageId: string | null, revision: number | null])[],
    ) =>
      (await transition(sql.api, 'chat_heads', {
        p_organization_id: org.organizationId,
        p_chat_ids: known.map(([chatId]) => chatId),
        p_message_ids: literal(known.map(([, messageId]) => messageId)),
        p_revisions: literal(known.map(([, , revision]) => revision)),
      })) as unknown as Head[];
    test.same(await heads([[quiet.id, null, null]]), [], 'nothing is new where there is no answer');
    const first = await exchange(sql, org, busy.id, [text('Yes')]);
    const gone = await heads([
      [foreign.id, null, null],
      [randomUUID(), first.id, 1],
    ]);
    test.match(gone, [
      { closed: true, head: null },
      { closed: true, head: null },
    ]);
    test.match(await heads([[busy.id, null, null]]), [
      { closed: false, head: { id: first.id, revision: 2 }, earlier: null },
    ]);
    test.match(await heads([[busy.id, first.id, 1]]), [
      { closed: false, head: { id: first.id, revision: 2 }, earlier: null },
    ]);
    test.same(await heads([[busy.id, first.id, 2]]), []);
    const { assistantMessage } = await send(sql.api, org, busy.id);
    const next = { closed: false, head: { id: assistantMessage.id, revision: 1 } };
    test.match(await heads([[busy.id, first.id, 1]]), [{ ...next, earlier: { id: first.id, revision: 2 } }]);
    test.match(await heads([[busy.id, first.id, 2]]), [{ ...next, earlier: null }]);
    await deleteChat(sql.api, org, quiet.id);
    test.match(await heads([[quiet.id, null, null]]), [{ closed: true, head: null }]);
    await transition(sql.api, 'organization_delete', { p_organization_id: org.organizationId });
    test.match(await heads([[busy.id, assistantMessage.id, 1]]), [{ closed: true, head: null }]);
  },
);
