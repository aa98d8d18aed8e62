import type * as Tap from 'tap';
import t from 'tap';
import { CursorMovedError, type FactPage } from '../../../engine/providers/dataset.ts';
import { lemonSqueezy } from '../../../engine/providers/lemon-squeezy/index.ts';
import { datasetOf, known, type RoundOptions } from './dataset_calls.ts';
import { item, openShop, PLANTED, price, type Row, type Shop, STORE, subscription } from './lemon_squeezy_shop.ts';
import { fails, json, openClient } from './support.ts';

const NOW = Date.parse('2026-03-28T23:05:00Z');
const now = new Date(NOW);
/** The day in Berlin on which clocks are put forward. */
const DAY = { start: Date.parse('2026-03-28T23:00:00Z'), end: Date.parse('2026-03-29T22:00:00Z'), state: 'complete' };
const credential = { kind: 'api_key', apiKey: 'x'.repeat(40) };
const settings = { kind: 'lemon_squeezy', storeIds: [STORE] };

async function open(test: Tap.Test, stock: Partial<Shop> = {}) {
  const { shop, server } = await openShop(test, stock);
  const client = openClient(test, { 'https://api.lemonsqueezy.com': server.origin });
  const snapshot = datasetOf(lemonSqueezy, 'ls.subscription_snapshot', { client, credential, settings });
  const source = await snapshot.source('Europe/Berlin');
  server.calls.splice(0);
  const round = (more: Partial<RoundOptions> = {}) => snapshot.round({ source, mode: 'tail', now, ...more });
  return { shop, server, snapshot, round };
}

const many = (count: number, make: (n: number) => Row) => Array.from({ length: count }, (_, n) => make(n + 1));

t.test('an item has its price and its rhythm, and says where no multiple of it is due', async (test) => {
  const { round, snapshot } = await open(test, {
    subscriptions: [subscription(5), subscription(6, { status: 'past_due' })],
    items: [
      item(1, 5, { quantity: 3 }),
      item(2, 6, { price_id: 10 }),
      item(3, 5, { price_id: 11 }),
      item(4, 5, { price_id: 12, quantity: 0, is_usage_based: true }),
      item(5, 5, { price_id: 13 }),
    ],
    prices: [
      price(8),
      price(10, { renewal_interval_unit: 'year', renewal_interval_quantity: 2 }),
      price(11, { scheme: 'graduated', unit_price: null }),
      price(12, { usage_aggregation: 'sum', unit_price: null, unit_price_decimal: '0.5' }),
    ],
  });
  test.equal(snapshot.adapter.isSnapshot, true);
  test.same(snapshot.adapter.rhythm, { tail: 'midnight' });
  const { facts, covered, cursor } = await round();
  test.same([covered, cursor], [[DAY], null]);
  test.same(facts[0], {
    key: '2026-03-29:1',
    effectiveAt: NOW,
    revision: null,
    values: {
      subscription: '5',
      status: 'active',
      price: '8',
      quantity: 3,
      unit_amount: '9.99',
      currency: 'USD',
      interval: 'month',
      interval_count: 1,
      tiered: false,
      metered: false,
    },
  });
  test.match(
    facts.slice(1).map(({ values }) => values),
    [
      { subscription: '6', status: 'past_due', interval: 'year', interval_count: 2 },
      { tiered: true, unit_amount: null },
      { tiered: false, metered: true, unit_amount: '0.005' },
      // Its price is gone.
      { tiered: true, unit_amount: null, interval: null, price: '13' },
    ],
  );
  test.notMatch(JSON.stringify(facts), PLANTED);
});

t.test('all items are read, those of the store kept, by one process or by many', async (test) => {
  const { server, round } = await open(test, {
    subscriptions: [
      subscription(5),
      subscription(6, { store_id: 2 }),
      subscription(7, { test_mode: true }),
      subscription(8, { status: 'expired' }),
    ],
    items: many(250, (n) => item(n, n <= 3 ? 5 + n : 5)),
  });
  for (const resumes of [false, true]) {
    const { facts, pages, covered } = await round({ resumes });
    test.equal(known(facts).size, 247);
    test.same(
      pages.map(({ records }) => records),
      [1, 100, 100, 50],
    );
    test.same(
      pages.map(({ done }) => done),
      [false, false, false, true],
    );
    test.same(covered, [DAY]);
    test.notMatch(JSON.stringify(pages), PLANTED);
  }
  const asked = server.calls.slice(0, 4).map(({ method, url }) => `${method} ${url.pathname} ${url.searchParams}`);
  const items = 'GET /v1/subscription-items include=subscription%2Cprice';
  test.same(asked, ['GET /v1/stores/1 ', ...[1, 2, 3].map((n) => `${items}&page%5Bnumber%5D=${n}&page%5Bsize%5D=100`)]);
});

