import { randomUUID } from 'node:crypto';
import pg from 'pg';
import t from 'tap';
import { z } from 'zod';
import { functionText } from '../../../engine/db/function_text.ts';
import {
  claimTurn,
  completeTurn,
  createChat,
  createChatOrganization,
  exchange,
  send,
  startTurn,
  text,
  updateChat,
  write,
} from '../../support/chat_fixtures.ts';
import type { TestOrganization } from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSql, transition } from '../../support/transitions.ts';

const sql = await openSql(t);
const SEARCH = functionText('chats_search', {
  organizationId: '$1',
  search: '$2',
  status: '$3',
  lastMessageAtUs: '$4',
  id: '$5',
  inclusive: '$6',
  backward: '$7',
  limit: '$8',
});
const scenario = scenarios(t, sql);

const rowSchema = z.object({ id: z.string(), title: z.string(), at: z.string() });
type Row = z.output<typeof rowSchema>;
type Fields = Readonly<{ status?: string; from?: Row; inclusive?: boolean; backward?: boolean; limit?: number }>;

async function search(
  org: Pick<TestOrganization, 'organizationId'>,
  words: string,
  fields: Fields = {},
): Promise<Row[]> {
  const { rows } = await sql.api.query(
    `select id, title, (extract(epoch from last_message_at) * 1000000)::bigint::text as at
     from ${SEARCH}`,
    [
      org.organizationId,
      words,
      fields.status ?? null,
      fields.from?.at ?? null,
      fields.from?.id ?? null,
      fields.inclusive ?? false,
      fields.backward ?? false,
      fields.limit ?? 100,
    ],
  );
  return z.array(rowSchema).parse(rows);
}

const titles = (rows: readonly Row[]) => rows.map(({ title }) => title);

scenario('titles and visible text are searched, whatever their case, latest message first', async (test) => {
  const org = await createChatOrganization(sql);
  const inTitle = await createChat(sql, org, { title: 'ÄRGER with shoes' });
  const inMessage = await createChat(sql, org, { title: 'second' });
  await exchange(sql, org, inMessage.id, [text('All is well')], { parts: [text('My ärger'), text('about Hats')] });
  const inReply = await createChat(sql, org, { title: 'third' });
  const parts = [text('No Ärger here'), { kind: 'question', question: 'gloves?', options: ['gloves'] }];
  await exchange(sql, org, inReply.id, parts);
  test.same(titles(await search(org, 'ärger')), ['third', 'second', 'ÄRGER with shoes']);
  test.same(titles(await search(org, 'HATS')), ['second']);
  test.same(titles(await search(org, 'shoes')), ['ÄRGER with shoes']);
  test.same(titles(await search(org, 'gloves')), [], 'only text parts are searched');
  await updateChat(sql.api, org, inTitle.id, { status: 'archived' });
  test.same(titles(await search(org, 'ärger', { status: 'open' })), ['third', 'second']);
  test.same(titles(await search(org, 'ärger', { status: 'archived' })), ['ÄRGER with shoes']);
});

scenario('no character is special, and one is enough', async (test) => {
  const org = await createChatOrganization(sql);
  for (const [title, words] of Object.entries({
    percent: '100% sure',
    underscore: 'snake_case',
    backslash: String.raw`C:\temp`,
    kanji: '東京へ行く',
    plain: '100 sure snakecase',
  })) {
    await exchange(sql, org, (await createChat(sql, org, { title })).id, [text('ok')], { parts: [text(words)] });
  }
  const found = async (words: string) => titles(await search(org, words));
  test.same(await found('100%'), ['percent']);
  test.same(await found('%'), ['percent']);
  test.same(await found('_'), ['underscore']);
  test.same(await found('e_c'), ['underscore']);
  test.same(await found('\\'), ['backslash']);
  test.same(await found(String.raw`:\t`), ['backslash']);
  test.same(await found('東京'), ['kanji']);
  test.same(await found('行'), ['kanji']);
  test.same(await found('東京へ行'), ['kanji']);
  test.same(await found('京東'), []);
  test.same(await found(`' or true --`), []);
});

scenario('a reply is found once it is final', async (test) => {
  const org = await createChatOrganization(sql);
  const chat = await createChat(sql, org);
  await send(sql.api, org, chat.id);
  const turn = await startTurn(sql.api, await claimTurn(sql, org));
  await write(sql.api, turn, 1, { append: 'pelican' });
  test.same(await search(org, 'pelican'), []);
  await completeTurn(sql.api, turn, { parts: [text('A pelican indeed')] });
  test.equal((await search(org, 'pelican')).length, 1);
});

scenario('nothing of another, a deleted or an unknown organization is found', async (test) => {
  const [org, other] = [await createChatOrganization(sql), await createChatOrganization(sql)];
  await createChat(sql, org, { title: 'ostrich' });
  test.same(await search(other, 'ostrich'), []);
  test.same(await search({ organizationId: randomUUID() }, 'ostrich'), []);
  await transition(sql.api, 'organization_delete', { organizationId: org.organizationId });
  test.same(await search(org, 'ostrich'), []);
});

