import { createHash } from 'node:crypto';

/** Choices that follow from a seed: what one part of a round draws does not depend on how far another has come. */
export type Random = Readonly<{
  /** From 0 to below 1. */
  next: () => number;
  /** A whole number, both ends included. */
  between: (minimum: number, maximum: number) => number;
  chance: (probability: number) => boolean;
  /** @throws RangeError when there is nothing to pick from */
  pick: <T>(items: readonly T[]) => T;
  shuffle: <T>(items: readonly T[]) => T[];
  /** A stream of its own for a part of that name. */
  fork: (name: string) => Random;
}>;

export function createRandom(seed: string): Random {
  let state = createHash('sha256').update(seed).digest().readUInt32LE();

  // mulberry32
  function next(): number {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  function between(minimum: number, maximum: number): number {
    return minimum + Math.floor(next() * (maximum - minimum + 1));
  }

  return {
    next,
    between,
    chance: (probability) => next() < probability,
    pick(items) {
      const index = between(0, items.length - 1);
      const item = items[index];
      if (item === undefined) throw new RangeError('nothing to pick from');
      return item;
    },
    shuffle(items) {
      const keyed = items.map((item) => ({ item, key: next() }));
      return keyed.sort((a, b) => a.key - b.key).map(({ item }) => item);
    },
    fork: (name) => createRandom(`${seed}/${name}`),
  };
}
