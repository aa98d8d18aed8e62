import t from 'tap';
import { CursorMovedError, type FactPage } from '../../../engine/providers/dataset.ts';
import { lemonSqueezy } from '../../../engine/providers/lemon-squeezy/index.ts';
import { datasetOf, extent, keysOf, known, pseudonym } from './dataset_calls.ts';
import {
  credential,
  DAY,
  HOUR,
  many,
  NOW,
  now,
  openSales,
  recordsOf,
  settings,
  year,
} from './lemon_squeezy_sales_support.ts';
import { invoice, iso, order, PLANTED, type Row, STORE, subscription } from './lemon_squeezy_shop.ts';
import { openClient } from './support.ts';

t.test('the sources are the stores of the settings, in the mode of the key', async (test) => {
  const { shop, sales, server } = await openSales(test);
  test.same(await sales.discover(), [{ resourceId: STORE, environment: 'live', timezone: null }]);
  shop.isTest = true;
  test.match(await sales.discover(), [{ environment: 'test' }]);
  const client = openClient(test, { 'https://api.lemonsqueezy.com': server.origin });
  const none = datasetOf(lemonSqueezy, 'ls.sales', { client, credential, settings: { ...settings, storeIds: [] } });
  test.same(await none.discover(), []);
});

t.test('a sale has what metrics count, and nothing that people wrote', async (test) => {
  const { round } = await openSales(test, {
    orders: [order(1, NOW - HOUR, { customer_id: 42, subtotal: 1_099, discount_total: 100, status: 'paid' })],
    invoices: [
      invoice(9, NOW - HOUR, {
        updated_at: iso(NOW - 60_000),
        billing_reason: 'updated',
        subtotal: -500,
        total: 0,
        tax: 0,
      }),
      invoice(8, NOW - 2 * HOUR),
      invoice(7, NOW - 3 * HOUR, { billing_reason: 'initial', refunded: true, refunded_at: iso(NOW) }),
    ],
  });
  const facts = known((await round('rescan')).facts);
  test.same([...facts.keys()], ['order:1', 'invoice:9', 'invoice:8']);
  test.same(facts.get('order:1'), {
    key: 'order:1',
    effectiveAt: NOW - HOUR,
    revision: NOW - HOUR,
    values: {
      kind: 'order',
      record: 'order:1',
      status: 'paid',
      product: '3',
      customer: pseudonym('42'),
      currency: 'USD',
      total: '11.99',
      subtotal: '10.99',
      tax: '2',
      discount: '1',
      cumulative: null,
      date_known: null,
    },
  });
  test.match(facts.get('invoice:9'), {
    revision: NOW - 60_000,
    values: { kind: 'renewal', product: '4', subtotal: '-5', total: '0' },
  });
  test.notMatch(JSON.stringify([...facts]), PLANTED);
});

t.test('amounts have as many digits as their currency', async (test) => {
  const { round } = await openSales(test, {
    orders: [
      order(1, NOW, { currency: 'JPY', total: 1_199 }),
      order(2, NOW, { currency: 'KWD', total: 1_199 }),
      order(3, NOW, { currency: 'eur', total: 1_199 }),
    ],
  });
  const facts = [...known((await round('rescan')).facts).values()];
  test.same(
    facts.map(({ values: { currency, total } }) => [currency, total]),
    [
      ['JPY', '1199'],
      ['KWD', '1.199'],
      ['EUR', '11.99'],
    ],
  );
});

