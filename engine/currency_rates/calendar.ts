import { nextFire, openZone } from '../schedules/index.ts';

/** The bank publishes on its working days, around 16:00 on clocks in Frankfurt. */
export const ZONE = 'Europe/Berlin';
/** From then on the rates of a working day are looked for. */
const FIRST_LOOK = '15 16 * * 1-5';
/** Each look for them. On a holiday nothing comes, and after the last one they are given up. */
export const LOOKS = '15,45 16-19 * * 1-5';

const DAY_MS = 86_400_000;
/** What the second of the documents reaches back. */
const RECENT_DAYS = 90;
/** What the bank corrects later than that is found by reading the history again. */
const HISTORY_MS = 30 * DAY_MS;

/** The bank's documents: the last day, the last 90 days, and all since 1999. */
export type RatesDocument = 'daily' | 'recent' | 'history';

export type KnownRates = Readonly<{
  /** ISO date; null: there are none. */
  newestDay: string | null;
  /** When the whole history was last stored; null: never. */
  historyLoadedAt: Date | null;
}>;

/** The date on the bank's clocks, as YYYY-MM-DD. */
export function bankDay(now: Date): string {
  const time = now.getTime();
  return new Date(time + openZone(ZONE).offset(time)).toISOString().slice(0, 10);
}

/** A day so many days later. */
export function dayAfter(day: string, days: number): string {
  return new Date(Date.parse(day) + days * DAY_MS).toISOString().slice(0, 10);
}

/** The next day that is none of a weekend. */
function nextWorkingDay(day: string): string {
  const next = dayAfter(day, 1);
  return [0, 6].includes(new Date(next).getUTCDay()) ? nextWorkingDay(next) : next;
}

/** The smallest document that closes the gap between what is known and now. */
export function documentFor({ newestDay, historyLoadedAt }: KnownRates, now: Date): RatesDocument {
  if (newestDay === null || historyLoadedAt === null) return 'history';
  if (now.getTime() - historyLoadedAt.getTime() >= HISTORY_MS) return 'history';
  const today = bankDay(now);
  if (dayAfter(newestDay, RECENT_DAYS) < today) return 'history';
  return nextWorkingDay(newestDay) < today ? 'recent' : 'daily';
}

/** After the last look of a day there: 21:00 or, in summer, 22:00. */
const eveningOf = (day: string) => new Date(Date.parse(day) + 20 * 3_600_000);

/** When to look next, after a look at `now` that found rates up to `newestDay`. */
export function nextLook(newestDay: string, now: Date): Date {
  const isThere = newestDay >= bankDay(now);
  const next = isThere ? nextFire(FIRST_LOOK, ZONE, eveningOf(newestDay)) : nextFire(LOOKS, ZONE, now);
  if (next === undefined) throw new Error(`${LOOKS} names no time`);
  return next;
}
