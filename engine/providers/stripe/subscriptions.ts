import { z } from 'zod';
import { STRIPE_DIGITS } from '../../amounts.ts';
import type { CollectCall, DatasetAdapter, Fact, FactPage } from '../dataset.ts';
import { currency, readCursor, word } from '../fact_fields.ts';
import {
  type Moment,
  moment,
  momentOf,
  pictured,
  SUBSCRIPTION_COLUMNS,
  subscriptionFact,
} from '../subscription_facts.ts';
import { sources } from './account.ts';
import { readList, stripeId } from './list.ts';
import type { Credential } from './site.ts';

type Call = CollectCall<Credential>;

const item = z.object({
  id: stripeId,
  /** Metered ones have none. */
  quantity: z.int().min(0).nullish(),
  price: z.object({
    id: stripeId,
    currency,
    billing_scheme: word,
    unit_amount_decimal: z
      .string()
      .regex(/^\d{1,20}(?:\.\d{1,12})?$/)
      .nullish(),
    recurring: z.object({ interval: word, interval_count: z.int().min(1), usage_type: word }).nullish(),
    transform_quantity: z.object({}).nullish(),
  }),
});

const subscription = z.object({
  id: stripeId,
  status: word,
  livemode: z.boolean(),
  items: z.object({ data: z.array(item), has_more: z.boolean().nullish() }),
});

/** One whose items are more than Stripe shows with it; `after`: of the items, where some were read. */
const parent = z.object({ id: stripeId, status: word, after: stripeId.optional() });
type Parent = z.output<typeof parent>;

const position = z.object({
  ...moment.shape,
  /** Null: nothing was read, or all of it. */
  after: stripeId.nullable(),
  isRead: z.boolean(),
  parents: z.array(parent),
});
type Position = z.output<typeof position>;

const factsOf = (of: Pick<Parent, 'id' | 'status'>, items: readonly z.output<typeof item>[], at: Moment): Fact[] =>
  items.map(({ id, quantity, price }) =>
    subscriptionFact(
      {
        item: id,
        subscription: of.id,
        status: of.status,
        price: price.id,
        quantity: quantity ?? null,
        unitMinor: price.unit_amount_decimal ?? null,
        currency: price.currency,
        interval: price.recurring?.interval ?? null,
        intervalCount: price.recurring?.interval_count ?? null,
        isTiered: price.billing_scheme !== 'per_unit' || Boolean(price.transform_quantity),
        isMetered: price.recurring?.usage_type === 'metered',
      },
      at,
      STRIPE_DIGITS,
    ),
  );

type Step = Readonly<{ page: Pick<FactPage, 'records' | 'bytes' | 'facts'>; next: Position }>;

/** All that are not over: without `status` Stripe leaves cancelled ones out. */
async function readSubscriptions(call: Call, at: Position): Promise<Step> {
  const list = await readList(call, 'subscriptions', subscription, {}, at.after ?? undefined);
  const isLive = call.source.environment === 'live';
  const ours = list.rows.filter(({ livemode }) => livemode === isLive);
  const [parents, whole] = [ours.filter(({ items }) => items.has_more), ours.filter(({ items }) => !items.has_more)];
  const facts = whole.flatMap((of) => factsOf(of, of.items.data, at));
  return {
    page: { records: list.rows.length, bytes: list.bytes, facts },
    next: {
      ...at,
      after: list.next ?? null,
      isRead: list.next === undefined,
      parents: parents.map(({ id, status }) => ({ id, status })),
    },
  };
}

async function readItems(call: Call, at: Position, first: Parent): Promise<Step> {
  const query = { subscription: first.id };
  const list = await readList(call, 'subscription_items', item, query, first.after);
  const more = list.next === undefined ? [] : [{ ...first, after: list.next }];
  return {
    page: { records: list.rows.length, bytes: list.bytes, facts: factsOf(first, list.rows, at) },
    next: { ...at, parents: [...more, ...at.parents.slice(1)] },
  };
}

async function* collect(call: Call): AsyncGenerator<FactPage, void, void> {
  const { timezone } = call.source;
  const begin = { ...momentOf(timezone, call.now), after: null, isRead: false, parents: [] };
  let at: Position = readCursor(position, call.cursor) ?? begin;
  for (;;) {
    const [first] = at.parents;
    const { page, next }: Step = first ? await readItems(call, at, first) : await readSubscriptions(call, at);
    at = next;
    if (at.isRead && at.parents.length === 0) {
      yield { ...page, cursor: null, done: true, covered: pictured(timezone, at) };
      return;
    }
    yield { ...page, cursor: at, done: false };
  }
}

export const subscriptions: DatasetAdapter<Credential, unknown> = {
  version: 1,
  schemaVersion: 1,
  columns: SUBSCRIPTION_COLUMNS,
  rhythm: { tail: 'midnight' },
  isSnapshot: true,
  discover: sources,
  collect,
};
