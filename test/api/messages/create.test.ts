import { randomUUID } from 'node:crypto';
import t from 'tap';
import type { Chat } from '../../../api/chats/schema.ts';
import type { Message } from '../../../api/messages/schema.ts';
import { publishBuiltinCatalog } from '../../../engine/catalog/index.ts';
import { expectSuccess, type Fields, ownerPath, refusalOf, sqlOf } from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { createTestOrganization } from '../../support/fixtures.ts';
import { issuePaths } from '../../support/http.ts';
import { replyWith } from '../chat_turns/turns.ts';
import { ask, chatPath, createChat, createChatOrganization, type Posted, patchChat } from '../chats/support.ts';

const app = await startTestApp(t);
const org = await createChatOrganization(app);

const post = (chat: Chat, body: unknown, headers: Readonly<Record<string, string>> = {}) =>
  app.owner.post<Posted>(chatPath(chat, '/messages'), body, { headers });
const list = async (chat: Chat, query: Readonly<Record<string, string | number>> = {}) =>
  expectSuccess(await app.owner.get<Message[]>(chatPath(chat, '/messages'), { query }));
const text = (words: string) => ({ parts: [{ kind: 'text', text: words }] });

t.test('a message is kept with its pending reply, in one step', async (t) => {
  const chat = await createChat(app, org);
  const author = { kind: 'human', displayName: 'Änna "A" 🌱' };
  const reply = await post(chat, { author, ...text('Hello\n  there') });
  const { userMessage, assistantMessage } = expectSuccess(reply, 202);
  t.match(userMessage, {
    organizationId: org.organizationId,
    chatId: chat.id,
    replyToMessageId: null,
    role: 'user',
    status: 'complete',
    revision: 1,
    author,
    parts: [{ kind: 'text', text: 'Hello\n  there' }],
    error: null,
  });
  t.ok(userMessage.completedAt);
  t.match(assistantMessage, {
    replyToMessageId: userMessage.id,
    role: 'assistant',
    status: 'pending',
    revision: 1,
    parts: [],
    completedAt: null,
  });
  t.same(await list(chat), [userMessage, assistantMessage]);
  t.same(await list(chat, { role: 'user' }), [userMessage]);
  t.same(await list(chat, { status: 'pending' }), [assistantMessage]);
  const one = await app.owner.get(ownerPath(org, `/messages/${userMessage.id}`));
  t.same(expectSuccess(one), userMessage);
  t.equal(refusalOf(await post(chat, text('Too early'))), '409 chat_turn_active');
  await replyWith(app, org, [{ kind: 'text', text: 'Hi' }]);
  t.equal((await post(chat, text('Now'))).status, 202);
  t.same(
    (await list(chat, { limit: 3 })).map((message) => message.role),
    ['user', 'assistant', 'user'],
    'oldest first',
  );
  await replyWith(app, org, []);
});

t.test('pages of large messages end early, and still show each once, forward and back', async (t) => {
  const chat = await createChat(app, org);
  // Repeated text takes little room on the disk; what counts is the response. Notes, which search does not index.
  const parts = Array(10).fill({ kind: 'context_note', text: 'x'.repeat(95_000), status: 'informational' });
  for (let turn = 0; turn < 6; turn += 1) {
    expectSuccess(await post(chat, text('Note this')), 202);
    await replyWith(app, org, parts);
  }
  const page = async (cursor?: string | null) => {
    const query = { limit: 200, ...(cursor ? { cursor } : {}) };
    const reply = await app.owner.get<Message[]>(chatPath(chat, '/messages'), { query });
    return { ids: expectSuccess(reply).map(({ id }) => id), ...reply.body.pagination };
  };
  const first = await page();
  t.equal(first.ids.length, 10);
  t.match(first, { hasNextPage: true, hasPreviousPage: false });
  const second = await page(first.nextCursor);
  t.equal(second.ids.length, 2);
  t.match(second, { hasNextPage: false, hasPreviousPage: true });
  t.equal(new Set([...first.ids, ...second.ids]).size, 12);
  const back = await page(second.previousCursor);
  const rest = await page(back.previousCursor);
  t.same([...rest.ids, ...back.ids], first.ids);
  t.match(rest, { hasNextPage: true, hasPreviousPage: false });
});

t.test('a call that is repeated under its key speaks once', async (t) => {
  const chat = await createChat(app, org);
  const key = { 'idempotency-key': randomUUID() };
  const replies = await Promise.all([1, 2, 3].map(() => post(chat, text('Once'), key)));
  const messages = replies.map((reply) => expectSuccess(reply, 202));
  t.same(messages[1], messages[0]);
  t.same(messages[2], messages[0]);
  t.equal((await list(chat)).length, 2);
  t.equal(refusalOf(await post(chat, text('Twice'), key)), '409 idempotency_key_reused idempotency_key_reused');
  const cancel = chatPath(chat, `/messages/${messages[0]?.assistantMessage.id}/cancel`);
  t.equal((await app.owner.post(cancel)).status, 200);
});

t.test('of two at once, one is taken', async (t) => {
  const chat = await createChat(app, org);
  const replies = await Promise.all([1, 2, 3, 4].map((n) => post(chat, text(`${n}`))));
  t.same(replies.map((reply) => reply.code ?? reply.status).sort(), [202, ...Array(3).fill('chat_turn_active')]);
  t.equal((await list(chat)).length, 2);
  await replyWith(app, org, []);
});

