const FIRST_MS = 1_000;
const LONGEST_MS = 60_000;
/** One that was not tried again for so long is no longer due. */
const FORGOTTEN_AFTER_MS = 600_000;
const MAX_ITEMS = 10_000;

/** Items that failed or have to wait, put aside for a while, so that they are not tried four times a second for ever. */
export type Quarantine = Readonly<{
  /** Puts the item aside: for a second, then twice as long each time, at most a minute. */
  add(id: string): void;
  /** It went well: the next failure counts as the first. */
  remove(id: string): void;
  has(id: string): boolean;
  /** How many have failed and may still be due. */
  size(): number;
}>;

export function createQuarantine(now: () => number = Date.now): Quarantine {
  const items = new Map<string, { until: number; delay: number }>();
  return {
    add(id) {
      const known = items.get(id);
      items.delete(id);
      // The order of a Map is that of insertion: those that failed longest ago come first.
      for (const [other, { until }] of items) {
        if (until + FORGOTTEN_AFTER_MS >= now() && items.size < MAX_ITEMS) break;
        items.delete(other);
      }
      const delay = known ? Math.min(known.delay * 2, LONGEST_MS) : FIRST_MS;
      items.set(id, { until: now() + delay, delay });
    },
    remove(id) {
      items.delete(id);
    },
    has: (id) => now() < (items.get(id)?.until ?? 0),
    size: () => items.size,
  };
}
