import { openZone } from '../schedules/zone.ts';
import type { Interval } from './dataset.ts';

export const DAY_MS = 86_400_000;
const BACKFILL_MONTHS = 12;

/** The month on the clock of UTC that a time lies in. */
export function utcMonth(time: number): Interval {
  const date = new Date(time);
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
  return { start: Date.UTC(year, month, 1), end: Date.UTC(year, month + 1, 1) };
}

/** Where twelve months before begin, a day sooner: elsewhere the first of a month comes before that of UTC. */
export function backfillStart(now: number): number {
  const date = new Date(now);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() - BACKFILL_MONTHS, 1) - DAY_MS;
}

/** The day on the clock of a zone that a time lies in, from midnight to midnight. @throws RangeError where that is no zone */
export function localDay(timezone: string, time: number): Interval & Readonly<{ day: string }> {
  const zone = openZone(timezone);
  const clock = Math.floor((time + zone.offset(time)) / DAY_MS) * DAY_MS;
  return { day: new Date(clock).toISOString().slice(0, 10), start: zone.first(clock), end: zone.first(clock + DAY_MS) };
}
