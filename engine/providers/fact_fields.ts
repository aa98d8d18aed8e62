import { z } from 'zod';
import { CursorMovedError } from './dataset.ts';

// Fields of providers that become values of facts: none of them can hold a sentence.

/** A word of a closed set, as providers write theirs. New ones are taken as they come. */
export const word = z.string().regex(/^[a-z][a-z0-9_]{0,59}$/);

/** Upper case, as ISO 4217 writes it. */
export const currency = z
  .string()
  .regex(/^[A-Za-z]{3}$/)
  .transform((code) => code.toUpperCase());

/** Milliseconds. */
export const isoTime = z.iso.datetime({ offset: true }).transform((text) => Date.parse(text));

/** A stored cursor. @throws CursorMovedError where it is none that this code writes */
export function readCursor<S extends z.ZodType>(schema: S, cursor: unknown): z.output<S> | undefined {
  if (cursor === null || cursor === undefined) return undefined;
  const read = schema.safeParse(cursor);
  if (!read.success) throw new CursorMovedError('The cursor is of another form.');
  return read.data;
}