t.test('nothing is said in an archived chat, in one that is not there, or without a chat profile', async (t) => {
  const chat = await createChat(app, org);
  expectSuccess(await patchChat(app, chat, { status: 'archived' }));
  t.equal(refusalOf(await post(chat, text('x'))), '409 state_conflict');
  t.equal(refusalOf(await post({ ...chat, id: randomUUID() }, text('x'))), '404 chat_not_found');
  const mute = await createTestOrganization(sqlOf(app));
  const silent = await createChat(app, mute);
  const refused = await post(silent, text('x'));
  t.equal(refusalOf(refused), '409 state_conflict');
  t.same(await list(silent), [], 'nothing is kept of it');
  const [, call = ''] = /POST \/organizations\/\{organizationId\}(\S+)/.exec(refused.body.message) ?? [];
  await publishBuiltinCatalog(app.services.db);
  expectSuccess(await app.owner.post(ownerPath(mute, call), { departments: [] }));
  expectSuccess(await post(silent, text('x')), 202);
});

t.test('bodies that do not fit are refused, an issue each', async (t) => {
  const chat = await createChat(app, org);
  const cases: readonly (readonly [Fields, readonly string[]])[] = [
    [{}, ['parts']],
    [{ parts: [] }, ['parts']],
    [{ parts: [{ kind: 'text', text: '' }] }, ['parts.0.text']],
    [{ parts: [{ kind: 'text', text: 'x'.repeat(100_001) }] }, ['parts.0.text']],
    [{ parts: [{ kind: 'question', text: 'x' }] }, ['parts.0.kind']],
    [{ ...text('x'), role: 'assistant' }, ['role']],
    [{ ...text('x'), author: { kind: '', displayName: 1 } }, ['author.displayName', 'author.kind']],
    [{ ...text('x'), attachmentIds: ['x'] }, ['attachmentIds.0']],
    [{ ...text('x'), attachmentIds: [randomUUID()] }, ['attachmentIds.0']],
    [{ ...text('x'), answers: [{ messageId: randomUUID(), partId: 'a', value: 'x' }] }, ['answers.0']],
    [{ answers: [{ messageId: randomUUID(), partId: 'a', deferred: false }] }, ['answers.0.deferred']],
    [{ parts: [{ kind: 'text', text: 'a\0b' }] }, ['parts.0.text']],
  ];
  for (const [body, paths] of cases) {
    const reply = await post(chat, body);
    t.same([reply.status, ...issuePaths(reply)], [400, ...paths], JSON.stringify(body).slice(0, 100));
  }
  t.same(await list(chat), []);
  t.equal((await post(chat, { parts: [{ kind: 'text', text: 'x'.repeat(100_000) }] })).status, 202);
  await replyWith(app, org, []);
});

t.test('what the last reply asks is answered part by part, or nothing else is taken', async (t) => {
  const chat = await createChat(app, org);
  const { id: messageId } = await ask(app, chat);
  await replyWith(app, org, [
    { id: 'intro', kind: 'text', text: 'Two things' },
    { id: 'color', kind: 'question', question: 'Which?', options: ['red', 'blue'] },
    { id: 'why', kind: 'question', question: 'Why?' },
    { id: 'note', kind: 'context_note', text: 'They like blue.' },
  ]);
  const plain = await post(chat, text('Whatever'));
  t.equal(plain.status, 400);
  t.equal(plain.body.error.issues?.length, 3, 'an issue for each');
  const color = { messageId, partId: 'color', value: 'red' };
  const why = { messageId, partId: 'why', deferred: true };
  const note = { messageId, partId: 'note', approved: false };
  const wrong: readonly (readonly Fields[])[] = [
    [color, why],
    [why, color, note],
    [color, color, why, note],
    [{ ...color, value: 'green' }, why, note],
    [{ ...color, value: ['red', 'blue'] }, why, note],
    [color, why, { messageId, partId: 'note', deferred: true }],
    [color, why, { messageId, partId: 'note', value: 'yes' }],
    [{ messageId, partId: 'color', approved: true }, why, note],
    [color, why, note, { messageId, partId: 'intro', value: 'x' }],
  ];
  for (const answers of wrong) {
    const reply = await post(chat, { answers });
    t.equal(reply.status, 400);
    t.ok(
      issuePaths(reply).every((path) => path.startsWith('answers')),
      issuePaths(reply).join(),
    );
  }
  const { userMessage } = expectSuccess(await post(chat, { answers: [color, why, note], ...text('And more') }), 202);
  t.match(userMessage.parts, [
    { kind: 'answer', messageId, partId: 'color', value: 'red' },
    { kind: 'deferral', messageId, partId: 'why' },
    { kind: 'answer', messageId, partId: 'note', approved: false },
    { kind: 'text', text: 'And more' },
  ]);
  await replyWith(app, org, [{ kind: 'text', text: 'Thanks' }]);
  t.equal((await post(chat, { answers: [color], ...text('x') })).status, 400, 'it waits for nothing any more');
  t.equal((await post(chat, text('Plain again'))).status, 202);
});