/**
 * Chats as rows, more than a walk reads: `common` everywhere, `older` in the older half, `rare` in one old chat; of `abcd` and
 * `efgh` the pairs everywhere, the words in two chats and in the older half. In pieces of long messages: `beyond` in every third
 * chat, `hidden` in two old ones, of `ijkl` the pairs in every piece and the word in one, `長い` and `mno pqr` in one, beside the other pairs of `mno-pqr`.
 */
async function manyChats(org: TestOrganization): Promise<void> {
  await sql.owner.query(
    `insert into app.chats (organization_id, title, last_message_at)
     select $1, 'chat ' || n, timestamptz '2026-01-01' + n * interval '1 minute' from generate_series(1, 100) n`,
    [org.organizationId],
  );
  await sql.owner.query(
    `insert into app.messages (organization_id, chat_id, role, status, parts, search_text, completed_at, created_at, updated_at)
     select c.organization_id, c.id, 'user', 'complete', '[]', 'common ab bc cd ef fg gh'
         || case when c.last_message_at < '2026-01-01 00:50Z' then ' older efgh' else '' end
         || case when c.title in ('chat 3', 'chat 70') and m.n = 1 then ' rare abcd' else '' end,
       now(), c.last_message_at + m.n * interval '1 second', now()
     from app.chats c cross join generate_series(1, 70) m(n) where c.organization_id = $1`,
    [org.organizationId],
  );
  await sql.owner.query(
    `insert into app.message_chunks (organization_id, message_id, number, chat_id, search_text)
     select c.organization_id, m.id, n.n, c.id, 'ij jk kl'
         || case when right(c.title, 1) in ('3', '6', '9') then ' beyond' else '' end
         || case when c.title in ('chat 2', 'chat 5') and n.n = 2 then ' hidden' else '' end
         || case when c.title = 'chat 4' and n.n = 3 then ' ijkl 長い mno pqr o- -p' else '' end
     from app.chats c
     cross join lateral (
       select m.id from app.messages m where m.organization_id = c.organization_id and m.chat_id = c.id limit 1) m
     cross join generate_series(1, case c.title when 'chat 50' then 50 else 3 end) n(n)
     where c.organization_id = $1`,
    [org.organizationId],
  );
}

scenario('the walk and the index find the same, page by page in both directions', async (test) => {
  const org = await createChatOrganization(sql);
  await manyChats(org);
  // One chat alone is longer than the walk reads of it; what is searched is in its first message.
  const long = await createChat(sql, org, { title: 'long' });
  await sql.owner.query(
    `insert into app.messages (organization_id, chat_id, role, status, parts, search_text, completed_at, created_at, updated_at)
     select $1, $2, 'user', 'complete', '[]', case n when 1 then 'rare older' else 'x' end, now(), now() + n * interval '1 s', now()
     from generate_series(1, 600) n`,
    [org.organizationId, long.id],
  );
  await sql.owner.query('analyze app.messages, app.message_chunks');
  for (const words of [
    'beyond',
    'hidden',
    'ijkl',
    '長い',
    '長',
    'い長',
    'ij jk',
    'mno pqr',
    'mno-pqr',
    'common',
    'older',
    'rare',
    'abcd',
    'efgh',
    'abcd older',
    'chat 7',
    'ra',
    'old',
    'zz',
    'e',
    ' o',
    'nowhere',
  ]) {
    const { rows } = await sql.owner.query(
      `select c.title from app.chats c where c.organization_id = $1 and (strpos(c.title, $2) > 0 or exists (
         select from app.messages m where m.organization_id = $1 and m.chat_id = c.id and strpos(m.search_text, $2) > 0)
         or exists (
         select from app.message_chunks m where m.organization_id = $1 and m.chat_id = c.id and strpos(m.search_text, $2) > 0))
       order by c.last_message_at desc, c.id desc`,
      [org.organizationId, words],
    );
    const expected = rows.map(({ title }) => title);
    test.same(titles(await search(org, words, { limit: 1000 })), expected, words);
    const paged: Row[] = [];
    for (;;) {
      const from = paged.at(-1);
      const page = await search(org, words, { limit: 7, ...(from ? { from } : {}) });
      paged.push(...page);
      if (page.length < 7) break;
    }
    test.same(titles(paged), expected, `${words}, forwards`);
    const last = paged.at(-1);
    if (!last) continue;
    const back = await search(org, words, { from: last, backward: true, limit: 1000 });
    test.same(titles(back).toReversed(), expected.slice(0, -1), `${words}, backwards`);
    const inclusive = await search(org, words, { from: last, inclusive: true });
    test.same(titles(inclusive), expected.slice(-1), `${words}, at`);
  }
});

