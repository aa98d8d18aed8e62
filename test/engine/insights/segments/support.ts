import { type Collected, type StoredFact, storedFact } from '../../../../engine/insights/facts.ts';
import type { Columns, Fact } from '../../../../engine/providers/dataset.ts';

/** A column of each type. */
export const COLUMNS: Columns = {
  status: 'text',
  total: 'amount',
  items: 'count',
  paid: 'flag',
  refundedAt: 'time',
  onDay: 'day',
};

const MARCH = Date.UTC(2026, 2, 1);
const MINUTE_MS = 60_000;

/** Order `number`, in March 2026; every seventh knows nothing. */
export function order(number: number, change: Partial<Fact> = {}, collected: Partial<Collected> = {}): StoredFact {
  const isEmpty = number % 7 === 6;
  const fact: Fact = {
    key: `order:${String(number).padStart(6, '0')}`,
    effectiveAt: MARCH + (number % 40_000) * MINUTE_MS,
    revision: isEmpty ? null : MARCH + number,
    values: isEmpty
      ? Object.fromEntries(Object.keys(COLUMNS).map((name) => [name, null]))
      : {
          status: number % 3 === 0 ? 'refunded' : 'paid',
          total: `${number % 500}.99`,
          items: number % 2 === 0 ? number : -number,
          paid: number % 2 === 0,
          refundedAt: number % 3 === 0 ? MARCH + number : null,
          onDay: '2026-03-01',
        },
    ...change,
  };
  return storedFact(COLUMNS, fact, { collectedAt: Date.UTC(2026, 3, 1), unit: 'unit-1', ...collected });
}

export const orders = (from: number, to: number): StoredFact[] =>
  Array.from({ length: to - from }, (_, index) => order(from + index));
