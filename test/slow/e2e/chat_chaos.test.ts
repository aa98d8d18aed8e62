import type pg from 'pg';
import t from 'tap';
import { chatsAtRest } from '../../../scripts/chaos/chat_checks.ts';
import { runChatRound } from '../../../scripts/chaos/chat_round.ts';
import { broken, type Queries, type Violations } from '../../../scripts/chaos/checks.ts';
import type { Deck, FaultName } from '../../../scripts/chaos/faults.ts';
import { startWorld } from '../../../scripts/chaos/world.ts';

const CHATS = 4;
const TURNS = 3;
const STALL_MS = 120_000;
// Where the machine has much else to do, leases of two seconds are lost by the dozen.
t.setTimeout(600_000);

const deck: Deck = {
  'worker killed': 2,
  'worker paused': 1,
  'api killed': 1,
  'every api killed': 1,
  'jobs killed': 1,
  'connections cut': 1,
  'postgres restarted, immediate': 1,
  'postgres restarted, fast': 1,
};

const aReply = `(select m.id from app.messages m where m.status = 'complete' and m.role = 'assistant' order by m.id limit 1)`;
/** What must be found, and how it comes into a world in which nothing is broken. */
const planted: Readonly<Record<string, string>> = {
  'every reply is final': `update app.messages set status = 'pending', completed_at = null, search_text = null
    where id = ${aReply}`,
  'an accepted message is kept, exactly once, and no other': `update app.messages set parts = '[]'
    where id = (select reply_to_message_id from app.messages where id = ${aReply})`,
  'a turn is started at most once': `update app.run_requests set attempt = 2 where message_id = ${aReply}`,
  'a reply is complete exactly when its run has succeeded': `update app.runs set status = 'failed'
    where message_id = ${aReply}`,
  'a reply that failed says why, and others have nothing to say': `update app.messages set status = 'failed',
    error = '{"code": "other", "message": "", "retryable": true}' where id = ${aReply}`,
  'what was written stands there once, and whole where it is complete': `update app.messages
    set parts = jsonb_set(parts, '{0,text}', to_jsonb((parts #>> '{0,text}') || 'word')) where id = ${aReply}`,
  'the last that a reader saw of a message is its last revision': `update app.messages set revision = revision + 1
    where id = ${aReply}`,
};

/** What `look` finds while a change is there, which is then undone. */
async function withPlanted(sql: pg.Pool, text: string, look: (sql: Queries) => Promise<Violations>) {
  const client = await sql.connect();
  try {
    await client.query('begin');
    await client.query('set local session_replication_role = replica');
    const { rowCount } = await client.query(text);
    if (!rowCount) throw new Error(`nothing was planted by ${text}`);
    return await look(client as Queries);
  } finally {
    await client.query('rollback');
    client.release();
  }
}

t.test('no chat is stuck by kills, pauses and restarts of every part', async (t) => {
  const stopping = new AbortController();
  const { signal } = stopping;
  const world = await startWorld({
    ...{ seed: 'npm test', durable: false, apis: 2, jobs: 1, signal },
    workers: { chat: 3 },
  });
  t.teardown(async () => {
    stopping.abort();
    await world.stop({ keep: !t.passing() });
  });
  const round = { chats: CHATS, turns: TURNS, deck, stallMs: STALL_MS, signal };
  const { violations, counts, progress, facts, seconds } = await runChatRound(world, round);
  t.comment(
    `${progress.runs} turns, of them ${progress.complete} complete and ${progress.expired} expired, in ${seconds.toFixed(1)} s`,
  );
  t.same(violations, {}, `nothing is broken (if it is, the logs are in ${world.folder})`);
  t.equal(progress.final, CHATS * TURNS);
  t.equal(facts.sent.length, CHATS * (TURNS + 2));
  t.ok(progress.complete > 0, 'some replies came through');
  for (const [name, count] of Object.entries(deck)) {
    t.equal(counts.get(name as FaultName), count, `${name}: ${count}`);
  }

  await t.test('each rule finds what breaks it', async (t) => {
    for (const [rule, text] of Object.entries(planted)) {
      t.hasProp(await withPlanted(world.sql, text, (sql) => broken(sql, chatsAtRest, facts)), rule, rule);
    }
  });
});