t.test('all pages of both lists are read, in turns from the newest, by one process or by many', async (test) => {
  const stock = year();
  const { shop, server, round } = await openSales(test, stock);
  for (const mode of ['backfill', 'rescan'] as const) {
    for (const resumes of [false, true]) {
      const seen = new Set<string>();
      const { pages, covered, ...found } = await round(mode, {
        resumes,
        afterPage(page: FactPage) {
          for (const { key } of page.facts) seen.add(key);
          const from = page.covered?.at(-1)?.start;
          if (from === undefined) return;
          // Whatever was made since then has been read, of both lists.
          const missed = [...shop.orders, ...shop.invoices]
            .filter(({ attributes }) => Date.parse(String(attributes['created_at'])) >= from)
            .map(({ type, id }) => `${type === 'orders' ? 'order' : 'invoice'}:${id}`)
            .filter((key) => !seen.has(key));
          if (missed.length > 0) throw new Error(`${missed} are missed since ${from}`);
        },
      });
      test.same(keysOf(found), recordsOf(shop), mode);
      test.equal(pages.length, 6);
      test.same(
        pages.map(({ records }) => records),
        [100, 100, 100, 100, 50, 30],
      );
      test.ok(pages.every(({ bytes }) => bytes > 10_000));
      test.same(
        pages.map(({ done }) => done),
        [false, false, false, false, false, true],
      );
      test.same(extent(covered), { start: Date.parse('2025-05-31T00:00:00Z'), end: NOW }, mode);
      test.equal(found.cursor, null);
      test.same(
        pages.map(({ total }) => total),
        mode === 'backfill' ? Array(6).fill(undefined) : [undefined, ...Array(5).fill(480)],
      );
      test.notMatch(JSON.stringify(pages), PLANTED);
    }
  }
  const asked = server.calls.slice(0, 6).map(({ method, url, headers }) => {
    test.equal(method, 'GET');
    test.match(headers, { authorization: `Bearer ${credential.apiKey}`, accept: 'application/vnd.api+json' });
    test.equal(url.searchParams.get('page[size]'), '100');
    test.equal(url.searchParams.get('filter[store_id]'), STORE);
    return `${url.pathname} ${url.searchParams.get('page[number]')}`;
  });
  test.same(asked, [
    '/v1/orders 1',
    '/v1/subscription-invoices 1',
    '/v1/orders 2',
    '/v1/subscription-invoices 2',
    '/v1/orders 3',
    '/v1/subscription-invoices 3',
  ]);
});

t.test('the past is read for a year, and a rescan reads what was before as well', async (test) => {
  const old = Date.parse('2023-01-01T00:00:00Z');
  const { round, server } = await openSales(test, { orders: [order(2, NOW - DAY), order(1, old)] });
  const past = await round('backfill');
  test.same(keysOf(past), ['order:2']);
  test.same(extent(past.covered), { start: Date.parse('2025-05-31T00:00:00Z'), end: NOW });
  const all = await round('rescan');
  test.same(keysOf(all), ['order:1', 'order:2']);
  test.same(extent(all.covered), { start: old, end: NOW });
  test.equal(server.calls.length, 4);
});

t.test('a page that is older than what is asked for ends the list, a row does not', async (test) => {
  const { shop, round, server } = await openSales(test, {
    orders: many(350, (n) => order(n, NOW - (n <= 150 ? n : 400 + n) * DAY)),
  });
  shop.send = (page, { url }) => {
    if (url.pathname !== '/v1/orders' || url.searchParams.get('page[number]') !== '1') return page;
    const { data } = page as { data: Row[] };
    return { ...page, data: [order(999, NOW - 900 * DAY), ...data.slice(0, -1)] };
  };
  const found = await round('backfill');
  // The one that had to make room is the only one that is not there.
  test.equal(keysOf(found).length, 149);
  test.equal(server.calls.filter(({ url }) => url.pathname === '/v1/orders').length, 3);
});

t.test('a tail reads back to what is known, and a little further', async (test) => {
  const { shop, server, round } = await openSales(test, year());
  const first = await round('tail');
  test.same(extent(first.covered), { start: NOW - 25 * HOUR, end: NOW });
  test.same(keysOf(first), ['invoice:1', 'order:1', 'order:2']);
  test.same(first.cursor, { known: NOW });
  test.equal(server.calls.splice(0).length, 4);

  const later = NOW + 15 * 60_000;
  shop.orders.push(order(900, NOW + 60_000), order(901, NOW - 30 * 60_000, { status: 'pending' }));
  const second = await round('tail', { cursor: first.cursor, now: new Date(later) });
  // Who shows up late is within the hour before.
  test.same(keysOf(second), ['order:1', 'order:2', 'order:900', 'order:901']);
  test.same(extent(second.covered), { start: NOW, end: later });

  shop.orders.pop();
  shop.orders.push(order(901, NOW - 30 * 60_000, { updated_at: iso(later + 1) }));
  const third = await round('tail', { cursor: second.cursor, now: new Date(later + 60_000), resumes: true });
  test.match(known([...second.facts, ...third.facts]).get('order:901')?.values, { status: 'paid' });
  test.same(extent(third.covered), { start: later, end: later + 60_000 });
});

