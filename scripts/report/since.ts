const DURATION = /^(\d{1,4})([dw])$/;
const DAY = /^(\d{4})-(\d{2})-(\d{2})$/;
const DAY_MS = 86_400_000;

/** From when on: a day, or that many days up to today. Which day is today depends on the organization. */
export type Since = Readonly<{ day: string } | { days: number }>;

export const SINCE_HELP = 'a number of days or weeks up to today (7d, 4w) or a day (2026-11-01)';

/** @returns undefined when the text is neither, or a day that the calendar does not have */
export function parseSince(text: string): Since | undefined {
  const [, number, unit] = DURATION.exec(text) ?? [];
  if (number !== undefined) {
    const days = Number(number) * (unit === 'w' ? 7 : 1);
    return days > 0 ? { days } : undefined;
  }
  if (!DAY.test(text)) return undefined;
  const date = new Date(`${text}T00:00:00Z`);
  // Date refuses the 32nd, and takes the 31st of June for the 1st of July.
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(text) ? { day: text } : undefined;
}

/** `days` after a date. Dates alone are counted, so no clock that is put back or forward gets in. */
export function addDays(day: string, days: number): string {
  return new Date(Date.parse(`${day}T00:00:00Z`) + days * DAY_MS).toISOString().slice(0, 10);
}

/** The Monday of its week. */
export function weekOf(day: string): string {
  return addDays(day, -((new Date(`${day}T00:00:00Z`).getUTCDay() + 6) % 7));
}

/** The first day that is asked for, given which one is today. */
export function firstDay(since: Since, today: string): string {
  return 'day' in since ? since.day : addDays(today, 1 - since.days);
}
