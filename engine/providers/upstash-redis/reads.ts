import { z } from 'zod';
import { CursorError, type ReadCall, type ReadResult, toolsOf } from '../tool.ts';
import { index, inScope, key, keys, name } from './arguments.ts';
import { type Credential, run, type Settings } from './database.ts';

const { read } = toolsOf<Credential, Settings>();
type Call<A> = ReadCall<A, Credential, Settings>;

const text = z.string();
const count = z.int();
const list = z.array(text);

const about = (command: string, title: string, description: string) => ({
  key: `upstash_redis.${command}`,
  title,
  description,
  check: inScope,
});

/** `[a, 1, b, 2]` as pairs. */
function* pairs(flat: readonly string[]): Generator<readonly [string, string]> {
  for (let at = 0; at + 1 < flat.length; at += 2) yield [flat[at] ?? '', flat[at + 1] ?? ''];
}

const PAGE = 200;
type Range = Readonly<{ key: string; start: number; stop: number }>;

/** A part of a list, a page at a time: the cursor is where the next one begins. */
async function range<T>(
  call: Call<Range>,
  command: readonly [name: string, ...flags: string[]],
  items: (flat: readonly string[]) => T[],
): Promise<ReadResult> {
  const { args, cursor } = call;
  if (cursor !== undefined && !/^\d{1,10}$/.test(cursor)) throw new CursorError();
  const start = cursor === undefined ? args.start : Number(cursor);
  if (cursor !== undefined && (start <= args.start || start > args.stop)) throw new CursorError();
  const stop = Math.min(args.stop, start + PAGE - 1);
  const [named, ...flags] = command;
  const data = items(await run(call, 'read', [named, args.key, start, stop, ...flags], list));
  const isLast = data.length < PAGE || stop >= args.stop;
  return { data, nextCursor: isLast ? null : String(stop + 1) };
}

const MAX_SCANS = 10;
const scanned = z.tuple([z.string().regex(/^\d{1,20}$/), list]);
/** What means something else in a pattern. */
const escaped = (prefix: string) => prefix.replace(/[\\*?[\]^-]/g, '\\$&');

type Scan = Readonly<{ prefix: string; count?: number | undefined }>;

/** A few steps of a scan: one alone often finds nothing where there are many other keys. */
async function scan(call: Call<Scan>): Promise<ReadResult> {
  const { prefix, count: step = PAGE } = call.args;
  let { cursor = '0' } = call;
  if (call.cursor !== undefined && !/^[1-9]\d{0,19}$/.test(cursor)) throw new CursorError();
  const found = new Set<string>();
  for (let scans = 0; scans < MAX_SCANS; scans += 1) {
    const command = ['SCAN', cursor, 'MATCH', `${escaped(prefix)}*`, 'COUNT', step];
    const [next, some] = await run(call, 'read', command, scanned);
    for (const one of some) if (one.startsWith(prefix)) found.add(one);
    cursor = next;
    if (cursor === '0' || found.size > 0) break;
  }
  return { data: [...found], nextCursor: cursor === '0' ? null : cursor };
}

export const reads = [
  read({
    ...about('get', 'Read a value', 'Reads the string at a key.'),
    input: { key },
    read: async (call) => ({ data: await run(call, 'read', ['GET', call.args.key], text.nullable()) }),
  }),
  read({
    ...about('mget', 'Read several values', 'Reads the strings at several keys.'),
    input: { keys },
    async read(call) {
      const values = await run(call, 'read', ['MGET', ...call.args.keys], z.array(text.nullable()));
      return { data: call.args.keys.map((one, at) => ({ key: one, value: values[at] ?? null })) };
    },
  }),
  read({
    ...about('exists', 'Count keys', 'Tells how many of the keys there are.'),
    input: { keys },
    read: async (call) => ({ data: await run(call, 'read', ['EXISTS', ...call.args.keys], count) }),
  }),
  read({
    ...about('type', 'Read the type of a key', 'Tells what kind of value a key has.'),
    input: { key },
    read: async (call) => ({ data: await run(call, 'read', ['TYPE', call.args.key], text) }),
  }),
  read({
    ...about(
      'ttl',
      'Read the time to live',
      'Tells the seconds that a key still lives: -1 for ever, -2 there is none.',
    ),
    input: { key },
    read: async (call) => ({ data: await run(call, 'read', ['TTL', call.args.key], count) }),
  }),
  read({
    ...about('hget', 'Read a field of a hash', 'Reads a field of a hash.'),
    input: { key, field: name },
    read: async (call) => ({
      data: await run(call, 'read', ['HGET', call.args.key, call.args.field], text.nullable()),
    }),
  }),
  read({
    ...about('hgetall', 'Read a hash', 'Reads all fields of a hash.'),
    input: { key },
    read: async (call) => ({
      data: Object.fromEntries(pairs(await run(call, 'read', ['HGETALL', call.args.key], list))),
    }),
  }),
  read({
    ...about('llen', 'Read the length of a list', 'Tells how many values a list has.'),
    input: { key },
    read: async (call) => ({ data: await run(call, 'read', ['LLEN', call.args.key], count) }),
  }),
  read({
    ...about('lrange', 'Read a list', 'Reads a part of a list.'),
    input: { key, start: index, stop: index },
    read: (call) => range(call, ['LRANGE'], (flat) => [...flat]),
  }),
  read({
    ...about('scard', 'Read the size of a set', 'Tells how many members a set has.'),
    input: { key },
    read: async (call) => ({ data: await run(call, 'read', ['SCARD', call.args.key], count) }),
  }),
  read({
    ...about('smembers', 'Read a set', 'Reads all members of a set.'),
    input: { key },
    read: async (call) => ({ data: await run(call, 'read', ['SMEMBERS', call.args.key], list) }),
  }),
  read({
    ...about('zrange', 'Read a sorted set', 'Reads a part of a sorted set with its scores, lowest first.'),
    input: { key, start: index, stop: index },
    read: (call) =>
      range(call, ['ZRANGE', 'WITHSCORES'], (flat) => [...pairs(flat)].map(([member, score]) => ({ member, score }))),
  }),
  read({
    ...about(
      'scan',
      'List keys',
      'Lists keys below a prefix, a page at a time. A page may be empty, and keys may come twice.',
    ),
    input: {
      prefix: key,
      count: z.int().min(1).max(PAGE).optional().describe('how many keys are looked at in one step'),
    },
    read: scan,
  }),
];
