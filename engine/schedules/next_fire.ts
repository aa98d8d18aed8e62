import { type Expression, parseExpression } from './expression.ts';
import { openZone, type Zone } from './zone.ts';

const MINUTE_MS = 60_000;

/** Times of the day: each fires once, at its first minute or, where that is left out, at the next one that is there. */
function nextOfTimes(expression: Expression, zone: Zone, after: number): number | undefined {
  let clock = expression.next(after + zone.offset(after));
  while (clock !== undefined) {
    const time = zone.first(clock);
    // Clocks that are put back show again what has fired: those are passed over.
    if (time > after) return time;
    clock = expression.next(clock);
  }
  return undefined;
}

/** A rhythm: every minute of real time is held against the clock, so that it goes on when the clock is put back. */
function nextOfRhythm(expression: Expression, zone: Zone, after: number): number | undefined {
  let from = after;
  let offset = zone.offset(after);
  for (;;) {
    const clock = expression.next(from + offset);
    if (clock === undefined) return undefined;
    const time = clock - offset;
    const change = zone.change(Math.max(from, after), time);
    if (change === undefined) return time;
    // Right before the change by its new offset: the minute of the change itself may be one.
    offset = zone.offset(change);
    from = change - MINUTE_MS;
    if (expression.next(from + offset) === change + offset) return change;
    from = change;
  }
}

/**
 * When a schedule fires next, strictly after a point in time (docs/interface.md 2.15). With a fixed hour, a local time that daylight
 * saving leaves out fires at the next minute that is there, and one that comes twice fires once; with `*` or steps in the
 * hour, real time counts.
 * @returns undefined where it never does
 * @throws Error for what is no expression, RangeError for what is no zone
 */
export function nextFire(cron: string, timezone: string, after: Date): Date | undefined {
  const expression = parseExpression(cron);
  const next = expression.rhythmic ? nextOfRhythm : nextOfTimes;
  const time = next(expression, openZone(timezone), after.getTime());
  return time === undefined ? undefined : new Date(time);
}
