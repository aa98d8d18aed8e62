import { setTimeout as sleep } from 'node:timers/promises';
import { isUnavailable } from '../../engine/db/errors.ts';
import { brokenInvariants } from '../../test/support/invariants.ts';
import { type ChatFacts, chatsAtRest } from './chat_checks.ts';
import { type ChatLoad, converse, createChats } from './chat_load.ts';
import { isFinal } from './chat_reader.ts';
import { broken, checkNow, type Violations } from './checks.ts';
import { type Deck, dealFaults } from './faults.ts';
import { createOwner, RefusedError } from './owner.ts';
import { chatReply } from './protocol.ts';
import type { World } from './world.ts';

const LOOK_MS = 250;

export type ChatProgress = Readonly<{ final: number; runs: number; complete: number; expired: number; events: number }>;

export type ChatRoundOptions = Readonly<{
  chats: number;
  /** Messages in each chat. */
  turns: number;
  deck: Deck;
  /** When nothing goes on for so long a chat is stuck. */
  stallMs: number;
  signal: AbortSignal;
  onProgress?: (progress: ChatProgress) => void;
}>;

export type ChatRoundReport = Readonly<{
  violations: Violations;
  counts: ReadonlyMap<string, number>;
  progress: ChatProgress;
  facts: ChatFacts;
  seconds: number;
}>;

/** Looks at the database and the readers all the time. */
function watch(world: World, options: ChatRoundOptions, final: () => number) {
  const { sql, recorder } = world;
  let progress: ChatProgress = { final: 0, runs: 0, complete: 0, expired: 0, events: 0 };
  let movedAt = performance.now();

  async function look(): Promise<void> {
    const { rows } = await sql.query<Omit<ChatProgress, 'final'>>(`select
      (select count(*)::int from app.runs) as runs,
      (select count(*)::int from app.runs where status = 'expired') as expired,
      (select count(*)::int from app.messages where role = 'assistant' and status = 'complete') as complete,
      (select coalesce(sum(revision), 0)::int from app.messages) as events`);
    const now = { ...progress, ...rows[0], final: final() };
    if (JSON.stringify(now) !== JSON.stringify(progress)) movedAt = performance.now();
    progress = now;
    options.onProgress?.(progress);
    for (const violations of [await checkNow(sql), await brokenInvariants({ owner: sql })])
      for (const [rule, rows] of Object.entries(violations)) for (const row of rows) recorder.violation(rule, row);
  }

  return {
    progress: () => progress,
    stage: () => ({ completed: final(), runs: progress.runs }),
    /** Until `work` is done, or all stands still: that is a violation. */
    async during(what: string, work: Promise<unknown>, signal: AbortSignal): Promise<void> {
      let working = true;
      const done = work.finally(() => {
        working = false;
      });
      // Awaited below; here it only must not count as unhandled meanwhile.
      done.catch(() => {});
      movedAt = performance.now();
      while (working && performance.now() - movedAt < options.stallMs) {
        await look().catch((error: unknown) => {
          if (!isUnavailable(error)) throw error;
        });
        await Promise.race([done, sleep(LOOK_MS, undefined, { signal })]);
      }
      if (working) recorder.violation(`no chat is stuck: ${what}`, progress);
      else await done;
    },
  };
}

/**
 * The last act: in the middle of replies all runtimes are gone for good. Every reply becomes final without them, when its
 * lease or its time to be started is over, and each chat takes a new message.
 */
async function withoutRuntimes(world: World, { conversations }: ChatLoad): Promise<void> {
  const asked = await Promise.all(conversations.map(async (one) => ({ one, messageId: await one.ask() })));
  await Promise.race(asked.map(({ one, messageId }) => one.reader.until(messageId, ({ text }) => text !== '')));
  world.log('the workers end for good');
  await Promise.all(world.workers.map((worker) => worker.end()));
  await Promise.all(
    asked.map(async ({ one, messageId }) => {
      await one.reader.until(messageId, isFinal);
      const next = await one.ask();
      await one.cancel(next);
      await one.reader.until(next, isFinal);
      // Whoever comes and goes sees the end of it as well.
      await one.restless.until(next, isFinal);
    }),
  );
}

/** What is held by a run that was cancelled is let go when its lease ends. */
async function untilAtRest(world: World, signal: AbortSignal): Promise<void> {
  const held = `select 1 from app.run_requests where state not in ('finished', 'cancelled') limit 1`;
  while ((await world.sql.query(held)).rows.length > 0) await sleep(LOOK_MS, undefined, { signal });
}

/** Chats and faults at the same time, then chats without anybody who replies, then the checks. */
export async function runChatRound(world: World, options: ChatRoundOptions): Promise<ChatRoundReport> {
  const { random, recorder, urls } = world;
  const startedAt = performance.now();
  const over = new AbortController();
  const signal = AbortSignal.any([options.signal, over.signal]);
  const owner = createOwner({ urls, random: random.fork('owner'), recorder, signal });
  let final = 0;
  const onFinal = () => {
    final += 1;
  };
  const watching = watch(world, options, () => final);
  const parts: Promise<unknown>[] = [];
  let load: ChatLoad | undefined;

  async function round(made: ChatLoad): Promise<void> {
    const { turns, deck, chats } = options;
    const talk = (count: number, cancels: boolean) =>
      made.conversations.map((one, index) => {
        const chance = random.fork(`converse-${index}-${count}`);
        return converse(one, { turns: count, cancels, random: chance, signal, onFinal });
      });
    // On a machine that is busy hardly a reply lives through what follows.
    const calm = talk(1, false);
    parts.push(...calm);
    await watching.during('before faults', Promise.all(calm), signal);
    const talking = talk(turns - 1, true);
    const dealing = dealFaults({
      ...{ world, random: random.fork('faults'), deck, stage: watching.stage, signal },
      tasks: turns * chats,
    });
    parts.push(...talking, dealing);
    await watching.during('under faults', Promise.all([...talking, dealing]), signal);
    const last = withoutRuntimes(world, made);
    parts.push(last);
    await watching.during('without runtimes', last, signal);
    const resting = untilAtRest(world, signal);
    parts.push(resting);
    await watching.during('at rest', resting, signal);
  }

  try {
    load = await createChats({ owner, urls, random: random.fork('load'), recorder, chats: options.chats, signal });
    parts.push(load.reading);
    await Promise.race([round(load), load.reading]);
  } catch (error) {
    if (!(error instanceof RefusedError)) throw error;
    recorder.violation('the owner is not refused what is right', error.message);
  } finally {
    // Whichever part failed, the others end before anybody takes the world apart.
    over.abort();
    await Promise.allSettled(parts);
  }
  options.signal.throwIfAborted();
  const seconds = (performance.now() - startedAt) / 1000;
  const facts = factsOf(load);
  const found = { ...(await broken(world.sql, chatsAtRest, facts)), ...(await brokenInvariants({ owner: world.sql })) };
  const violations = { ...Object.fromEntries(recorder.violations), ...found };
  return { violations, counts: recorder.counts, progress: watching.progress(), facts, seconds };
}

function factsOf(load: ChatLoad | undefined): ChatFacts {
  const sent = load?.sent ?? [];
  const readers = (load?.conversations ?? []).flatMap(({ reader, restless }) => [reader, restless]);
  return {
    sent,
    seen: readers.flatMap((reader) => reader.lastSeen()),
    replies: sent.map(({ messageId, question }) => ({ messageId, reply: chatReply(question) })),
  };
}
