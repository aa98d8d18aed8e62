import { randomUUID } from 'node:crypto';
import t from 'tap';
import type { Chat } from '../../../api/chats/schema.ts';
import { expectSuccess, refusalOf } from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { ask, chatPath, createChat, createChatOrganization } from '../chats/support.ts';
import { replyWith, runtimeOf, startTurn } from './turns.ts';

const app = await startTestApp(t);
const org = await createChatOrganization(app);

t.test('the runtime reads the conversation up to the message that it replies to', async (t) => {
  const chat = await createChat(app, org, 'Long');
  for (const text of ['One', 'Two']) {
    await ask(app, chat, text);
    await replyWith(app, org, [{ kind: 'text', text: `${text}!` }]);
  }
  const reply = await ask(app, chat, 'Three');
  const runtime = runtimeOf(app, await startTurn(app, org));
  const whole = expectSuccess(await runtime.conversation());
  const texts = whole.messages.map(({ parts: [part] }) => part?.kind === 'text' && part.text);
  t.same(texts, ['One', 'One!', 'Two', 'Two!', 'Three']);
  t.match(whole, {
    messageId: reply.id,
    userMessageId: reply.replyToMessageId,
    earlier: false,
    chat: { id: chat.id, title: 'Long' },
  });
  const part = expectSuccess(await runtime.conversation({ limit: 2 }));
  t.match(part, { earlier: true, messages: [{ role: 'assistant' }, { id: reply.replyToMessageId }] });
  t.equal((await runtime.conversation({ limit: 0 })).status, 400);
  expectSuccess(await runtime.complete());
  t.equal(refusalOf(await runtime.conversation()), '409 run_lease_expired lease_lost');
});

t.test('the runtime reads the attachments of its chat, and no others', async (t) => {
  const chat = await createChat(app, org);
  const neighbour = await createChat(app, org);
  const id = randomUUID();
  const upload = (to: Chat) =>
    app.owner.put(chatPath(to, `/attachments/${id}`), to.title, {
      query: { fileName: 'notes.txt', mediaType: 'text/plain' },
    });
  expectSuccess(await upload(chat), 201);
  await ask(app, chat);
  const runtime = runtimeOf(app, await startTurn(app, org));
  const response = await runtime.attachment(id);
  t.equal(response.status, 200);
  t.equal(await response.text(), chat.title);
  t.equal((await runtime.attachment(randomUUID())).status, 400);
  expectSuccess(await runtime.complete());
  t.equal((await runtime.attachment(id)).status, 409);
  await ask(app, neighbour);
  const next = runtimeOf(app, await startTurn(app, org));
  t.equal((await next.attachment(id)).status, 400, 'ids are of one chat');
  expectSuccess(await next.complete());
});
