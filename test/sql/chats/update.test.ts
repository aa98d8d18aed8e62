import { randomUUID } from 'node:crypto';
import t from 'tap';
import {
  chatRow,
  createChat,
  createChatOrganization,
  createOnboardingChat,
  deleteChat,
  putAttachment,
  send,
  updateChat,
} from '../../support/chat_fixtures.ts';
import { createTask } from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSession, openSql, refusal } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

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

scenario('a chat is not archived while a reply is under way', async (test) => {
  const org = await createChatOrganization(sql);
  const chat = await createChat(sql, org);
  await send(sql.api, org, chat.id);
  const active = { status: 409, code: 'chat_response_active' };
  test.match(await refusal(updateChat(sql.api, org, chat.id, { status: 'archived' })), active);
  test.match(await updateChat(sql.api, org, chat.id, { title: 'Named' }), { title: 'Named', status: 'open' });
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
