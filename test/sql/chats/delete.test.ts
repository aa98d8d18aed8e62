import t from 'tap';
import {
  createChat,
  createChatOrganization,
  deleteChat,
  messageRow,
  send,
  turnRequest,
} from '../../support/chat_fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSession, openSql } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

scenario('a deletion archives, and cancels a reply that nobody has started', async (test) => {
  const org = await createChatOrganization(sql);
  const chat = await createChat(sql, org);
  const { assistantMessage } = await send(sql.api, org, chat.id);
  const deleted = await deleteChat(sql.api, org, chat.id);
  test.equal(deleted.status, 'archived');
  test.match(await messageRow(sql, org, assistantMessage.id), { status: 'cancelled', revision: 3 });
  test.match(await turnRequest(sql, org, assistantMessage.id), { state: 'cancelled' });
  test.same(await deleteChat(sql.api, org, chat.id), deleted, 'a repeat returns the chat');
});

scenario('a deletion that finds another reply than the one it locked is tried again', async (test) => {
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
