import { randomUUID } from 'node:crypto';
import t from 'tap';
import { createChat, createChatOrganization, deleteChat, exchange, send, text } from '../../support/chat_fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSql, transition } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

scenario(
  'heads are what is new of chats: the latest reply, the end of the one before, and that a chat is over',
  async (test) => {
    const org = await createChatOrganization(sql);
    const [quiet, busy] = [await createChat(sql, org), await createChat(sql, org)];
    const foreign = await createChat(sql, await createChatOrganization(sql));
    type Head = Readonly<{ chatId: string; closed: boolean; head: unknown; earlier: unknown }>;
    const heads = async (
      known: readonly (readonly [chatId: string, messageId: string | null, revision: number | null])[],
    ) =>
      (await transition(sql.api, 'chat_heads', {
        organizationId: org.organizationId,
        chatIds: known.map(([chatId]) => chatId),
        messageIds: known.map(([, messageId]) => messageId),
        revisions: known.map(([, , revision]) => revision),
      })) as unknown as Head[];
    test.same(await heads([[quiet.id, null, null]]), [], 'nothing is new where there is no reply');
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
    await transition(sql.api, 'organization_delete', { organizationId: org.organizationId });
    test.match(await heads([[busy.id, assistantMessage.id, 1]]), [{ closed: true, head: null }]);
  },
);
