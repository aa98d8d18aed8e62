import { z } from 'zod';
import type { Covered, DatasetAdapter, FactPage } from '../dataset.ts';
import { backfillStart, DAY_MS, utcMonth } from '../periods.ts';
import { accountSources, type Collecting } from './account.ts';
import { campaignId, currency, type Hours, readCampaigns } from './campaigns.ts';
import type { Credential } from './flow.ts';
import type { Settings } from './settings.ts';
import { columns, ENTITIES, HOUR_MS, LONGEST_MS, PLACEMENTS, readStats } from './stats.ts';

/** So long what was spent may still be adjusted. */
const ADJUSTED_MS = 14 * DAY_MS;
/** What was spent is an estimate for so long; all else is final after a day. */
const ESTIMATED_MS = 3 * DAY_MS;

const range = z.object({
  /** The hour in which the first of all began. */
  begun: z.int(),
  /** Of all ranges: the first hour. */
  floor: z.int(),
  /** What is under way, its end excluded. */
  start: z.int(),
  end: z.int(),
  /** The next page of campaigns. Null: there is none. */
  list: z.string().nullable(),
  /** Campaigns whose hours have not been read, with their currencies. */
  pending: z.array(z.tuple([campaignId, currency])),
  /** Of the first of them: what comes next, the last week first. */
  weekEnd: z.int(),
  placement: z
    .int()
    .min(0)
    .max(PLACEMENTS.length - 1),
});
type Range = z.output<typeof range>;

const cursor = z.object({
  /** Until when all has been read. */
  through: z.int().optional(),
  /** When all that may be adjusted was last read. */
  adjustedAt: z.int().optional(),
  range: range.optional(),
});
type Cursor = z.output<typeof cursor>;

type Bounds = Readonly<{ begun: number; floor: number }>;

const open = ({ begun, floor }: Bounds, { start, end }: Hours): Range => {
  return { begun, floor, start, end, list: '', pending: [], weekEnd: end, placement: 0 };
};

const monthBefore = (time: number) => utcMonth(time - 1).start;

function begin({ mode, now: at }: Collecting, { through, adjustedAt }: Cursor): Cursor {
  const now = at.getTime();
  const end = now - (now % HOUR_MS);
  if (mode === 'backfill') {
    return { range: open({ begun: end, floor: backfillStart(now) }, { start: monthBefore(end), end }) };
  }
  const isAdjusted = adjustedAt !== undefined && now - adjustedAt < DAY_MS;
  const start = Math.min(through ?? end, end - (isAdjusted ? DAY_MS : ADJUSTED_MS));
  return {
    through,
    adjustedAt: isAdjusted ? adjustedAt : now,
    range: open({ begun: end, floor: start }, { start, end }),
  };
}

/** The range behind what has been read of it. Undefined: there is nothing left of it. */
function afterStats(at: Range): Range | undefined {
  if (at.placement < PLACEMENTS.length - 1) return { ...at, placement: at.placement + 1 };
  const weekEnd = at.weekEnd - LONGEST_MS;
  if (weekEnd > at.start) return { ...at, placement: 0, weekEnd };
  return left({ ...at, placement: 0, weekEnd: at.end, pending: at.pending.slice(ENTITIES) });
}

const left = (at: Range) => (at.pending.length === 0 && at.list === null ? undefined : at);

function coveredBy({ begun, start, end }: Range): readonly Covered[] {
  const split = Math.min(Math.max(begun - ESTIMATED_MS, start), end);
  return [
    { start, end: split, state: 'complete' as const },
    { start: split, end, state: 'partial' as const, reason: 'estimated' },
  ].filter((one) => one.start < one.end);
}

async function* collect(call: Collecting): AsyncGenerator<FactPage, void, void> {
  const stored = call.cursor === null ? {} : cursor.parse(call.cursor);
  const { through, adjustedAt, ...begun } = stored.range ? stored : begin(call, stored);
  let at: Range | undefined = begun.range;
  while (at) {
    const here: Range = at;
    const isList = here.pending.length === 0;
    const page = isList ? await listed(call, here) : await spent(call, here);
    const { next, ...rest } = page;
    const isMonth = next === undefined && here.start > here.floor;
    at = isMonth ? open(here, { start: Math.max(here.floor, monthBefore(here.start)), end: here.start }) : next;
    const known = { through: call.mode === 'tail' && !at ? here.end : through, adjustedAt };
    yield {
      ...rest,
      cursor: { ...known, range: at },
      done: at === undefined,
      // A campaign, or one of its placements, that is not there yet may have spent in any of the hours.
      covered: next === undefined ? coveredBy(here) : [],
    };
  }
}

async function listed(call: Collecting, at: Range) {
  const { spending, records, bytes, next } = await readCampaigns(call, at, at.list ?? '');
  const pending = spending.map((one): [string, string] => [one.id, one.currency]);
  return { records, bytes, facts: [], next: left({ ...at, list: next, pending }) };
}

async function spent(call: Collecting, at: Range) {
  const start = Math.max(at.start, at.weekEnd - LONGEST_MS);
  const found = await readStats(call, {
    campaigns: new Map(at.pending.slice(0, ENTITIES)),
    hours: { start, end: at.weekEnd },
    placement: PLACEMENTS[at.placement] ?? PLACEMENTS[0],
    withEmpty: call.mode === 'tail',
  });
  return { ...found, next: afterStats(at) };
}

export const hourlySpend: DatasetAdapter<Credential, Settings> = {
  version: 1,
  schemaVersion: 1,
  columns,
  rhythm: { tail: { everySeconds: 3_600 }, backfill: true },
  lasting: ['through', 'adjustedAt'],
  discover: accountSources,
  collect,
};
