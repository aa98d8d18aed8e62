import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { functionText } from '../../engine/db/function_text.ts';
import { percentile } from './measure.ts';

const PER_CHAT = 20;
const BATCH = 1_000;
const SYLLABLES = 'ka ro mi ten sol var li que der an sta po fel gri mon tu ex ber cha ny'.split(' ');
const WORDS = 4_000;
const FIRST_PAGE = functionText('chats_search', {
  organizationId: '$1',
  search: '$2',
  status: 'null',
  lastMessageAtUs: 'null',
  id: 'null',
  inclusive: 'false',
  backward: 'false',
  limit: '51',
});

/** The same numbers in every run. */
function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

function vocabulary(random: () => number): readonly string[] {
  const syllable = () => SYLLABLES[Math.floor(random() * SYLLABLES.length)] ?? '';
  return Array.from({ length: WORDS }, () => syllable() + syllable() + (random() < 0.6 ? syllable() : ''));
}

/** About 320 characters, few words often and many seldom; `invoice` in half of them, `quarterly` in one of a hundred. */
function messageText(words: readonly string[], random: () => number, n: number, count: number): string {
  const picked = Array.from({ length: 45 }, () => words[Math.floor(random() ** 3 * WORDS)] ?? '');
  if (random() < 0.5) picked.push('Invoice');
  if (random() < 0.01) picked.push('quarterly');
  if (n % Math.ceil(count / 5) === 0) picked.push('Xylophone 日本');
  // Nowhere among the latest half of the chats, and in every message of the others.
  if (n < count / 2) picked.push('bygone');
  return picked.join(' ');
}

/** Chats of 20 messages each, as rows; the last ones are the latest. */
export async function seedMessages(db: pg.Pool, organizationId: string, count: number): Promise<void> {
  const random = numbers(7);
  const words = vocabulary(random);
  for (let from = 0; from < count; from += BATCH) {
    const texts = Array.from({ length: Math.min(BATCH, count - from) }, (_, index) =>
      messageText(words, random, from + index, count),
    );
    const chats = Array.from({ length: Math.ceil(texts.length / PER_CHAT) }, () => randomUUID());
    await db.query(
      `insert into app.chats (organization_id, id, title, last_message_at)
        select $1, c.id, 'Chat ' || ($4::int / ${PER_CHAT} + c.n), timestamptz '2026-01-01' + ($4::int + c.n * ${PER_CHAT}) * interval '1 second'
        from unnest($2::uuid[]) with ordinality c(id, n) cross join (select $3::text[]) t`,
      [organizationId, chats, texts, from],
    );
    await db.query(
      `insert into app.messages (organization_id, chat_id, role, status, parts, search_text, completed_at, created_at, updated_at)
        select $1, ($2::uuid[])[1 + (t.n - 1) / ${PER_CHAT}], 'user', 'complete',
          jsonb_build_array(jsonb_build_object('id', t.n::text, 'kind', 'text', 'text', t.text)), app.search_fold(t.text),
          now(), timestamptz '2026-01-01' + ($4::int + t.n) * interval '1 second', now()
        from unnest($3::text[]) with ordinality t(text, n)`,
      [organizationId, chats, texts, from],
    );
  }
}

/** What is searched, and how often it is there. */
export const SEARCHES = {
  'a rare word': 'xylophone',
  'a word in 1 %': 'QUARTERLY',
  'a word in 50 %': 'invoice',
  'a word of older chats alone': 'bygone',
  'a word that is nowhere': 'zzyzzyva',
  'one character': 'a',
  'two characters': 'ex',
  'two rare characters': '日本',
  'two characters that are nowhere': 'qj',
  'a character of like': '%',
} as const;

export type SearchTime = Readonly<{ name: string; found: number; p50: number; max: number }>;

/** The time of a first page of 50, by what is searched, on a connection that has searched before. */
export async function measureSearch(db: pg.Pool, organizationId: string, rounds: number): Promise<SearchTime[]> {
  const client = await db.connect();
  const times: SearchTime[] = [];
  try {
    for (const [name, text] of Object.entries(SEARCHES)) {
      const samples: number[] = [];
      let found = 0;
      for (let round = 0; round < rounds + 2; round += 1) {
        const started = performance.now();
        const { rows } = await client.query(`select id from ${FIRST_PAGE}`, [organizationId, text]);
        if (round >= 2) samples.push(performance.now() - started);
        found = rows.length;
      }
      times.push({ name, found, p50: percentile(samples, 0.5), max: Math.max(...samples) });
    }
  } finally {
    client.release();
  }
  return times;
}
