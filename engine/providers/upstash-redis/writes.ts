import { z } from 'zod';
import type { Risk } from '../provider.ts';
import { counted, quoted } from '../texts.ts';
import { type LookUpResult, toolsOf } from '../tool.ts';
import { inScope, key, keys, name, names, value } from './arguments.ts';
import { type At, type Credential, run, type Settings } from './database.ts';

const { write } = toolsOf<Credential, Settings>();

const count = z.int();
const seconds = z.int().min(1).max(31_536_000);
const fields = z
  .record(name, value)
  .refine((given) => Object.keys(given).length > 0, 'must have a field')
  .refine((given) => Object.keys(given).length <= 100, 'must have at most 100 fields');

const MAX_SHOWN = 1_000;
const place = (settings: Settings | null) => (settings ? ` at ${new URL(settings.restUrl).hostname}` : '');
const shownKey = (one: string, settings: Settings | null) => `${quoted(one, 200)}${place(settings)}`;
const shownList = (given: readonly string[]) => quoted(given.join(', '), MAX_SHOWN);

const about = (command: string, risk: Risk, title: string, description: string) => ({
  key: `upstash_redis.${command}`,
  risk,
  title,
  description,
  check: inScope,
});

/**
 * What a key holds says that a write was done where it is what was to be written, whoever has written it. Where it is not, somebody may
 * have written since.
 */
const seen = (isDone: boolean, result: unknown): LookUpResult =>
  isDone ? { outcome: 'found', result } : { outcome: 'none' };

const valuesOf = (at: At, of: string, given: readonly string[]) =>
  run(at, 'read', ['HMGET', of, ...given], z.array(z.string().nullable()));
const membersOf = (at: At, of: string, given: readonly string[]) =>
  run(at, 'read', ['SMISMEMBER', of, ...given], z.array(count));

export const writes = [
  write({
    ...about('set', 'external', 'Write a value', 'Writes the string at a key, over what it holds.'),
    input: {
      key,
      value,
      ex: seconds.optional().describe('seconds that it lives; without it for ever'),
      nx: z.boolean().optional().describe('only where the key does not exist'),
    },
    summary: ({ args, settings }) =>
      `Write to the key ${shownKey(args.key, settings)}${args.nx ? ', if it does not exist,' : ''} the value ${quoted(
        args.value,
        MAX_SHOWN,
      )}${args.ex === undefined ? '' : ` for ${counted(args.ex, 'second')}`}`,
    async execute(call) {
      const { key: to, value: text, ex, nx } = call.args;
      const command = ['SET', to, text, ...(ex === undefined ? [] : ['EX', ex]), ...(nx ? ['NX'] : [])];
      return { isSet: (await run(call, 'write', command, z.literal('OK').nullable())) === 'OK' };
    },
    async lookUp(call) {
      // It may have been there before, so that this one wrote nothing.
      if (call.args.nx) return { outcome: 'none' };
      const held = await run(call, 'read', ['GET', call.args.key], z.string().nullable());
      return seen(held === call.args.value, { isSet: true });
    },
  }),
  write({
    ...about('hset', 'external', 'Write fields of a hash', 'Writes fields of a hash, over what they hold.'),
    input: { key, fields },
    summary: ({ args, settings }) =>
      `Write to the hash ${shownKey(args.key, settings)} the fields ${quoted(JSON.stringify(args.fields), MAX_SHOWN)}`,
    async execute(call) {
      const command = ['HSET', call.args.key, ...Object.entries(call.args.fields).flat()];
      return { added: await run(call, 'write', command, count) };
    },
    async lookUp(call) {
      const held = await valuesOf(call, call.args.key, Object.keys(call.args.fields));
      return seen(
        Object.values(call.args.fields).every((one, at) => held[at] === one),
        { added: null },
      );
    },
  }),
  write({
    ...about('incr', 'external', 'Count up', 'Adds to the number at a key, which is 0 where there is none.'),
    input: { key, increment: z.int().min(-1_000_000_000).max(1_000_000_000).optional().describe('by default 1') },
    summary: ({ args, settings }) => `Add ${args.increment ?? 1} to the key ${shownKey(args.key, settings)}`,
    execute: async (call) => ({
      value: await run(call, 'write', ['INCRBY', call.args.key, call.args.increment ?? 1], count),
    }),
  }),
  write({
    ...about('rpush', 'external', 'Append to a list', 'Appends values to a list.'),
    input: { key, values: z.array(value).min(1).max(100) },
    summary: ({ args, settings }) =>
      `Append ${counted(args.values.length, 'value')} to the list ${shownKey(args.key, settings)}: ${shownList(args.values)}`,
    execute: async (call) => ({
      length: await run(call, 'write', ['RPUSH', call.args.key, ...call.args.values], count),
    }),
  }),
  write({
    ...about('sadd', 'external', 'Add to a set', 'Adds members to a set.'),
    input: { key, members: names },
    summary: ({ args, settings }) =>
      `Add ${counted(args.members.length, 'member')} to the set ${shownKey(args.key, settings)}: ${shownList(args.members)}`,
    execute: async (call) => ({
      added: await run(call, 'write', ['SADD', call.args.key, ...call.args.members], count),
    }),
    lookUp: async (call) =>
      seen(
        (await membersOf(call, call.args.key, call.args.members)).every((is) => is === 1),
        { added: null },
      ),
  }),
  write({
    ...about('expire', 'external', 'Set the time to live', 'Lets a key end after so many seconds.'),
    input: { key, seconds },
    summary: ({ args, settings }) =>
      `Let the key ${shownKey(args.key, settings)} end in ${counted(args.seconds, 'second')}`,
    execute: async (call) => ({
      isSet: (await run(call, 'write', ['EXPIRE', call.args.key, call.args.seconds], count)) === 1,
    }),
  }),
  write({
    ...about('del', 'high', 'Delete keys', 'Deletes keys. They do not come back.'),
    input: { keys },
    summary: ({ args, settings }) =>
      `Delete ${counted(args.keys.length, 'key')}${place(settings)}: ${quoted(args.keys.join(', '), 1_500)}`,
    execute: async (call) => ({ deleted: await run(call, 'write', ['DEL', ...call.args.keys], count) }),
    lookUp: async (call) =>
      seen((await run(call, 'read', ['EXISTS', ...call.args.keys], count)) === 0, { deleted: null }),
  }),
  write({
    ...about('hdel', 'high', 'Delete fields of a hash', 'Deletes fields of a hash. They do not come back.'),
    input: { key, fields: names },
    summary: ({ args, settings }) =>
      `Delete from the hash ${shownKey(args.key, settings)} the fields ${shownList(args.fields)}`,
    execute: async (call) => ({
      deleted: await run(call, 'write', ['HDEL', call.args.key, ...call.args.fields], count),
    }),
    lookUp: async (call) =>
      seen(
        (await valuesOf(call, call.args.key, call.args.fields)).every((one) => one === null),
        { deleted: null },
      ),
  }),
  write({
    ...about('srem', 'high', 'Remove from a set', 'Removes members from a set.'),
    input: { key, members: names },
    summary: ({ args, settings }) =>
      `Remove from the set ${shownKey(args.key, settings)} the members ${shownList(args.members)}`,
    execute: async (call) => ({
      removed: await run(call, 'write', ['SREM', call.args.key, ...call.args.members], count),
    }),
    lookUp: async (call) =>
      seen(
        (await membersOf(call, call.args.key, call.args.members)).every((is) => is === 0),
        { removed: null },
      ),
  }),
];
