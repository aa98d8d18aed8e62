import { z } from 'zod';
import { CursorMovedError, type DatasetAdapter, type Fact, type FactPage } from '../dataset.ts';
import { currency, readCursor, word } from '../fact_fields.ts';
import { ProviderError } from '../outgoing/index.ts';
import {
  type Moment,
  moment,
  momentOf,
  pictured,
  SUBSCRIPTION_COLUMNS,
  subscriptionFact,
} from '../subscription_facts.ts';
import { type Credential, KEY, readSized, type Settings } from './api.ts';
import { type Call, isOf, type List, placed, readList, recordId, reference, sources } from './list.ts';

const item = z.object({
  id: recordId,
  attributes: z.object({
    subscription_id: reference,
    price_id: reference.nullish(),
    /** Those billed by use have none. */
    quantity: z.int().min(0).nullish(),
    is_usage_based: z.boolean().nullish(),
  }),
});
type Item = z.output<typeof item>;

const subscription = z.object({
  type: z.literal('subscriptions'),
  id: recordId,
  attributes: z.object({ ...placed, status: word }),
});

const price = z.object({
  type: z.literal('prices'),
  id: recordId,
  attributes: z.object({
    scheme: word,
    usage_aggregation: word.nullish(),
    unit_price: z.int().min(0).nullish(),
    unit_price_decimal: z
      .string()
      .regex(/^\d{1,20}(?:\.\d{1,18})?$/)
      .nullish(),
    renewal_interval_unit: word.nullish(),
    renewal_interval_quantity: z.int().min(1).nullish(),
  }),
});
const READ_TYPES = ['subscriptions', 'prices'];
const other = z
  .object({ type: z.string().refine((type) => !READ_TYPES.includes(type)) })
  .transform(() => ({ type: 'other' as const }));
const included = z.union([subscription, price, other]);
type Included = z.output<typeof included>;

const store = z.object({ data: z.object({ id: recordId, attributes: z.object({ currency }) }) });

const position = z.object({
  ...moment.shape,
  /** Of the store, which its prices are in. */
  currency: z.string(),
  page: z.int().min(1),
  /** How many there were at the beginning. */
  total: z.int().nullable(),
  /** How many were read, each once. */
  count: z.int(),
  /** How many stood on two pages. */
  repeated: z.int(),
  /** Those of the last page. */
  last: z.array(recordId),
});
type Position = z.output<typeof position>;

async function readStore(call: Call): Promise<FactPage & Readonly<{ cursor: Position }>> {
  const { context, access, source } = call;
  const path = `/v1/stores/${source.resourceId}`;
  const { data, bytes } = await readSized(context, access.credential, path, store);
  const begin = { page: 1, total: null, count: 0, repeated: 0, last: [] };
  const at = { ...momentOf(source.timezone, call.now), currency: data.data.attributes.currency, ...begin };
  return { records: 1, bytes, facts: [], cursor: at, done: false };
}

function factOf(
  { id, attributes }: Item,
  of: z.output<typeof subscription>,
  priced: z.output<typeof price> | undefined,
) {
  const terms = priced?.attributes;
  return (inCurrency: string, at: Moment): Fact =>
    subscriptionFact(
      {
        item: id,
        subscription: of.id,
        status: of.attributes.status,
        price: attributes.price_id ?? null,
        quantity: attributes.quantity ?? null,
        unitMinor: terms?.unit_price ?? terms?.unit_price_decimal ?? null,
        currency: inCurrency,
        interval: terms?.renewal_interval_unit ?? null,
        intervalCount: terms?.renewal_interval_quantity ?? null,
        // Packages, steps, or a price that is gone.
        isTiered: terms?.scheme !== 'standard',
        isMetered: attributes.is_usage_based === true || Boolean(terms?.usage_aggregation),
      },
      at,
    );
}

/** Those of the store that are not over. @throws ProviderError where an item comes without its subscription */
function factsOf(call: Call, list: List<Item, Included>, at: Position): Fact[] {
  const subscriptions = new Map(list.included.flatMap((of) => (of.type === 'subscriptions' ? [[of.id, of]] : [])));
  const prices = new Map(list.included.flatMap((of) => (of.type === 'prices' ? [[of.id, of]] : [])));
  return list.rows.flatMap((row) => {
    const of = subscriptions.get(row.attributes.subscription_id);
    if (!of) throw new ProviderError(KEY, 'failed', 'The provider leaves out what it was asked to include.');
    if (!isOf(call, of.attributes) || of.attributes.status === 'expired') return [];
    return [factOf(row, of, prices.get(row.attributes.price_id ?? ''))(at.currency, at)];
  });
}

/** @throws CursorMovedError where rows moved between pages, so that one may have been on none of them */
function after(at: Position, { rows, hasMore, total }: List<Item, Included>): Position {
  const before = new Set(at.last);
  const fresh = rows.filter(({ id }) => !before.has(id)).length;
  const first = at.total ?? total ?? null;
  const next = {
    ...at,
    page: at.page + 1,
    total: first,
    count: at.count + fresh,
    repeated: at.repeated + rows.length - fresh,
    last: rows.map(({ id }) => id),
  };
  if (hasMore || first === null) return next;
  const isFewer = total !== undefined && total < first;
  if (isFewer || (next.repeated > 0 && next.count < first)) {
    throw new CursorMovedError('Subscriptions moved between the pages.');
  }
  return next;
}

async function* collect(call: Call): AsyncGenerator<FactPage, void, void> {
  let at = readCursor(position, call.cursor);
  if (!at) {
    const begin = await readStore(call);
    yield begin;
    at = begin.cursor;
  }
  for (;;) {
    // All of the account: there is no filter for a store.
    const list: List<Item, Included> = await readList(call, at.page, {
      path: '/v1/subscription-items',
      row: item,
      included,
      query: { include: 'subscription,price' },
    });
    const facts = factsOf(call, list, at);
    at = after(at, list);
    const page = { records: list.rows.length, bytes: list.bytes, facts };
    if (!list.hasMore) {
      yield { ...page, cursor: null, done: true, covered: pictured(call.source.timezone, at) };
      return;
    }
    yield { ...page, cursor: at, done: false };
  }
}

export const subscriptions: DatasetAdapter<Credential, Settings> = {
  version: 1,
  schemaVersion: 1,
  columns: SUBSCRIPTION_COLUMNS,
  rhythm: { tail: 'midnight' },
  isSnapshot: true,
  discover: sources,
  collect,
};
