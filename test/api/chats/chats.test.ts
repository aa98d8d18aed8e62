import { randomUUID } from 'node:crypto';
import t from 'tap';
import type { Chat } from '../../../api/chats/schema.ts';
import { expectSuccess, makeTask, ownerPath, refusalOf, sqlOf } from '../../support/api_fixtures.ts';
import { OWNER_TOKEN, startTestApp } from '../../support/app.ts';
import { createOnboardingChat } from '../../support/chat_fixtures.ts';
import { createSecondProfile } from '../../support/fixtures.ts';
import { issuePaths } from '../../support/http.ts';
import { startIssuer } from '../../support/jwt.ts';
import { replyWith, startTurn } from '../chat_turns/turns.ts';
import { ask, chatPath, createChat, createChatOrganization, follow, patchChat } from './support.ts';

const app = await startTestApp(t);
const org = await createChatOrganization(app);
const other = await createChatOrganization(app);

const read = async (chat: Chat) => expectSuccess(await app.owner.get<Chat>(chatPath(chat)));

t.test('a chat is opened, read and listed', async (t) => {
  const empty = await createChatOrganization(app);
  t.same(expectSuccess(await app.owner.get(ownerPath(empty, '/chats'))), []);
  const chat = await createChat(app, empty, '  Plans für 🌱  ');
  t.match(chat, {
    organizationId: empty.organizationId,
    title: 'Plans für 🌱',
    status: 'open',
    summary: null,
    harnessSessionId: null,
    settings: { pinnedTaskIds: [] },
    lastMessageAt: chat.createdAt,
    archivedAt: null,
    isOnboardingChat: false,
  });
  t.same(await read(chat), chat);
  t.same(expectSuccess(await app.owner.get(ownerPath(empty, '/chats'))), [chat]);
});

t.test('the one with the latest message comes first, in pages both ways', async (t) => {
  const listed = await createChatOrganization(app);
  const chats: Chat[] = [];
  for (let n = 0; n < 7; n += 1) chats.unshift(await createChat(app, listed, `${n}`));
  const oldest = chats.pop() as Chat;
  await ask(app, oldest);
  chats.unshift(oldest);
  const expected = chats.map((chat) => chat.id);
  const seen: string[] = [];
  let cursor: string | undefined;
  let last: string | null = null;
  do {
    const page = await app.owner.get<Chat[]>(ownerPath(listed, '/chats'), { query: { limit: 3, cursor } });
    seen.push(...expectSuccess(page).map((chat) => chat.id));
    last = page.body.pagination.previousCursor;
    cursor = page.body.pagination.nextCursor ?? undefined;
  } while (cursor);
  t.same(seen, expected);
  const back = await app.owner.get<Chat[]>(ownerPath(listed, '/chats'), { query: { limit: 3, cursor: last ?? '' } });
  t.same(
    expectSuccess(back).map((chat) => chat.id),
    expected.slice(3, 6),
  );
  const foreign = await app.owner.get(ownerPath(other, '/chats'), { query: { limit: 3, cursor: last ?? '' } });
  t.equal(refusalOf(foreign), '400 validation_failed invalid_cursor');
});

t.test('a chat is archived with server time, and restored', async (t) => {
  const chat = await createChat(app, org);
  const archived = expectSuccess(await patchChat(app, chat, { status: 'archived' }));
  t.match(archived, { status: 'archived', title: chat.title });
  t.ok(archived.archivedAt && archived.archivedAt >= chat.createdAt);
  t.same(expectSuccess(await patchChat(app, chat, { status: 'archived' })), archived, 'a repeat changes nothing');
  const of = (status: string) => app.owner.get<Chat[]>(ownerPath(org, '/chats'), { query: { status } });
  t.ok(expectSuccess(await of('archived')).some(({ id }) => id === chat.id));
  t.notOk(expectSuccess(await of('open')).some(({ id }) => id === chat.id));
  t.match(expectSuccess(await patchChat(app, chat, { status: 'open' })), { status: 'open', archivedAt: null });
});

t.test('tasks are pinned to a chat by a merge patch', async (t) => {
  const chat = await createChat(app, org);
  const task = await makeTask(app, await createSecondProfile(sqlOf(app), org));
  const pinned = { pinnedTaskIds: [task.id] };
  t.same(expectSuccess(await patchChat(app, chat, { settings: pinned })).settings, pinned);
  t.same(expectSuccess(await patchChat(app, chat, { title: 'Other' })).settings, pinned);
  const unknown = await patchChat(app, chat, { settings: { pinnedTaskIds: [task.id, randomUUID()] } });
  t.same([unknown.status, ...issuePaths(unknown)], [400, 'settings.pinnedTaskIds.1']);
  t.same(expectSuccess(await patchChat(app, chat, { settings: null })).settings, { pinnedTaskIds: [] });
});

