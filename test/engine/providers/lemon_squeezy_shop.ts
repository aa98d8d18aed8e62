import type { ServerResponse } from 'node:http';
import type { TearDown } from '../../support/database.ts';
import { type Call, openServer } from './support.ts';

// A shop as the API of Lemon Squeezy shows it: pages by number, newest first, what belongs to another record on demand.

export const STORE = '1';
/** In texts of people and products, and nowhere else. */
export const PLANTED = 'planted-4711';

type Attributes = Readonly<Record<string, unknown>>;
export type Row = Readonly<{ type: string; id: string; attributes: Attributes }>;

export const iso = (time: number) => new Date(time).toISOString().replace('Z', '000Z');

const person = { user_name: PLANTED, user_email: `${PLANTED}@example.com`, status_formatted: PLANTED };

const money = (total: number) => ({
  currency: 'USD',
  currency_rate: '1.0000',
  subtotal: total - 200,
  discount_total: 0,
  tax: 200,
  total,
  total_formatted: PLANTED,
});

const unpaid = { status: 'paid', refunded: false, refunded_at: null, refunded_amount: 0 };

function common(time: number) {
  return {
    store_id: Number(STORE),
    customer_id: 7,
    ...person,
    ...money(1_199),
    ...unpaid,
    created_at: iso(time),
    updated_at: iso(time),
    test_mode: false,
  };
}

export function order(id: number, time: number, more: Attributes = {}): Row {
  const first = { id: 1, order_id: id, product_id: 3, product_name: PLANTED, price: 999, test_mode: false };
  return { type: 'orders', id: String(id), attributes: { ...common(time), first_order_item: first, ...more } };
}

export function invoice(id: number, time: number, more: Attributes = {}): Row {
  const own = { subscription_id: 5, billing_reason: 'renewal', card_brand: 'visa', card_last_four: '4711' };
  return { type: 'subscription-invoices', id: String(id), attributes: { ...common(time), ...own, ...more } };
}

export function subscription(id: number, more: Attributes = {}): Row {
  const attributes = { ...common(0), product_id: 4, product_name: PLANTED, variant_id: 2, status: 'active', ...more };
  return { type: 'subscriptions', id: String(id), attributes };
}

export function item(id: number, of: number, more: Attributes = {}): Row {
  const attributes = { subscription_id: of, price_id: 8, quantity: 1, is_usage_based: false, ...more };
  return { type: 'subscription-items', id: String(id), attributes };
}

export function price(id: number, more: Attributes = {}): Row {
  const terms = { unit_price: 999, unit_price_decimal: null, usage_aggregation: null, tiers: null };
  const rhythm = { renewal_interval_unit: 'month', renewal_interval_quantity: 1 };
  return { type: 'prices', id: String(id), attributes: { scheme: 'standard', ...terms, ...rhythm, ...more } };
}

export type Shop = {
  isTest: boolean;
  largestPage: number;
  orders: Row[];
  invoices: Row[];
  items: Row[];
  subscriptions: Row[];
  prices: Row[];
  /** What of a page is sent, in place of it. */
  send: (page: object, call: Call, res: ServerResponse) => unknown;
};

const created = ({ attributes }: Row) => String(attributes['created_at'] ?? '');

export async function openShop(t: TearDown, stock: Partial<Shop> = {}) {
  const shop: Shop = {
    isTest: false,
    largestPage: 100,
    orders: [],
    invoices: [],
    items: [],
    subscriptions: [subscription(5)],
    prices: [price(8)],
    send: (page) => page,
    ...stock,
  };
  const lists = new Map<string, () => Row[]>([
    ['/v1/orders', () => shop.orders],
    ['/v1/subscription-invoices', () => shop.invoices],
    ['/v1/subscription-items', () => shop.items],
  ]);

  function pageOf({ pathname, searchParams }: URL, rows: readonly Row[]) {
    const number = Number(searchParams.get('page[number]'));
    const size = Math.min(Number(searchParams.get('page[size]')), shop.largestPage);
    // Equal times stay as they are: by id as good as by chance.
    const sorted = rows.toSorted((a, b) => created(b).localeCompare(created(a)));
    const data = sorted.slice((number - 1) * size, number * size);
    const lastPage = Math.max(1, Math.ceil(sorted.length / size));
    const wanted = searchParams.get('include')?.split(',') ?? [];
    const of = new Set(data.map(({ attributes }) => String(attributes['subscription_id'])));
    const included = [
      ...(wanted.includes('subscription') ? shop.subscriptions.filter(({ id }) => of.has(id)) : []),
      ...(wanted.includes('price') ? shop.prices : []),
    ];
    const link = (page: number) => `https://api.lemonsqueezy.com${pathname}?page%5Bnumber%5D=${page}`;
    return {
      meta: { page: { currentPage: number, lastPage, perPage: size, total: sorted.length } },
      jsonapi: { version: '1.0' },
      links: { first: link(1), last: link(lastPage), ...(number < lastPage ? { next: link(number + 1) } : {}) },
      data,
      ...(wanted.length > 0 ? { included } : {}),
    };
  }

  const server = await openServer(t, (call, res) => {
    const { pathname } = call.url;
    if (pathname === '/v1/users/me') return { data: { id: '1', ...person }, meta: { test_mode: shop.isTest } };
    if (pathname === `/v1/stores/${STORE}`) {
      return { data: { type: 'stores', id: STORE, attributes: { name: PLANTED, currency: 'USD' } } };
    }
    return shop.send(pageOf(call.url, lists.get(pathname)?.() ?? []), call, res);
  });
  return { shop, server };
}
