import { randomUUID } from 'node:crypto';
import t from 'tap';
import { createChat, createChatOrganization } from '../../support/chat_fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSql, refusal } from '../../support/transitions.ts';

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
