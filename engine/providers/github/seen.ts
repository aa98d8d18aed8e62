import { z } from 'zod';
import type { Item } from './items.ts';

// Times of GitHub are whole seconds, and what changes within one is not in the order in which it can be read: pages and rounds overlap,
// and what comes again as it was is left out.

export const OVERLAP_MS = 60_000;

/** A cursor may have two of them. */
const MAX_SEEN = 100;

/** When what was read had changed, by its number. */
export const seen = z.record(z.string(), z.int());
export type Seen = z.output<typeof seen>;

export const isSeen = (known: Seen, one: Item) => known[String(one.number)] === one.updated_at;

/** Of what was read, what comes again. Where that is too much for a cursor nothing is, so that it is told twice. */
export function seenSince(since: number, known: Seen, items: readonly Item[]): Seen {
  const all = { ...known, ...Object.fromEntries(items.map((one) => [String(one.number), one.updated_at])) };
  const again = Object.entries(all).filter(([, updated]) => updated >= since);
  return again.length <= MAX_SEEN ? Object.fromEntries(again) : {};
}
