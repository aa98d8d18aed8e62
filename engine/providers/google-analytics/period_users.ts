import { z } from 'zod';
import type { DatasetAdapter, FactPage } from '../dataset.ts';
import type { OAuth2Credential } from '../oauth/index.ts';
import { coveredBy, tailFloor } from './covered.ts';
import { addDays, localDays, monthOf, weekOf } from './days.ts';
import { type Collecting, propertySources } from './property.ts';
import { countOf, readRows } from './rows.ts';
import type { Settings } from './settings.ts';

const METRICS = ['totalUsers', 'activeUsers'] as const;

/** A whole period; its end is not of it. */
type Period = Readonly<{ grain: 'day' | 'week' | 'month'; start: string; end: string }>;

/** The periods that begin in a month and are over on this day. Those of days come first, the newest first. */
function periodsIn(month: string, today: string): readonly Period[] {
  const next = monthOf(month, 1);
  const found: Period[] = [];
  for (let day = addDays(next, -1); day >= month; day = addDays(day, -1)) {
    found.push({ grain: 'day', start: day, end: addDays(day, 1) });
  }
  for (let week = weekOf(addDays(next, -1)); week >= month; week = addDays(week, -7)) {
    found.push({ grain: 'week', start: week, end: addDays(week, 7) });
  }
  found.push({ grain: 'month', start: month, end: next });
  return found.filter(({ end }) => end <= today);
}

const day = z.iso.date();
const round = z.object({
  /** The day of the round: on a later one other periods are over. */
  today: day,
  /** The month under way, the newest one first, and the day before which no period ends. */
  month: day,
  floor: day,
  /** How many of its periods have been read. */
  read: z.int().min(0),
});
type Round = z.output<typeof round>;
const cursor = z.object({
  /** The day of the round before. */
  readOn: day.optional(),
  round: round.optional(),
});

const periodsOf = ({ today, month, floor }: Round) => periodsIn(month, today).filter(({ end }) => end > floor);

/** The next place that has a period, be it the same one. Undefined: there is none. */
function reachable(at: Round): Round | undefined {
  if (at.read < periodsOf(at).length) return at;
  // A month ends within the one behind it.
  if (monthOf(at.month, 1) <= at.floor) return undefined;
  return reachable({ ...at, month: monthOf(at.month, -1), read: 0 });
}

/** A report each period: users of several days cannot be told from those of each. */
async function* collect(call: Collecting): AsyncGenerator<FactPage, void, void> {
  const days = localDays(call.source.timezone);
  const now = call.now.getTime();
  const { readOn, round: stored } = call.cursor === null ? {} : cursor.parse(call.cursor);
  const today = days.of(now);
  const floor = call.mode === 'backfill' ? monthOf(today, -12) : tailFloor(today, readOn);
  let at = reachable(stored ?? { today, month: monthOf(today), floor, read: 0 });
  while (at) {
    const period = periodsOf(at)[at.read];
    if (!period) return;
    const { grain, start, end } = period;
    const last = addDays(end, -1);
    const { today: on } = at;
    const { rows, bytes, quality } = await readRows(call, {
      dateRange: { startDate: start, endDate: last },
      dimensions: [],
      metrics: METRICS,
      limit: 1,
    });
    const { state } = quality;
    const [total, active] = rows[0]?.metrics ?? ['0', '0'];
    // No row is nobody, unless somebody may have been left out.
    const isKnown = state === 'complete' || (rows.length > 0 && (state === 'partial' || state === 'suppressed'));
    at = reachable({ ...at, read: at.read + 1 });
    const covered = coveredBy(quality, { days, now, first: start, last });
    yield {
      records: rows.length,
      bytes,
      facts: isKnown
        ? [
            {
              key: `${grain}:${start}:${end}`,
              effectiveAt: days.start(start),
              revision: null,
              values: {
                grain,
                period_start: start,
                period_end: end,
                total_users: countOf(total),
                active_users: countOf(active),
                coverage: covered.at(-1)?.state ?? null,
              },
            },
          ]
        : [],
      cursor: at ? { readOn, round: at } : { readOn: on },
      done: at === undefined,
      // What is known of a week or a month says nothing of its days: those have `coverage` of their own.
      covered: grain === 'day' ? covered : [],
    };
  }
}

export const periodUsers: DatasetAdapter<OAuth2Credential, Settings> = {
  version: 1,
  schemaVersion: 1,
  columns: {
    grain: 'text',
    period_start: 'day',
    period_end: 'day',
    total_users: 'count',
    active_users: 'count',
    coverage: 'text',
  },
  rhythm: { tail: { everySeconds: 6 * 3_600 }, backfill: true },
  discover: propertySources,
  collect,
};
