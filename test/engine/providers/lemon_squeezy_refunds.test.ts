import t from 'tap';
import { keysOf, known } from './dataset_calls.ts';
import { DAY, HOUR, NOW, openSales } from './lemon_squeezy_sales_support.ts';
import { invoice, iso, order } from './lemon_squeezy_shop.ts';

t.test('each growth of what was paid back is a fact of its own', async (test) => {
  const sold = NOW - 300 * DAY;
  const { shop, round } = await openSales(test, { orders: [order(1, sold)] });
  const facts = [...(await round('rescan')).facts];
  // As documented: a part leaves the order paid.
  shop.orders = [order(1, sold, { refunded_amount: 500, updated_at: iso(NOW - 2 * DAY) })];
  test.same(keysOf(await round('tail')), [], 'too far back for a tail');
  facts.push(...(await round('rescan')).facts);
  const part = known(facts).get('refund:order:1:500');
  test.match(part, {
    effectiveAt: NOW - 2 * DAY,
    contentAt: sold,
    values: { kind: 'refund', record: 'order:1', cumulative: '5', date_known: false, total: null, status: 'paid' },
  });
  // Something else changes: the refund stays where it was first seen.
  shop.orders = [order(1, sold, { refunded_amount: 500, status: 'partial_refund', updated_at: iso(NOW - DAY) })];
  facts.push(...(await round('rescan')).facts);
  test.same(known(facts).get('refund:order:1:500'), part);
  test.match(known(facts).get('order:1')?.values, { status: 'partial_refund', total: '11.99' });
  const whole = { refunded: true, refunded_amount: 1_199, refunded_at: iso(NOW - 2 * HOUR), status: 'refunded' };
  shop.orders = [order(1, sold, { ...whole, updated_at: iso(NOW - HOUR) })];
  facts.push(...(await round('rescan')).facts);
  const all = known(facts);
  test.same([...all.keys()], ['order:1', 'refund:order:1:500', 'refund:order:1:1199']);
  test.same(all.get('refund:order:1:500'), part);
  test.match(all.get('refund:order:1:1199'), {
    effectiveAt: NOW - 2 * HOUR,
    contentAt: sold,
    values: { cumulative: '11.99', date_known: true },
  });
});

t.test('an invoice that was paid back without a sum was paid back whole', async (test) => {
  const { refunded_amount: _, ...attributes } = invoice(3, NOW - DAY).attributes;
  const paidBack = { ...attributes, refunded: true, refunded_at: iso(NOW - HOUR), status: 'refunded' };
  const { round } = await openSales(test, {
    invoices: [{ type: 'subscription-invoices', id: '3', attributes: paidBack }],
  });
  const found = await round('tail');
  test.match(known(found.facts).get('refund:invoice:3:1199')?.values, { cumulative: '11.99', product: '4' });
});
