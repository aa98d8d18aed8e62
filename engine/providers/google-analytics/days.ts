import { openZone } from '../../schedules/zone.ts';

const DAY_MS = 86_400_000;

/** Days, as YYYY-MM-DD, by the clocks of a zone. Whole days are counted by the calendar: some have 23 hours, some 25. */
export type LocalDays = Readonly<{
  /** The day of a point in time, in milliseconds. */
  of(time: number): string;
  /** Its first point in time, in milliseconds. */
  start(day: string): number;
}>;

const textOf = (clock: number) => new Date(clock).toISOString().slice(0, 10);

/** @throws RangeError for a name that is no IANA zone */
export function localDays(timezone: string): LocalDays {
  const zone = openZone(timezone);
  // Rows by the thousand are of the same few days.
  const starts = new Map<string, number>();
  return {
    of: (time) => textOf(time + zone.offset(time)),
    start(day) {
      const start = starts.get(day) ?? zone.first(Date.parse(day));
      starts.set(day, start);
      return start;
    },
  };
}

export const addDays = (day: string, days: number) => textOf(Date.parse(day) + days * DAY_MS);

/** The first day of its month, or of one so many months later. */
export function monthOf(day: string, later = 0): string {
  const date = new Date(day);
  return textOf(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + later, 1));
}

/** The Monday of its week. */
export const weekOf = (day: string) => addDays(day, -((new Date(day).getUTCDay() + 6) % 7));
