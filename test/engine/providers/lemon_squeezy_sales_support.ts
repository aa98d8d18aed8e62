import type * as Tap from 'tap';
import { lemonSqueezy } from '../../../engine/providers/lemon-squeezy/index.ts';
import { datasetOf, type RoundOptions } from './dataset_calls.ts';
import { invoice, openShop, order, type Row, type Shop, STORE } from './lemon_squeezy_shop.ts';
import { openClient } from './support.ts';

export const HOUR = 3_600_000;
export const DAY = 24 * HOUR;
export const NOW = Date.parse('2026-06-15T12:00:00Z');
export const now = new Date(NOW);
export const credential = { kind: 'api_key', apiKey: 'x'.repeat(40) };
export const settings = { kind: 'lemon_squeezy', storeIds: [STORE] };

export async function openSales(test: Tap.Test, stock: Partial<Shop> = {}) {
  const { shop, server } = await openShop(test, stock);
  const client = openClient(test, { 'https://api.lemonsqueezy.com': server.origin });
  const sales = datasetOf(lemonSqueezy, 'ls.sales', { client, credential, settings });
  const source = await sales.source();
  server.calls.splice(0);
  const round = (mode: RoundOptions['mode'], more: Partial<RoundOptions> = {}) =>
    sales.round({ source, mode, now, ...more });
  return { shop, server, client, sales, source, round };
}

export const many = (count: number, make: (n: number) => Row) => Array.from({ length: count }, (_, n) => make(n + 1));
export const recordsOf = ({ orders, invoices }: Shop) =>
  [...orders.map(({ id }) => `order:${id}`), ...invoices.map(({ id }) => `invoice:${id}`)].sort();

/** A busy year: sales at all distances, some of them at one time. */
export const year = () => ({
  orders: many(250, (n) => order(n, NOW - Math.floor(n / 3) * 4 * DAY - HOUR)),
  invoices: many(230, (n) => invoice(n, NOW - Math.floor(n / 2) * 3 * DAY - 2 * HOUR)),
});