t.test('what does not fit is refused, an issue each', async (t) => {
  const chat = await createChat(app, org);
  const create = (body: unknown) => app.owner.post(ownerPath(org, '/chats'), body);
  t.same(issuePaths(await create({})), ['title']);
  t.same(issuePaths(await create({ title: ' ' })), ['title']);
  t.same(issuePaths(await create({ title: 'x'.repeat(201), status: 'open' })), ['status', 'title']);
  t.same(issuePaths(await patchChat(app, chat, { title: null, status: 'gone', summary: 'x' })), [
    'status',
    'summary',
    'title',
  ]);
  const queries = [{ status: 'gone' }, { limit: 201 }, { limit: 0 }, { cursor: 'x' }, { search: '' }, { order: 'x' }];
  for (const query of queries) {
    const reply = await app.owner.get(ownerPath(org, '/chats'), { query });
    t.same([reply.status, ...issuePaths(reply)], [400, ...Object.keys(query)]);
  }
  expectSuccess(await create({ title: 'x'.repeat(200) }), 201);
});

t.test(
  'a chat whose reply is on its way is not archived; one that nobody started goes with it on DELETE',
  async (t) => {
    const chat = await createChat(app, org);
    const reply = await ask(app, chat);
    t.equal(refusalOf(await patchChat(app, chat, { status: 'archived' })), '409 chat_response_active');
    expectSuccess(await patchChat(app, chat, { title: 'Renamed meanwhile' }));
    t.match(expectSuccess(await app.owner.delete(chatPath(chat))), { status: 'archived' });
    const ended = await app.owner.get(ownerPath(org, `/messages/${reply.id}`));
    t.match(expectSuccess(ended), { status: 'cancelled', revision: 3 });
    t.match(expectSuccess(await app.owner.delete(chatPath(chat))), { status: 'archived' }, 'again');
    const started = await createChat(app, org);
    await ask(app, started);
    const turn = await startTurn(app, org);
    t.equal(turn.chatId, started.id, 'the cancelled one is not handed out');
    t.equal(refusalOf(await app.owner.delete(chatPath(started))), '409 chat_response_active');
  },
);

t.test('the onboarding chat is read, and not changed', async (t) => {
  const { id } = await createOnboardingChat(sqlOf(app), other);
  const chat = expectSuccess(await app.owner.get<Chat>(ownerPath(other, `/chats/${id}`)));
  t.equal(chat.isOnboardingChat, true);
  t.equal(refusalOf(await patchChat(app, chat, { title: 'x' })), '409 onboarding_chat_immutable');
  t.equal(refusalOf(await app.owner.delete(chatPath(chat))), '409 onboarding_chat_immutable');
  const query = { fileName: 'a.txt', mediaType: 'text/plain' };
  const attached = await app.owner.put(chatPath(chat, `/attachments/${randomUUID()}`), 'a', { query });
  t.equal(refusalOf(attached), '409 attachment_not_allowed');
});

t.test('chats of others are not there', async (t) => {
  const chat = await createChat(app, org);
  const foreign = { ...chat, organizationId: other.organizationId };
  for (const path of [chatPath(foreign), chatPath(foreign, '/messages'), chatPath({ ...chat, id: randomUUID() })]) {
    t.equal(refusalOf(await app.owner.get(path)), '404 chat_not_found', path);
  }
  t.equal(refusalOf(await patchChat(app, foreign, { title: 'x' })), '404 chat_not_found');
  t.equal(refusalOf(await app.owner.delete(chatPath(foreign))), '404 chat_not_found');
  const nowhere = { ...chat, organizationId: randomUUID() };
  t.equal(refusalOf(await app.owner.get(chatPath(nowhere))), '404 organization_not_found');
  t.equal(refusalOf(await app.owner.get(ownerPath(nowhere, '/chats'))), '404 organization_not_found');
  t.equal(refusalOf(await patchChat(app, nowhere, { title: 'x' })), '404 organization_not_found');
});

t.test('members read, owners write, others find nothing', async (t) => {
  const issuer = await startIssuer(t);
  const guarded = await startTestApp(t, { database: app.database, config: { ownerAuth: issuer.ownerAuth } });
  const chat = await createChat(app, org);
  await ask(app, chat);
  await replyWith(app, org, [{ kind: 'text', text: 'Yes' }]);
  for (const [subject, role] of Object.entries({ anna: 'owner', vera: 'viewer' })) {
    const path = ownerPath(org, `/members/${subject}`);
    t.ok((await app.owner.put(path, { role }, { headers: { 'content-type': 'application/json' } })).status < 300);
  }
  const token = async (subject: string) => ({ authorization: `Bearer ${await issuer.token(subject)}` });
  const as = async (subject: string) => guarded.owner.as(await issuer.token(subject));
  const vera = await as('vera');
  t.equal((await vera.get(chatPath(chat))).status, 200);
  t.equal(refusalOf(await vera.patch(chatPath(chat), { title: 'x' })), '403 forbidden');
  t.equal(refusalOf(await vera.post(chatPath(chat, '/messages'), { parts: [] })), '403 forbidden');
  t.equal((await (await as('anna')).patch(chatPath(chat), { title: 'Hers' })).status, 200);
  const events = async (headers: Record<string, string>) => {
    const stream = await follow(guarded.url, chatPath(chat, '/events'), { headers });
    stream.stop();
    return stream.status;
  };
  t.equal(await events(await token('vera')), 200);
  t.equal(await events(await token('mallory')), 404);
  t.equal(await events({ authorization: `Bearer ${OWNER_TOKEN}` }), 401);
  t.equal(await events({}), 401);
});
