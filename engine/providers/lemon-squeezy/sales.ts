import { z } from 'zod';
import type { Covered, DatasetAdapter, Fact, FactPage } from '../dataset.ts';
import { readCursor } from '../fact_fields.ts';
import { backfillStart, DAY_MS } from '../periods.ts';
import type { Credential, Settings } from './api.ts';
import { type Call, isOf, readList, reference, sources } from './list.ts';
import { invoice, order, SALE_COLUMNS, saleFacts } from './sale_facts.ts';

/** What is read again each time: what shows late, and what changes soon after it was made, as payments that are pending. */
const OVERLAP_MS = 3_600_000;

/** Orders and invoices are two lists, each newest first; both are read, always the one that is less far back. */
const LISTS = ['orders', 'invoices'] as const;
type Name = (typeof LISTS)[number];

const list = z.object({
  page: z.int().min(1),
  /** All that was made since then is read. */
  reached: z.int(),
  isRead: z.boolean(),
  total: z.int().nullable(),
});
const position = z.object({
  startedAt: z.int(),
  /** Nothing made before it is read. */
  floor: z.int(),
  /** Known before this round from there on. */
  known: z.int(),
  /** Coverage was told from there on. */
  told: z.int(),
  /** When the oldest one was made that was read. */
  oldest: z.int(),
  lists: z.object({ orders: list, invoices: list }),
});
type Position = z.output<typeof position>;

const between = z.object({ known: z.int() });

type Page = Readonly<{
  facts: readonly Fact[];
  records: number;
  bytes: number;
  /** When they were made. */
  times: readonly number[];
  hasMore: boolean;
  total: number | undefined;
}>;

async function readOrders(call: Call, number: number, floor: number): Promise<Page> {
  const { rows, ...rest } = await readList(call, number, {
    path: '/v1/orders',
    row: order,
    included: z.unknown(),
    query: { 'filter[store_id]': call.source.resourceId },
  });
  const facts = rows
    .filter(({ attributes }) => isOf(call, attributes) && attributes.created_at >= floor)
    .flatMap(({ id, attributes: { first_order_item: item, ...attributes } }) =>
      saleFacts(
        { kind: 'order', record: `order:${id}`, product: item?.product_id ?? null, attributes },
        call.pseudonym,
      ),
    );
  return { ...rest, facts, records: rows.length, times: rows.map(({ attributes }) => attributes.created_at) };
}

const sibling = z.object({
  type: z.string(),
  id: z.string(),
  attributes: z.object({ product_id: reference.nullish() }).nullish(),
});

/** The first invoice of a subscription is its order, and left out. What an invoice is for, its subscription says. */
async function readInvoices(call: Call, number: number, floor: number): Promise<Page> {
  const { rows, included, ...rest } = await readList(call, number, {
    path: '/v1/subscription-invoices',
    row: invoice,
    included: sibling,
    query: { 'filter[store_id]': call.source.resourceId, include: 'subscription' },
  });
  const products = new Map(
    included.flatMap(({ type, id, attributes }) =>
      type === 'subscriptions' ? [[id, attributes?.product_id ?? null] as const] : [],
    ),
  );
  const facts = rows
    .filter(({ attributes }) => isOf(call, attributes) && attributes.created_at >= floor)
    .filter(({ attributes }) => attributes.billing_reason !== 'initial')
    .flatMap(({ id, attributes }) => {
      const product = products.get(attributes.subscription_id) ?? null;
      return saleFacts({ kind: 'renewal', record: `invoice:${id}`, product, attributes }, call.pseudonym);
    });
  return { ...rest, facts, records: rows.length, times: rows.map(({ attributes }) => attributes.created_at) };
}

const readers = { orders: readOrders, invoices: readInvoices };

function begin({ mode, now }: Call, known: number | undefined): Position {
  const startedAt = now.getTime();
  const unread = { page: 1, reached: startedAt, isRead: false, total: null };
  const floors = {
    tail: (known ?? startedAt - DAY_MS) - OVERLAP_MS,
    backfill: backfillStart(startedAt),
    rescan: 0,
  };
  const floor = floors[mode];
  const lists = { orders: unread, invoices: unread };
  return { startedAt, floor, known: known ?? floor, told: startedAt, oldest: startedAt, lists };
}

function positionOf(call: Call): Position {
  const stored = readCursor(z.union([position, between]), call.cursor);
  return stored && 'lists' in stored ? stored : begin(call, stored?.known);
}

/** The list to read next; undefined: both are read. */
function behind({ lists }: Position): Name | undefined {
  const unread = LISTS.filter((name) => !lists[name].isRead);
  return unread.toSorted((a, b) => lists[b].reached - lists[a].reached)[0];
}

/**
 * Pages are numbered from the newest, so what is made meanwhile moves rows to later pages: they are read twice, and none is missed. All
 * that is newer than the newest of a page lies before it. The end is a page that is older than the floor from its first row to its last.
 */
function after(at: Position, name: Name, { times, hasMore, total }: Page): Position {
  const before = at.lists[name];
  const newest = Math.max(...times, Number.NEGATIVE_INFINITY);
  const isRead = !hasMore || newest < at.floor;
  const reached = isRead ? at.floor : Math.min(before.reached, newest + 1);
  const lists = { ...at.lists, [name]: { page: before.page + 1, reached, isRead, total: total ?? null } };
  return { ...at, oldest: Math.min(at.oldest, ...times), lists };
}

/** What both lists have been read through for. Before its first sale there is nothing of a store. */
function coverage({ mode }: Call, at: Position, isDone: boolean): { covered: readonly Covered[]; told: number } {
  const { orders, invoices } = at.lists;
  const isAll = mode === 'rescan' && isDone;
  const end = isAll ? Math.min(at.oldest, backfillStart(at.startedAt)) : at.known;
  const start = Math.max(orders.reached, invoices.reached, end);
  if (start >= at.told) return { covered: [], told: at.told };
  return { covered: [{ start, end: at.told, state: 'complete' }], told: start };
}

function totalOf({ lists: { orders, invoices } }: Position): number | undefined {
  return orders.total === null || invoices.total === null ? undefined : orders.total + invoices.total;
}

async function* collect(call: Call): AsyncGenerator<FactPage, void, void> {
  let at = positionOf(call);
  for (let name = behind(at); name !== undefined; name = behind(at)) {
    const page: Page = await readers[name](call, at.lists[name].page, at.floor);
    const next = after(at, name, page);
    const done = behind(next) === undefined;
    const { covered, told } = coverage(call, next, done);
    at = { ...next, told };
    const { records, bytes, facts } = page;
    const cursor = done ? (call.mode === 'tail' ? { known: Math.max(at.known, at.startedAt) } : null) : at;
    const total = call.mode === 'rescan' ? totalOf(at) : undefined;
    yield { records, bytes, facts, cursor, done, covered, total };
  }
}

export const sales: DatasetAdapter<Credential, Settings> = {
  version: 1,
  schemaVersion: 1,
  columns: SALE_COLUMNS,
  rhythm: { tail: { everySeconds: 900 }, rescan: { everySeconds: DAY_MS / 1_000 }, backfill: true },
  // A sale tells what it has paid back by now, and nothing of the steps.
  isRescanned: ({ kind }) => kind !== 'refund',
  discover: sources,
  collect,
};
