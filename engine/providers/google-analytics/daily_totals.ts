import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { DatasetAdapter, Fact, FactPage } from '../dataset.ts';
import type { OAuth2Credential } from '../oauth/index.ts';
import { ProviderError } from '../outgoing/index.ts';
import { coveredBy, tailFloor, timeOf } from './covered.ts';
import { addDays, type LocalDays, localDays, monthOf } from './days.ts';
import { type Collecting, propertySources } from './property.ts';
import { amountOf, countOf, type Row, readRows } from './rows.ts';
import type { Settings } from './settings.ts';
import { KEY } from './site.ts';

const DIMENSIONS = ['date', 'country', 'deviceCategory', 'sessionDefaultChannelGroup'] as const;
const METRICS = ['sessions', 'engagedSessions', 'screenPageViews', 'eventCount', 'purchaseRevenue'] as const;
/** As many facts as one unit of work takes. */
const PAGE = 10_000;

const day = z.iso.date();
const round = z.object({
  /** The last day of all, which is not over, and the first one. */
  today: day,
  floor: day,
  /** What is under way: these days, the last one first. */
  from: day,
  to: day,
  /** A report each day: one of them all was no complete one. */
  isDaily: z.boolean(),
  /** Rows of the last day that have been read. Zero where the page begins with it. */
  offset: z.int().min(0),
});
type Round = z.output<typeof round>;
const cursor = z.object({
  currency: z.string().optional(),
  /** The day of the round before. */
  readOn: day.optional(),
  round: round.optional(),
});

type Bounds = Readonly<{ today: string; floor: string }>;

/** `to` and the days of its month before it, down to the floor. */
function monthTo({ today, floor }: Bounds, to: string): Round {
  const first = monthOf(to);
  return { today, floor, from: first > floor ? first : floor, to, isDaily: false, offset: 0 };
}

/** What comes where all behind `to` has been read. Undefined: nothing does. */
function continued(before: Round, to: string): Round | undefined {
  if (to >= before.from) return { ...before, to, offset: 0 };
  return to < before.floor ? undefined : monthTo(before, to);
}

function dateOf(row: Row): string {
  const [, year, month, date] = /^(\d{4})(\d{2})(\d{2})$/.exec(row.dimensions[0] ?? '') ?? [];
  const text = day.safeParse(`${year}-${month}-${date}`);
  if (text.success) return text.data;
  throw new ProviderError(KEY, 'failed', 'The provider responds with a day in a form that is not the documented one.');
}

function factOf(row: Row, days: LocalDays, currency: string): Fact {
  const date = dateOf(row);
  const [, country = '', device = '', channel = ''] = row.dimensions;
  const [sessions, engaged, views, events, revenue] = row.metrics;
  const hash = createHash('sha256')
    .update(JSON.stringify([country, device, channel]))
    .digest('hex');
  return {
    key: `${date}:${hash}`,
    effectiveAt: days.start(date),
    revision: null,
    values: {
      date,
      country: country || null,
      device_category: device || null,
      session_default_channel_group: channel || null,
      sessions: countOf(sessions),
      engaged_sessions: countOf(engaged),
      screen_page_views: countOf(views),
      event_count: countOf(events),
      purchase_revenue: amountOf(revenue),
      currency,
    },
  };
}

async function* collect(call: Collecting): AsyncGenerator<FactPage, void, void> {
  const days = localDays(call.source.timezone);
  const now = call.now.getTime();
  const stored = call.cursor === null ? {} : cursor.parse(call.cursor);
  let { currency } = stored;
  const today = days.of(now);
  const floor = call.mode === 'backfill' ? monthOf(today, -12) : tailFloor(today, stored.readOn);
  let at: Round | undefined = stored.round ?? monthTo({ today, floor }, today);

  while (at) {
    const here: Round = at;
    const { from, to, isDaily, offset } = here;
    const first = isDaily || offset > 0 ? to : from;
    const read = await readRows(call, {
      dateRange: { startDate: first, endDate: to },
      dimensions: DIMENSIONS,
      metrics: METRICS,
      order: ['-date', ...DIMENSIONS.slice(1)],
      limit: PAGE,
      offset,
      currency,
    });
    const { rows, quality } = read;
    currency = read.currency;
    if (rows.length > 0 && currency === undefined) {
      throw new ProviderError(KEY, 'failed', 'The provider responds with amounts that have no currency.');
    }
    const facts = rows.map((row) => factOf(row, days, currency ?? ''));
    const isOutside = facts.some(({ values }) => String(values['date']) < first || String(values['date']) > to);
    const hasMore = offset + rows.length < read.rowCount;
    if (isOutside || (hasMore && rows.length === 0)) {
      throw new ProviderError(KEY, 'failed', 'The provider responds with other rows than those that were asked for.');
    }
    const page = { records: rows.length, bytes: read.bytes };
    const yielded = (next: Round | undefined) => ({
      cursor: next ? { currency, readOn: stored.readOn, round: next } : { currency, readOn: here.today },
      done: next === undefined,
    });

    if (first < to && (quality.state === 'suppressed' || quality.state === 'partial')) {
      // It may be one of the days alone: what is sampled or withheld of all is there by the day.
      at = { ...here, isDaily: true };
      yield { ...page, facts: [], ...yielded(at) };
      continue;
    }
    const last = String(facts.at(-1)?.values['date'] ?? to);
    if (offset > 0 || (hasMore && last === to)) {
      // One day on several pages: none of them has all of it, so that nothing of it can be withdrawn.
      at = hasMore ? { ...here, offset: offset + rows.length } : continued(here, addDays(to, -1));
      const whole = quality.state === 'complete' ? { state: 'partial' as const, reason: 'several_pages' } : quality;
      const covered = hasMore ? [] : coveredBy(whole, { days, now, first: to, last: to });
      yield { ...page, facts: quality.state === 'unavailable' ? [] : facts, ...yielded(at), covered };
      continue;
    }
    // Of its last day the page may have a part.
    const whole = hasMore ? addDays(last, 1) : first;
    at = continued(here, addDays(whole, -1));
    // Rows that are withheld are not gone; rows that sampling or the row of others has replaced are.
    const isExhaustive = quality.state === 'complete' || quality.state === 'partial';
    yield {
      ...page,
      facts: quality.state === 'unavailable' ? [] : facts.filter(({ values }) => String(values['date']) >= whole),
      ...yielded(at),
      exhaustive: isExhaustive ? timeOf(days, whole, to) : undefined,
      covered: coveredBy(quality, { days, now, first: whole, last: to }),
    };
  }
}

export const dailyTotals: DatasetAdapter<OAuth2Credential, Settings> = {
  version: 1,
  schemaVersion: 1,
  columns: {
    date: 'day',
    country: 'text',
    device_category: 'text',
    session_default_channel_group: 'text',
    sessions: 'count',
    engaged_sessions: 'count',
    screen_page_views: 'count',
    event_count: 'count',
    purchase_revenue: 'amount',
    currency: 'text',
  },
  rhythm: { tail: { everySeconds: 6 * 3_600 }, backfill: true },
  discover: propertySources,
  collect,
};
