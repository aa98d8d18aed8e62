import { z } from 'zod';

const MAX_LENGTH = 200;

/**
 * A provider's text for people, on one line: without control characters and marks that hide text or turn it around, at most 200
 * characters. Cut by characters: half of a pair is nothing that Postgres takes.
 */
export function shownText(text: string): string {
  const plain = text.slice(0, 8 * MAX_LENGTH).replace(/[\p{C}\p{Zl}\p{Zp}]/gu, '');
  return plain.length <= MAX_LENGTH ? plain : [...plain].slice(0, MAX_LENGTH).join('');
}

/**
 * A text of several lines, without what nobody sees of it: agents read it too, and hidden characters could tell them what no owner
 * has read.
 */
export function visibleText(text: string): string {
  return text.replace(/[^\P{C}\n\t]/gu, '');
}

/** The same as `shownText` of a field that may be missing. */
export const shownOrNull = z
  .string()
  .nullish()
  .transform((text) => (typeof text === 'string' ? shownText(text) : null));

/** An id that a provider gives, which settings may name. */
export const providerId = z.string().min(1).max(100);

/** Ids that a person chose: each once. `same`: what two of them are compared by. */
export function choices(id: z.ZodType<string>, max: number, same: (text: string) => string = (text) => text) {
  return z
    .array(id)
    .max(max)
    .superRefine((list, context) => {
      const seen = new Set<string>();
      for (const [index, one] of list.entries()) {
        if (seen.has(same(one))) context.addIssue({ code: 'custom', path: [index], message: 'is named twice' });
        seen.add(same(one));
      }
    });
}

/**
 * A text within a summary: its begin, where it is long, and how long it is. It has no such quotes of its own, by which it could
 * seem to end.
 */
export function quoted(given: string, max = 300): string {
  const text = given.replace(/[“”]/g, '"');
  return text.length <= max ? `“${text}”` : `“${text.slice(0, max).toWellFormed()}…” (${text.length} characters)`;
}

/** `1 key`, `2 keys`. */
export function counted(count: number, one: string): string {
  return `${count} ${one}${count === 1 ? '' : 's'}`;
}
