import { z } from 'zod';
import { inputSchema, type Tool } from '../provider.ts';

const key = z.string().min(1).max(1_024).describe('begins with one of the allowed prefixes');
const value = z.string().max(65_536);
const ttl = z.int().min(1).max(31_536_000);

type Row = readonly [key: string, title: string, description: string, input: z.ZodRawShape];

const tool =
  (effect: Tool['effect'], risk: Tool['risk']) =>
  ([name, title, description, input]: Row): Tool => ({
    key: `upstash_redis.${name}`,
    title,
    description,
    effect,
    risk,
    scopes: [],
    inputSchema: inputSchema(input),
  });

const reads: readonly Row[] = [
  ['get', 'Read a value', 'Reads the string at a key.', { key }],
  ['mget', 'Read several values', 'Reads the strings at several keys.', { keys: z.array(key).min(1).max(100) }],
  ['type', 'Read the type of a key', 'Tells what kind of value a key has.', { key }],
  ['ttl', 'Read the time to live', 'Tells the seconds that a key still lives.', { key }],
  ['hgetall', 'Read a hash', 'Reads all fields of a hash.', { key }],
  [
    'lrange',
    'Read a list',
    'Reads a part of a list.',
    { key, start: z.int().min(0), stop: z.int().min(0).max(1_000_000) },
  ],
  ['smembers', 'Read a set', 'Reads all members of a set.', { key }],
  [
    'scan',
    'List keys',
    'Lists keys below a prefix, a page at a time.',
    {
      prefix: key,
      cursor: z
        .string()
        .regex(/^\d{1,20}$/)
        .optional(),
      count: z.int().min(1).max(1_000).optional(),
    },
  ],
];

const writes: readonly Row[] = [
  ['set', 'Write a value', 'Writes the string at a key.', { key, value, ttlSeconds: ttl.optional() }],
  [
    'hset',
    'Write fields of a hash',
    'Writes fields of a hash.',
    { key, fields: z.record(z.string().max(1_024), value) },
  ],
  ['expire', 'Set the time to live', 'Lets a key end after so many seconds.', { key, seconds: ttl }],
];

const removals: readonly Row[] = [
  ['del', 'Delete keys', 'Deletes keys. They do not come back.', { keys: z.array(key).min(1).max(100) }],
];

export const tools: readonly Tool[] = [
  ...reads.map(tool('read', 'low')),
  ...writes.map(tool('write', 'external')),
  ...removals.map(tool('write', 'high')),
];
