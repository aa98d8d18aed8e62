import { z } from 'zod';
import { fromMinorUnits, STRIPE_DIGITS } from '../../amounts.ts';
import type { CollectCall, DatasetAdapter, Fact, FactPage } from '../dataset.ts';
import { currency, readCursor, word } from '../fact_fields.ts';
import { backfillStart, DAY_MS, utcMonth } from '../periods.ts';
import { sources } from './account.ts';
import { readList, type StripeList, stripeId } from './list.ts';
import type { Credential } from './site.ts';

type Call = CollectCall<Credential>;

/** What Stripe shows late is before the end of the round that missed it by no more than this. */
const OVERLAP_MS = 3_600_000;

const transaction = z.object({
  id: stripeId,
  amount: z.int(),
  fee: z.int(),
  net: z.int(),
  currency,
  reporting_category: word,
  created: z.int().min(0),
  livemode: z.boolean().nullish(),
});
type Transaction = z.output<typeof transaction>;

/** Never changes: what is undone is a transaction of its own. */
function factOf(of: Transaction): Fact {
  const amountOf = (minor: number) => fromMinorUnits(minor, of.currency, STRIPE_DIGITS);
  return {
    key: of.id,
    effectiveAt: of.created * 1_000,
    revision: null,
    values: {
      amount: amountOf(of.amount),
      fee: amountOf(of.fee),
      net: amountOf(of.net),
      currency: of.currency,
      reporting_category: of.reporting_category,
    },
  };
}

async function read(call: Call, query: Record<string, number>, after: string | undefined) {
  const list = await readList(call, 'balance_transactions', transaction, query, after);
  const isLive = call.source.environment === 'live';
  const facts = list.rows.filter(({ livemode }) => (livemode ?? isLive) === isLive).map(factOf);
  return { list, page: { records: list.rows.length, bytes: list.bytes, facts } };
}

/** Stripe counts whole seconds. */
const seconds = (time: number) => Math.floor(time / 1_000);

const between = z.object({ known: z.int() });
const within = z.object({ known: z.int().nullable(), at: z.int(), after: stripeId });

/** From now back to what is known. What comes meanwhile stands before the first page, and is for the next round. */
async function* tail(call: Call): AsyncGenerator<FactPage, void, void> {
  const stored = readCursor(z.union([within, between]), call.cursor);
  const at = stored && 'at' in stored ? stored.at : call.now.getTime();
  const known = stored?.known ?? null;
  const floor = (known ?? at - DAY_MS) - OVERLAP_MS;
  let after = stored && 'after' in stored ? stored.after : undefined;
  for (;;) {
    const { list, page }: { list: StripeList<Transaction>; page: Pick<FactPage, 'records' | 'bytes' | 'facts'> } =
      await read(call, { 'created[gte]': seconds(floor) }, after);
    if (list.next === undefined) {
      const start = known ?? floor;
      const covered = start < at ? ([{ start, end: at, state: 'complete' }] as const) : [];
      yield { ...page, cursor: { known: Math.max(at, known ?? at) }, done: true, covered };
      return;
    }
    after = list.next;
    yield { ...page, cursor: { known, at, after }, done: false };
  }
}

const month = z.object({ from: z.int(), end: z.int(), after: stripeId.nullable().default(null) });

/** Month by month, each whole before the one before it. */
async function* backfill(call: Call): AsyncGenerator<FactPage, void, void> {
  const now = call.now.getTime();
  let at = readCursor(month, call.cursor) ?? { from: backfillStart(now), end: now, after: null };
  for (;;) {
    const { from, end } = at;
    const start = Math.max(from, utcMonth(end - 1).start);
    // The end may lie within a second: of that one all is taken.
    const query = { 'created[gte]': seconds(start), 'created[lt]': Math.ceil(end / 1_000) };
    const { list, page }: Awaited<ReturnType<typeof read>> = await read(call, query, at.after ?? undefined);
    if (list.next !== undefined) {
      at = { ...at, after: list.next };
      yield { ...page, cursor: at, done: false };
      continue;
    }
    at = { from, end: start, after: null };
    const covered = [{ start, end, state: 'complete' }] as const;
    const done = start <= from;
    yield { ...page, cursor: done ? null : at, done, covered };
    if (done) return;
  }
}

export const balanceTransactions: DatasetAdapter<Credential, unknown> = {
  version: 1,
  schemaVersion: 1,
  columns: { amount: 'amount', fee: 'amount', net: 'amount', currency: 'text', reporting_category: 'text' },
  rhythm: { tail: { everySeconds: 900 }, backfill: true },
  lasting: ['known', 'from', 'end'],
  discover: sources,
  collect: (call) => (call.mode === 'backfill' ? backfill(call) : tail(call)),
};
