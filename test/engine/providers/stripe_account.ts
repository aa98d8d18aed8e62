import type { ServerResponse } from 'node:http';
import type { TearDown } from '../../support/database.ts';
import { type Call, json, openServer } from './support.ts';

// An account as the API of Stripe shows it: lists newest first, from an id on.

export const ACCOUNT = 'acct_1AbCdEfGhIjKlMnO';
/** In texts of people and products, and nowhere else. */
export const PLANTED = 'planted-4711';

type More = Readonly<Record<string, unknown>>;
export type Row = Readonly<{ id: string; created: number }> & More;

/** @param created in seconds */
export const transaction = (id: string, created: number, more: More = {}): Row => ({
  id,
  object: 'balance_transaction',
  amount: 1_199,
  fee: 65,
  net: 1_134,
  currency: 'eur',
  reporting_category: 'charge',
  type: 'charge',
  description: PLANTED,
  fee_details: [{ amount: 65, description: PLANTED }],
  created,
  ...more,
});

export const price = (id: string, more: More = {}) => ({
  id,
  object: 'price',
  nickname: PLANTED,
  billing_scheme: 'per_unit',
  currency: 'eur',
  unit_amount: 999,
  unit_amount_decimal: '999',
  recurring: { interval: 'month', interval_count: 1, usage_type: 'licensed', meter: null },
  transform_quantity: null,
  ...more,
});

export const item = (id: string, more: More = {}): Row => ({
  id,
  object: 'subscription_item',
  created: 1,
  quantity: 1,
  price: price('price_1'),
  ...more,
});

/** @param created in seconds */
export const subscription = (id: string, created: number, items: readonly Row[], more: More = {}): Row => ({
  id,
  object: 'subscription',
  status: 'active',
  livemode: true,
  customer: 'cus_1',
  description: PLANTED,
  created,
  items: { object: 'list', data: items, has_more: false },
  ...more,
});

export type Account = {
  timezone: string | null;
  transactions: Row[];
  subscriptions: Row[];
  /** Of one subscription each, where they are more than it shows. */
  items: Readonly<Record<string, readonly Row[]>>;
  /** What of a page is sent, in place of it. */
  send: (page: object, call: Call, res: ServerResponse) => unknown;
};

export async function openAccount(t: TearDown, stock: Partial<Account> = {}) {
  const account: Account = {
    timezone: 'America/Chicago',
    transactions: [],
    subscriptions: [],
    items: {},
    send: (page) => page,
    ...stock,
  };

  function pageOf({ pathname, searchParams }: URL, rows: readonly Row[], res: ServerResponse) {
    const numberOf = (name: string) => Number(searchParams.get(name) ?? Number.NaN);
    const [from, before, limit] = [numberOf('created[gte]'), numberOf('created[lt]'), numberOf('limit')];
    const sorted = rows
      .filter(({ created }) => !(created < from) && !(created >= before))
      .toSorted((a, b) => b.created - a.created);
    const after = searchParams.get('starting_after');
    const index = sorted.findIndex(({ id }) => id === after);
    if (after !== null && index < 0) {
      json(res, 400, { error: { type: 'invalid_request_error', code: 'resource_missing', message: PLANTED } });
      return undefined;
    }
    const data = sorted.slice(index + 1, index + 1 + limit);
    return { object: 'list', url: pathname, has_more: index + 1 + limit < sorted.length, data };
  }

  const server = await openServer(t, (call, res) => {
    const { pathname, searchParams } = call.url;
    if (pathname === '/v1/account') {
      return { id: ACCOUNT, settings: { dashboard: { display_name: PLANTED, timezone: account.timezone } } };
    }
    const rows = new Map<string, readonly Row[]>([
      ['/v1/balance_transactions', account.transactions],
      ['/v1/subscriptions', account.subscriptions],
      ['/v1/subscription_items', account.items[searchParams.get('subscription') ?? ''] ?? []],
    ]);
    const page = pageOf(call.url, rows.get(pathname) ?? [], res);
    return page && account.send(page, call, res);
  });
  return { account, server };
}
