import { randomUUID } from 'node:crypto';
import t from 'tap';
import type { Chat } from '../../../api/chats/schema.ts';
import type { Message } from '../../../api/messages/schema.ts';
import { expectSuccess, ownerPath, refusalOf } from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { until } from '../../support/wait.ts';
import { claimTurn, startClaim } from '../chat_turns/turns.ts';
import { ask, chatPath, createChat, createChatOrganization, followChat } from '../chats/support.ts';

const app = await startTestApp(t);
const org = await createChatOrganization(app);

const list = async (chat: Chat, query: Readonly<Record<string, string | number>> = {}) =>
  expectSuccess(await app.owner.get<Message[]>(chatPath(chat, '/messages'), { query }));

t.test('a reply that nobody started is cancelled at once, with a revision for each step', async (t) => {
  const chat = await createChat(app, org);
  const stream = await followChat(app, chat);
  t.teardown(() => stream.stop());
  const reply = await ask(app, chat);
  const item = await claimTurn(app, org);
  const cancel = chatPath(chat, `/messages/${reply.id}/cancel`);
  const cancelled = expectSuccess(await app.owner.post<Message>(cancel));
  t.match(cancelled, { id: reply.id, status: 'cancelling', revision: 2, completedAt: null });
  t.match((await list(chat)).at(-1), { status: 'cancelled', revision: 3 });
  t.equal(refusalOf(await app.owner.post(cancel)), '409 message_not_cancellable');
  t.equal(refusalOf(await startClaim(app, item)), '409 run_lease_expired lease_lost');
  await until('the stream shows it', () => stream.events.at(-1)?.data.message?.status === 'cancelled');
  const [question] = await list(chat);
  const other = await createChat(app, org);
  t.equal(
    refusalOf(await app.owner.post(chatPath(chat, `/messages/${question?.id}/cancel`))),
    '409 message_not_cancellable',
  );
  for (const path of [
    chatPath(other, `/messages/${reply.id}/cancel`),
    chatPath(chat, `/messages/${randomUUID()}/cancel`),
  ]) {
    t.equal(refusalOf(await app.owner.post(path)), '404 message_not_found');
  }
  t.equal(refusalOf(await app.owner.get(ownerPath(org, `/messages/${randomUUID()}`))), '404 message_not_found');
});