t.test('a tail that goes on later knows no more than when it began', async (test) => {
  const { shop, round } = await openSales(test, { orders: many(150, (n) => order(n, NOW - n * 1_000)) });
  const pages: FactPage[] = [];
  const ends = round('tail', {
    afterPage(page) {
      pages.push(page);
      throw new Error('enough');
    },
  });
  await test.rejects(ends, { message: 'enough' });
  shop.orders.push(order(900, NOW + 1_000));
  const rest = await round('tail', { cursor: pages[0]?.cursor, now: new Date(NOW + 2 * HOUR) });
  test.same(rest.cursor, { known: NOW });
  test.equal(extent([...(pages[0]?.covered ?? []), ...rest.covered]).end, NOW);
  const next = await round('tail', { cursor: rest.cursor, now: new Date(NOW + 2 * HOUR) });
  test.ok(keysOf(next).includes('order:900'));
});

t.test('what was made at one time is read whole, over pages and at the bound of what is known', async (test) => {
  const { round } = await openSales(test, { orders: many(250, (n) => order(n, NOW)) });
  const first = await round('tail', { now: new Date(NOW + 1_000) });
  test.equal(keysOf(first).length, 250);
  const second = await round('tail', { cursor: { known: NOW + HOUR }, now: new Date(NOW + 2 * HOUR) });
  test.equal(keysOf(second).length, 250);
});

t.test('what is sold between two pages moves rows, and none is missed', async (test) => {
  for (const resumes of [false, true]) {
    const { shop, round } = await openSales(test, year());
    const before = recordsOf(shop);
    let sold = 0;
    const found = await round('rescan', {
      resumes,
      afterPage() {
        for (let n = 0; n < 7; n += 1) {
          sold += 1;
          shop.orders.push(order(1_000 + sold, NOW + sold));
          shop.invoices.push(invoice(1_000 + sold, NOW + sold));
        }
      },
    });
    const keys = new Set(keysOf(found));
    test.same(
      before.filter((key) => !keys.has(key)),
      [],
    );
    test.ok(found.facts.length > keys.size, 'rows stood on two pages');
    test.equal(extent(found.covered).end, NOW);
  }
});

t.test('the order within a page and the counts of the provider are not relied on', async (test) => {
  const { shop, round } = await openSales(test, year());
  shop.send = (page) => {
    const { data, meta } = page as { data: Row[]; meta: { page: object } };
    return { ...page, data: data.toReversed(), meta: { page: { ...meta.page, lastPage: 1, total: 3 } }, links: {} };
  };
  const found = await round('backfill');
  test.same(keysOf(found), recordsOf(shop));
  test.equal(extent(found.covered).start, Date.parse('2025-05-31T00:00:00Z'));
  shop.send = (page) => page;
  shop.largestPage = 30;
  test.same(keysOf(await round('backfill')), recordsOf(shop), 'pages are shorter than asked for');
});

t.test('rows of the other mode and of other stores are left out, and counted', async (test) => {
  const rows = [order(1, NOW), order(2, NOW, { test_mode: true }), order(3, NOW, { store_id: 2 })];
  const { round, sales, shop } = await openSales(test, {
    orders: rows,
    invoices: [invoice(4, NOW, { test_mode: true })],
  });
  const live = await round('rescan');
  test.same(keysOf(live), ['order:1']);
  test.same(
    live.pages.map(({ records }) => records),
    [3, 1],
  );
  shop.isTest = true;
  const tested = await sales.round({ source: await sales.source(), mode: 'rescan', now });
  test.same(keysOf(tested), ['invoice:4', 'order:2']);
});

t.test('a shop without anything is known to have sold nothing', async (test) => {
  const { round } = await openSales(test);
  for (const mode of ['tail', 'backfill', 'rescan'] as const) {
    const { pages, facts, covered } = await round(mode);
    test.same([pages.length, facts.length], [2, 0]);
    const start = mode === 'tail' ? NOW - 25 * HOUR : Date.parse('2025-05-31T00:00:00Z');
    test.same(extent(covered), { start, end: NOW }, mode);
  }
});

t.test('a customer, a product, a subscription may be missing', async (test) => {
  const { round } = await openSales(test, {
    orders: [order(1, NOW, { customer_id: null, first_order_item: null })],
    invoices: [invoice(2, NOW)],
    subscriptions: [subscription(6)],
  });
  const facts = known((await round('rescan')).facts);
  test.match(facts.get('order:1')?.values, { customer: null, product: null });
  test.match(facts.get('invoice:2')?.values, { product: null });
});

t.test('a cursor of another form has the round begin anew', async (test) => {
  const { round } = await openSales(test);
  await test.rejects(round('tail', { cursor: { page: 'x' } }), CursorMovedError);
});