scenario(
  'what chats of the same ids hold in another organization is not found, by the walk and by the index',
  async (test) => {
    const [org, other] = [await createChatOrganization(sql), await createChatOrganization(sql)];
    await manyChats(org);
    const copies = [
      `insert into app.chats (organization_id, id, title, last_message_at)
     select $2, id, 'foreign', last_message_at from app.chats where organization_id = $1`,
      `insert into app.messages (organization_id, id, chat_id, role, status, parts, search_text, completed_at, created_at, updated_at)
     select $2, id, chat_id, role, status, parts, 'foreign', completed_at, created_at, updated_at
     from app.messages where organization_id = $1`,
      `insert into app.message_chunks (organization_id, message_id, number, chat_id, search_text)
     select $2, message_id, number, chat_id, 'foreign ij jk kl ma an' || case when row_number() over () < 9 then ' man' else '' end
     from app.message_chunks where organization_id = $1`,
    ];
    for (const copy of copies) await sql.owner.query(copy, [org.organizationId, other.organizationId]);
    // Our pieces have the pairs alone.
    await sql.owner.query(
      `update app.message_chunks set search_text = search_text || ' ma an' where organization_id = $1`,
      [org.organizationId],
    );
    const words = ['foreign', 'man', 'an'];
    const found = async (from: TestOrganization) => {
      const counts: number[] = [];
      for (const word of words) counts.push((await search(from, word, { limit: 1000 })).length);
      return counts;
    };
    test.same(await found(org), [0, 0, 100]);
    const [, men = 0] = await found(other);
    test.ok(men > 0 && men < 9);
    const long = await createChat(sql, org, { title: 'long' });
    await sql.owner.query(
      `insert into app.messages (organization_id, chat_id, role, status, parts, search_text, completed_at, created_at, updated_at)
     select $1, $2, 'user', 'complete', '[]', 'x', now(), now() + n * interval '1 s', now() from generate_series(1, 600) n`,
      [org.organizationId, long.id],
    );
    test.same(await found(org), [0, 0, 100], 'where the walk leaves off at once');
  },
);

scenario('text is found however it was typed, in titles and in messages', async (test) => {
  const org = await createChatOrganization(sql);
  const forms = {
    'a sigma at the end': ['ΟΔΟΣ', 'οδός'.normalize('NFD').replace('\u0301', ''), 'οδοσ', 'οδος'],
    'a mark of its own': ['Café'.normalize('NFC'), 'CAFÉ'.normalize('NFD'), 'cafe\u0301'],
    'a sharp s': ['Straße', 'STRASSE', 'strasse', 'STRAẞE'],
    'a dotted capital i': ['İstanbul', 'istanbul', 'ISTANBUL', 'I\u0307stanbul'],
    'wide and joined letters': ['ＡＢＣ ﬁle', 'abc file'],
    Cyrillic: ['ЖУРНАЛ', 'журнал'],
    'half-width kana': ['ｶﾞｲﾄﾞ', 'ガイド'],
    'a letter that composes when small': ['J\u030c!', 'ǰ!'],
  };
  for (const [what, texts] of Object.entries(forms)) {
    for (const written of texts) {
      const titled = await createChat(sql, org, { title: `x${written}x` });
      const said = await createChat(sql, org, { title: 'said' });
      await exchange(sql, org, said.id, [text('ok')], { parts: [text(`y${written}y`)] });
      for (const words of texts) {
        const found = (await search(org, words)).map(({ id }) => id);
        test.ok(found.includes(titled.id) && found.includes(said.id), `${what}: ${words}`);
        const around = await search(org, `x${words}x`);
        test.ok(
          around.some(({ id }) => id === titled.id),
          `${what}, inside: ${words}`,
        );
      }
    }
  }
});

const LETTERS = /[\u00c0-\u058f\u1e00-\u1fff]/;

t.test('the fold agrees with Unicode, also where the database knows the case of ASCII alone', async (test) => {
  const capitals: string[] = [];
  for (let code = 0xc0; code < 0x2000; code += 1) {
    const letter = String.fromCodePoint(code);
    if (LETTERS.test(letter) && letter.toLowerCase() !== letter && letter !== 'İ' && letter !== 'ẞ')
      capitals.push(letter);
  }
  const small = (text: string) => text.normalize('NFKC').toLowerCase().replaceAll('ς', 'σ').normalize('NFKC');
  const ask = `select letter, app.search_fold(letter) as folded from unnest($1::text[]) letter`;
  const wrong = (rows: readonly { letter: string; folded: string }[]) =>
    rows.filter(({ letter, folded }) => folded !== small(letter));
  test.ok(capitals.length > 600);
  test.same(wrong((await sql.owner.query(ask, [capitals])).rows), []);
  const { rows: functions } = await sql.owner.query(
    `select pg_get_functiondef(oid) as definition from pg_proc where oid = 'app.search_fold'::regproc`,
  );
  const other = `fold_${randomUUID().replaceAll('-', '')}`;
  await sql.owner.query(
    `create database ${other} template template0 encoding 'UTF8' locale_provider libc lc_collate 'C' lc_ctype 'C'`,
  );
  const url = new URL(sql.url);
  url.pathname = `/${other}`;
  const client = new pg.Client({ connectionString: url.href });
  try {
    await client.connect();
    await client.query('create schema app');
    await client.query(functions[0].definition);
    test.same(wrong((await client.query(ask, [capitals])).rows), []);
  } finally {
    await client.end();
    await sql.owner.query(`drop database ${other}`);
  }
});
