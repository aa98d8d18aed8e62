import { type ChildProcess, fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type pg from 'pg';
import { pino } from 'pino';
import { z } from 'zod';
import { CHAT_CHANNEL, chatPayload } from '../../engine/db/channels.ts';
import { callWith } from '../../engine/db/function_text.ts';
import { openNotifier } from '../../engine/db/notify.ts';
import { client, type Post } from './http_lifecycle.ts';
import { percentile } from './measure.ts';
import { type BenchServer, startBenchApi } from './server.ts';
import type { Sample } from './stream_clients.ts';

/** Turns of an organization at once: its chat capacity. */
const TURNS = 20;
const LEASE_SECONDS = 3_600;
const PAGE_BYTES = 4096;
const WORDS = 'Some more words of the reply. ';

type Turn = {
  organizationId: string;
  chatId: string;
  runId: string;
  leaseToken: string;
  revision: number;
};

const claims = z.object({
  items: z.array(z.object({ runRequestId: z.string(), leaseToken: z.string(), chat: z.object({ id: z.string() }) })),
});

const writtenReply = z.object({ messageId: z.string(), revision: z.int() });

/** An organization with as many chats as it may reply in at once, each with a reply that is being written. */
async function seedTurns(db: pg.Pool, count: number): Promise<Turn[]> {
  const id = randomUUID();
  const owner = { kind: 'owner' };
  const organization = { slug: `bench-${id}`, name: 'Bench', status: 'active' };
  await callWith(db, 'organization_create', { organizationId: id, fields: organization, subject: null });
  const profile = { key: 'chat', name: 'Chat', kind: 'chat' };
  await callWith(db, 'agent_profile_create', { organizationId: id, fields: profile });
  for (let n = 0; n < count; n += 1) {
    const one = { organizationId: id, actor: owner };
    const { chat } = (await callWith(db, 'chat_create', { ...one, body: { title: `Chat ${n}` } })) as {
      chat: { id: string };
    };
    const hello = { parts: [{ kind: 'text', text: 'Hello' }] };
    await callWith(db, 'message_create', { ...one, chatId: chat.id, body: hello });
  }
  const workers = Array.from({ length: count }, () => 'bench');
  const pull = { workerIds: workers, organizationIds: [id], profileKeys: null, kinds: ['chat'], claimSeconds: 60 };
  const { items } = claims.parse(await callWith(db, 'run_requests_pull', pull));
  const turns: Turn[] = [];
  for (const { runRequestId, leaseToken, chat } of items) {
    const runId = randomUUID();
    const claim = { organizationId: id, runRequestId, leaseToken };
    await callWith(db, 'run_start', { ...claim, runId, workerId: 'bench', leaseSeconds: LEASE_SECONDS });
    turns.push({ organizationId: id, chatId: chat.id, runId, leaseToken, revision: 1 });
  }
  return turns;
}

const COLLECT = ['--import', new URL('./collect.ts', import.meta.url).href];

function start(file: string): ChildProcess {
  const stdio = ['ignore', 'ignore', 'inherit', 'ipc'] as const;
  return fork(fileURLToPath(new URL(file, import.meta.url)), [], { stdio: [...stdio], execArgv: COLLECT });
}

const COLLECT_MS = 500;

/** What a process holds, without its garbage. */
async function held(pid: number): Promise<number> {
  for (let round = 0; round < 2; round += 1) {
    process.kill(pid, 'SIGUSR2');
    await sleep(COLLECT_MS);
  }
  const pages = Number((await readFile(`/proc/${pid}/statm`, 'utf8')).split(' ')[1]);
  return pages * PAGE_BYTES;
}

async function ask<T>(child: ChildProcess, question: object): Promise<T> {
  const received = once(child, 'message');
  child.send(question);
  const [response] = (await received) as [T & { error?: string }];
  if (response.error) throw new Error(response.error);
  return response;
}

async function stop(child: ChildProcess): Promise<void> {
  child.disconnect();
  await once(child, 'exit');
}

export type StreamOptions = Readonly<{ streams: number; perSecond: number; seconds: number }>;

export type StreamRow = Readonly<{
  streams: number;
  kibibytes: number;
  received: number;
  /** Milliseconds from the write, inside of its transaction, to the client. */
  p50: number;
  p99: number;
  /** The same from the commit; undefined where the writer does not know when that was. */
  committed: Readonly<{ p50: number; p99: number }> | undefined;
  /** Milliseconds on a processor of the server's main thread for one revision: other work beside it changes that less. */
  processor: number;
  /** The same percentile of the responses to writers: what the database and HTTP take with no stream about it. */
  written99: number;
}>;

type Subject = Readonly<{
  urls: readonly string[];
  /** The process that serves them. */
  pid: number;
  /** Makes revisions for so long. */
  revise(seconds: number): Promise<Written>;
}>;

/** The milliseconds that each write took, and when it had committed, since 1970, by its event id: where that is known. */
type Written = Readonly<{ took: readonly number[]; committed: ReadonlyMap<string, number> }>;

const NOTHING_WRITTEN: Written = { took: [], committed: new Map() };

/** Milliseconds that the main thread of a process was on a processor. */
async function processorTime(pid: number): Promise<number> {
  return Number((await readFile(`/proc/${pid}/schedstat`, 'utf8')).split(' ')[0]) / 1e6;
}

const SETTLE_MS = 2_000;
/** A connection compiles and plans each function when it first calls it: that is not what is measured. */
const WARM_UP_SECONDS = 5;

/** Memory a stream and the time to the client, of whatever serves the streams. */
async function measure(subject: Subject, options: StreamOptions): Promise<StreamRow> {
  const readers = start('./stream_clients.ts');
  // What a process allocates once, or for as much as comes at a time, it allocates for these: a tenth of them each time.
  const tenth = Math.ceil(subject.urls.length / 10);
  for (let from = 0; from < subject.urls.length; from += tenth) {
    await ask(readers, { follow: subject.urls.slice(from, from + tenth) });
    await ask(readers, { drop: true });
  }
  await sleep(SETTLE_MS);
  const before = await held(subject.pid);
  await ask(readers, { follow: subject.urls });
  await sleep(SETTLE_MS);
  const kibibytes = (await held(subject.pid)) - before;
  await subject.revise(WARM_UP_SECONDS);
  await sleep(SETTLE_MS);
  await ask(readers, { samples: true });
  const processor = await processorTime(subject.pid);
  const written = await subject.revise(options.seconds);
  await sleep(500);
  const used = (await processorTime(subject.pid)) - processor;
  const { samples } = await ask<{ samples: Sample[] }>(readers, { samples: true });
  await ask(readers, { drop: true });
  await stop(readers);
  const sinceWrite = samples.map(({ at, written: begun }) => at - begun);
  const sinceCommit = samples
    .flatMap(({ id, at }) => at - (written.committed.get(id) ?? Number.NaN))
    .filter((ms) => !Number.isNaN(ms));
  return {
    streams: subject.urls.length,
    kibibytes: kibibytes / 1024 / subject.urls.length,
    received: samples.length,
    p50: percentile(sinceWrite, 0.5),
    p99: percentile(sinceWrite, 0.99),
    committed:
      sinceCommit.length > 0 ? { p50: percentile(sinceCommit, 0.5), p99: percentile(sinceCommit, 0.99) } : undefined,
    processor: used / samples.length,
    written99: percentile(written.took, 0.99),
  };
}

type Write = (turn: Turn) => Promise<void>;

/** Through the API process that has the streams, as a runtime does. */
function writeOverHttp(post: Post): Write {
  return async (turn) => {
    const { organizationId, leaseToken, runId, revision } = turn;
    turn.revision += 1;
    const body = { organizationId, leaseToken, baseRevision: revision, append: WORDS };
    const { status, body: response } = await post(`/internal/runs/${runId}/message`, body);
    if (status !== 200) throw new Error(`${status}: ${JSON.stringify(response)}`);
  };
}

/** As another process does: it knows when it has committed, and then notifies. */
function writeBySql(db: pg.Pool, notify: (payload: string) => void, committed: Map<string, number>): Write {
  return async (turn) => {
    const { organizationId, leaseToken, runId, revision, chatId } = turn;
    turn.revision += 1;
    const words = { baseRevision: revision, parts: null, append: WORDS };
    const result = await callWith(db, 'run_message_write', { organizationId, runId, leaseToken, ...words });
    const written = writtenReply.parse(result);
    committed.set(`${written.messageId}:${written.revision}`, performance.timeOrigin + performance.now());
    notify(chatPayload(organizationId, chatId));
  };
}

/**
 * So many writes a second, each to another turn; one that is slow does not hold up the next.
 * @returns the milliseconds that each took
 */
async function writeRevisions(
  write: Write,
  turns: readonly Turn[],
  { perSecond, seconds }: StreamOptions,
): Promise<readonly number[]> {
  const began = performance.now();
  const writes: Promise<number>[] = [];
  const total = perSecond * seconds;
  const timed = async (turn: Turn) => {
    const start = performance.now();
    await write(turn);
    return performance.now() - start;
  };
  for (let n = 0; n < total; n += 1) {
    const due = began + (n * 1000) / perSecond;
    const waitMs = due - performance.now();
    if (waitMs > 0) await sleep(waitMs);
    writes.push(timed(turns[n % turns.length] as Turn));
  }
  return Promise.all(writes);
}

async function reviseOverHttp(url: string, turns: readonly Turn[], options: StreamOptions): Promise<Written> {
  const { post, close } = client(url, 64);
  const took = await writeRevisions(writeOverHttp(post), turns, options);
  close();
  return { took, committed: new Map() };
}

async function reviseBySql(
  server: BenchServer,
  db: pg.Pool,
  turns: readonly Turn[],
  options: StreamOptions,
): Promise<Written> {
  const notifier = openNotifier({ url: server.url, log: pino({ level: 'silent' }) });
  const committed = new Map<string, number>();
  const write = writeBySql(db, (payload) => notifier.mark(CHAT_CHANNEL, payload), committed);
  const took = await writeRevisions(write, turns, options);
  await notifier.close();
  return { took, committed };
}

/**
 * Open event streams of one API process, each of a chat of its own, and revisions written over HTTP to the same process, or by
 * SQL from another one, which knows when each was committed.
 */
export async function measureStreams(
  server: BenchServer,
  db: pg.Pool,
  writers: 'http' | 'sql',
  options: StreamOptions,
): Promise<StreamRow> {
  const turns: Turn[] = [];
  while (turns.length < options.streams) {
    turns.push(...(await seedTurns(db, Math.min(TURNS, options.streams - turns.length))));
  }
  await db.query('vacuum analyze');
  const api = await startBenchApi(server, 16, COLLECT);
  const subject: Subject = {
    urls: turns.map((turn) => `${api.url}/organizations/${turn.organizationId}/chats/${turn.chatId}/events`),
    pid: api.pid,
    revise: (seconds) =>
      writers === 'http'
        ? reviseOverHttp(api.url, turns, { ...options, seconds })
        : reviseBySql(server, db, turns, { ...options, seconds }),
  };
  const row = await measure(subject, options);
  await api.stop();
  return row;
}

/** The same number of streams of a bare server in Node, which stamps and writes by itself. */
export async function measureBareStreams(options: StreamOptions): Promise<StreamRow> {
  const server = start('./bare_sse.ts');
  const [{ url }] = (await once(server, 'message')) as [{ url: string }];
  const subject: Subject = {
    urls: Array.from({ length: options.streams }, () => url),
    pid: server.pid ?? 0,
    async revise(seconds) {
      server.send({ everyMs: 1000 / options.perSecond });
      await sleep(seconds * 1000);
      return NOTHING_WRITTEN;
    },
  };
  const row = await measure(subject, options);
  await stop(server);
  return row;
}
