import t from 'tap';
import type { Chat } from '../../../api/chats/schema.ts';
import { expectSuccess, ownerPath, refusalOf } from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { replyWith, runtimeOf, startTurn } from '../chat_turns/turns.ts';
import { ask, chatPath, createChat, createChatOrganization, patchChat } from './support.ts';

const app = await startTestApp(t);
const org = await createChatOrganization(app);
const other = await createChatOrganization(app);

type Query = Readonly<Record<string, string | number | undefined>>;
const find = (search: string, query: Query = {}) =>
  app.owner.get<Chat[]>(ownerPath(org, '/chats'), { query: { search, ...query } });
const titles = async (search: string, query?: Query) =>
  expectSuccess(await find(search, query)).map((chat) => chat.title);

t.test('search finds titles, questions and replies, whatever the case, and no character is special', async (t) => {
  const sales = await createChat(app, org, 'Sales of 100% OFF_season');
  await ask(app, sales, 'What did STRASSE sell?');
  await replyWith(app, org, [
    { kind: 'text', text: 'Über 5_000 €\nC:\\temp' },
    { kind: 'question', question: 'Hidden kiwi?', options: ['yes'] },
  ]);
  const fruit = await createChat(app, org, 'Früchte 日本');
  await ask(app, fruit, 'Kiwi or plum?');
  await createChat(app, other, 'Kiwi of others');
  const cases: readonly (readonly [string, readonly string[]])[] = [
    ['SALES', [sales.title]],
    ['strasse', [sales.title]],
    ['ÜBER', [sales.title]],
    ['früchte', [fruit.title]],
    ['日', [fruit.title]],
    ['本', [fruit.title]],
    ['kiwi', [fruit.title]],
    ['100%', [sales.title]],
    ['%', [sales.title]],
    ['f_s', [sales.title]],
    ['5_000', [sales.title]],
    ['F.S', []],
    ['\\', [sales.title]],
    ['\\t', [sales.title]],
    ["'", []],
    ['s', [sales.title]],
    ['nowhere', []],
  ];
  for (const [search, expected] of cases) t.same(await titles(search), expected, search);
  const turn = runtimeOf(app, await startTurn(app, org));
  expectSuccess(await turn.append(1, 'Pomegranate'));
  t.same(await titles('pomegranate'), [], 'a reply is found when it is there');
  expectSuccess(await turn.complete());
  t.same(await titles('pomegranate'), [fruit.title]);
});

t.test('results come in pages, both ways, and keep to a status', async (t) => {
  const chats: Chat[] = [];
  for (let n = 0; n < 5; n += 1) chats.unshift(await createChat(app, org, `Paged ${n}`));
  expectSuccess(await patchChat(app, chats[2] as Chat, { status: 'archived' }));
  const all = chats.map((chat) => chat.title);
  const first = await find('paged', { limit: 2 });
  const second = await find('paged', { limit: 2, cursor: first.body.pagination.nextCursor ?? '' });
  const third = await find('paged', { limit: 2, cursor: second.body.pagination.nextCursor ?? '' });
  t.same(
    [first, second, third].flatMap((page) => page.data.map((chat) => chat.title)),
    all,
  );
  t.equal(third.body.pagination.nextCursor, null);
  const back = await find('paged', { limit: 2, cursor: third.body.pagination.previousCursor ?? '' });
  t.same(
    back.data.map((chat) => chat.title),
    all.slice(2, 4),
  );
  t.same(await titles('paged', { status: 'archived' }), [all[2]]);
  t.equal((await titles('paged', { status: 'open' })).length, 4);
  const elsewhere = await find('pag', { limit: 2, cursor: first.body.pagination.nextCursor ?? '' });
  t.equal(refusalOf(elsewhere), '400 validation_failed invalid_cursor');
  expectSuccess(await app.owner.delete(chatPath(chats[0] as Chat)));
});