t.test('a store without subscriptions is known to have none', async (test) => {
  const { round } = await open(test);
  const { facts, covered, pages } = await round();
  test.same([facts, covered, pages.at(-1)?.done], [[], [DAY], true]);
});

t.test('a picture stays one of its moment and its day, however long it takes', async (test) => {
  const { round } = await open(test, { items: many(150, (n) => item(n, 5)) });
  const pages: FactPage[] = [];
  const ends = round({
    afterPage(page) {
      pages.push(page);
      if (pages.length === 2) throw new Error('enough');
    },
  });
  await test.rejects(ends, { message: 'enough' });
  const rest = await round({ cursor: pages.at(-1)?.cursor, now: new Date(NOW + 3 * 86_400_000) });
  const facts = [...pages.flatMap((page) => page.facts), ...rest.facts];
  test.equal(known(facts).size, 150);
  test.ok(facts.every(({ key, effectiveAt }) => key.startsWith('2026-03-29:') && effectiveAt === NOW));
  test.same(rest.covered, [DAY]);
});

t.test('rows that move between the pages have the picture begin anew, new ones do not', async (test) => {
  const { shop, round } = await open(test, { items: many(250, (n) => item(n, 5)) });
  // The list is newest first, or oldest first: what is new moves rows back, or none at all.
  for (const add of [() => shop.items.unshift(item(900, 5)), () => shop.items.push(item(901, 5))]) {
    let isAdded = false;
    const { facts } = await round({
      afterPage(page) {
        if (page.facts.length === 0 || isAdded) return;
        isAdded = true;
        add();
      },
    });
    test.ok(known(facts).size >= 250);
    shop.items = many(250, (n) => item(n, 5));
  }
  const moves: Readonly<Record<string, () => void>> = {
    'one is gone': () => void shop.items.shift(),
    'two change places': () => {
      const [a, b] = [shop.items[99], shop.items[100]];
      if (a && b) shop.items.splice(99, 2, b, a);
    },
  };
  for (const [what, move] of Object.entries(moves)) {
    shop.items = many(250, (n) => item(n, 5));
    let isMoved = false;
    const afterPage = (page: FactPage) => {
      if (page.facts.length === 0 || isMoved) return;
      isMoved = true;
      move();
    };
    await test.rejects(round({ afterPage }), CursorMovedError, what);
  }
});

t.test('what is broken off, or not as documented, is no picture', async (test) => {
  const { shop, round } = await open(test, { items: many(150, (n) => item(n, 5)) });
  const replies: Readonly<Record<string, (page: object) => object>> = {
    'a page of nulls': (page) => ({ ...page, data: Array(100).fill(null) }),
    'items without their subscriptions': (page) => ({ ...page, included: [price(8)] }),
    'a price of another form': (page) => ({ ...page, included: [subscription(5), price(8, { unit_price: '9.99' })] }),
    'a sentence for a status': (page) => ({ ...page, included: [subscription(5, { status: `${PLANTED} is on` })] }),
  };
  for (const [what, reply] of Object.entries(replies)) {
    shop.send = (page, { url }) => (url.searchParams.get('page[number]') === '2' ? reply(page) : page);
    const pages: FactPage[] = [];
    const error = await fails(test, round({ afterPage: (page) => pages.push(page) }), 'failed', what);
    test.notMatch(JSON.stringify([error, error.message]), PLANTED);
    test.same(
      pages.flatMap(({ covered = [] }) => covered),
      [],
      what,
    );
    test.ok(
      pages.every(({ done }) => !done),
      what,
    );
  }
  shop.send = (_page, _call, res) => void json(res, 429, {}, { 'retry-after': '40' });
  const error = await fails(test, round(), 'rate_limited', '429');
  test.ok(error.retryNotBefore);
  // What else is included is nothing to stumble over.
  shop.send = (page) => ({ ...page, included: [subscription(5), price(8), { type: 'variants', id: 'x' }] });
  test.equal((await round()).facts.length, 150);
});
