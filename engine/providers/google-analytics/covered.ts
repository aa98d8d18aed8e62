import type { Covered } from '../dataset.ts';
import { addDays, type LocalDays } from './days.ts';
import type { Quality } from './rows.ts';

/** So long after its end Google may still be counting a day. */
const FINAL_AFTER_MS = 48 * 3_600_000;
const AGAIN_DAYS = 7;

/** The first day that a tail reads: of the last seven, or before them where the round before did not reach them. */
export function tailFloor(today: string, readOn = today): string {
  // The last days of that round were not final.
  const days = [addDays(today, -AGAIN_DAYS), addDays(readOn, -3)];
  return days.sort()[0] ?? today;
}

/** The days from `first` to `last`, in milliseconds. */
export const timeOf = (days: LocalDays, first: string, last: string) => ({
  start: days.start(first),
  end: days.start(addDays(last, 1)),
});

/** What a report of these days says about them. */
export function coveredBy(
  { state, reason }: Quality,
  { days, now, first, last }: Readonly<{ days: LocalDays; now: number; first: string; last: string }>,
): readonly Covered[] {
  if (state === 'missing') return [];
  const { start, end } = timeOf(days, first, last);
  if (state !== 'complete') return [{ start, end, state, reason }];
  // Of the days that end before: the first one behind them.
  const open = days.start(days.of(now - FINAL_AFTER_MS));
  const split = Math.min(Math.max(open, start), end);
  return [
    { start, end: split, state },
    { start: split, end, state: 'partial' as const, reason: 'not_final' },
  ].filter((one) => one.start < one.end);
}
