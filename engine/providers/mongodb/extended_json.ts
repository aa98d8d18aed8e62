import type { BSON } from 'mongodb';
import { z } from 'zod';
import { storableJson } from '../outgoing/index.ts';
import type { ArgumentIssue } from '../tool.ts';

// Values that JSON has no words for, as the extended JSON of MongoDB writes them. None of them holds code.

type Bson = typeof BSON;
type Path = readonly PropertyKey[];

const whole = (digits: number) =>
  z
    .string()
    .regex(/^-?\d+$/)
    .max(digits + 1);

const wrappers: ReadonlyMap<string, z.ZodType> = new Map<string, z.ZodType>([
  ['$oid', z.string().regex(/^[0-9a-f]{24}$/i)],
  ['$date', z.union([z.iso.datetime({ offset: true }), z.strictObject({ $numberLong: whole(19) })])],
  ['$numberInt', whole(10)],
  ['$numberLong', whole(19)],
  ['$numberDouble', z.string().regex(/^(?:-?\d{1,400}(?:\.\d{1,400})?(?:e[+-]?\d{1,3})?|-?Infinity|NaN)$/i)],
  ['$numberDecimal', z.string().regex(/^(?:-?\d{1,34}(?:\.\d{1,34})?(?:e[+-]?\d{1,4})?|-?Infinity|NaN)$/i)],
  ['$uuid', z.uuid()],
  ['$binary', z.strictObject({ base64: z.base64(), subType: z.string().regex(/^[0-9a-f]{1,2}$/i) })],
  ['$timestamp', z.strictObject({ t: z.int().min(0).max(0xffff_ffff), i: z.int().min(0).max(0xffff_ffff) })],
  [
    '$regularExpression',
    z.strictObject({
      pattern: z
        .string()
        .max(1_000)
        .regex(/^[^\0]*$/),
      options: z.string().regex(/^[imsx]*$/),
    }),
  ],
  ['$minKey', z.literal(1)],
  ['$maxKey', z.literal(1)],
]);

export const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The name of a value that is written as an object of this one name. */
export function wrapperOf(value: unknown): string | undefined {
  if (!isObject(value)) return undefined;
  const [name = '', ...more] = Object.keys(value);
  return more.length === 0 && wrappers.has(name) ? name : undefined;
}

export const refused = (path: Path, message: string): ArgumentIssue => ({ path, message, code: 'not_allowed' });

/** What is not data: an operator, or a value that is not well written. */
export function* valueIssues(value: unknown, path: Path): Generator<ArgumentIssue> {
  if (Array.isArray(value)) {
    for (const [index, one] of value.entries()) yield* valueIssues(one, [...path, index]);
    return;
  }
  if (!isObject(value)) return;
  const wrapper = wrapperOf(value);
  if (wrapper !== undefined) {
    if (wrappers.get(wrapper)?.safeParse(value[wrapper]).success) return;
    yield refused(path, `is no ${wrapper} of extended JSON`);
    return;
  }
  for (const [name, one] of Object.entries(value)) {
    if (name.startsWith('$')) yield refused([...path, name], 'is no value of extended JSON');
    else yield* valueIssues(one, [...path, name]);
  }
}

/** Of a document or a filter as a whole, which is no single value. */
export function* documentIssues(value: unknown, path: Path, walk = valueIssues): Generator<ArgumentIssue> {
  if (wrapperOf(value) === undefined) yield* walk(value, path);
  else yield refused(path, 'must be an object of fields');
}

/**
 * As the driver sends it. Its own reader takes names beside those of a value for nothing, and would drop a part of what was asked.
 * @param value that `valueIssues`, or what is built on it, has nothing against
 */
export function toBson(bson: Bson, value: unknown): unknown {
  if (Array.isArray(value)) return value.map((one) => toBson(bson, one));
  if (!isObject(value)) return value;
  if (wrapperOf(value) !== undefined) return bson.EJSON.deserialize({ value }, { relaxed: false })['value'];
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, toBson(bson, one)]));
}

const isPlain = (value: object) => [Object.prototype, null].includes(Object.getPrototypeOf(value));

/** Relaxed, numbers beyond what a double holds would lose their last digits. */
function withLongs(bson: Bson, value: unknown): unknown {
  if (value instanceof bson.Long) return { $numberLong: String(value) };
  if (Array.isArray(value)) return value.map((one) => withLongs(bson, one));
  if (typeof value !== 'object' || value === null || !isPlain(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, withLongs(bson, one)]));
}

/** What the driver reads, in relaxed extended JSON: dates and ids can be read, and be sent again. */
export function fromBson(bson: Bson, value: unknown): unknown {
  const text = bson.EJSON.stringify({ value: withLongs(bson, value) }, { relaxed: true });
  return z.object({ value: z.unknown() }).parse(storableJson(Buffer.from(text))).value;
}
