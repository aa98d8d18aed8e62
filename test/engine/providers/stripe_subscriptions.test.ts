import type * as Tap from 'tap';
import t from 'tap';
import { CursorMovedError, type FactPage } from '../../../engine/providers/dataset.ts';
import { stripe } from '../../../engine/providers/stripe/index.ts';
import { datasetOf, known, type RoundOptions } from './dataset_calls.ts';
import { type Account, item, openAccount, PLANTED, price, type Row, subscription } from './stripe_account.ts';
import { fails, json, openClient } from './support.ts';

/** Midnight has passed in Chicago by five minutes; elsewhere it is the same day for long. */
const NOW = Date.parse('2026-06-15T05:05:00Z');
const now = new Date(NOW);
const DAY = { start: Date.parse('2026-06-15T05:00:00Z'), end: Date.parse('2026-06-16T05:00:00Z'), state: 'complete' };
const credential = { kind: 'api_key', apiKey: 'rk_live_abc123' };

async function open(test: Tap.Test, stock: Partial<Account> = {}) {
  const { account, server } = await openAccount(test, stock);
  const client = openClient(test, { 'https://api.stripe.com': server.origin });
  const snapshot = datasetOf(stripe, 'stripe.subscription_snapshot', { client, credential, settings: null });
  const source = await snapshot.source();
  server.calls.splice(0);
  const round = (more: Partial<RoundOptions> = {}) => snapshot.round({ source, mode: 'tail', now, ...more });
  return { account, server, snapshot, round };
}

const many = (count: number, make: (n: number) => Row) => Array.from({ length: count }, (_, n) => make(n + 1));

t.test('an item has its price and its rhythm, and says where no multiple of it is due', async (test) => {
  const items = {
    plain: item('si_1', { quantity: 3, price: price('price_1', { unit_amount_decimal: '1050.5' }) }),
    yen: item('si_2', {
      price: price('price_2', {
        currency: 'jpy',
        recurring: { interval: 'year', interval_count: 2, usage_type: 'licensed' },
      }),
    }),
    tiered: item('si_3', { price: price('price_3', { billing_scheme: 'tiered', unit_amount_decimal: null }) }),
    packed: item('si_4', { price: price('price_4', { transform_quantity: { divide_by: 5, round: 'up' } }) }),
    metered: item('si_5', {
      quantity: undefined,
      price: price('price_5', { recurring: { interval: 'month', interval_count: 1, usage_type: 'metered' } }),
    }),
  };
  const { round, snapshot } = await open(test, {
    subscriptions: [subscription('sub_1', 1, Object.values(items), { status: 'past_due' })],
  });
  test.equal(snapshot.adapter.isSnapshot, true);
  test.same(snapshot.adapter.rhythm, { tail: 'midnight' });
  const { facts, covered, cursor } = await round();
  test.same([covered, cursor], [[DAY], null]);
  test.same(facts[0], {
    key: '2026-06-15:si_1',
    effectiveAt: NOW,
    revision: null,
    values: {
      subscription: 'sub_1',
      status: 'past_due',
      price: 'price_1',
      quantity: 3,
      unit_amount: '10.505',
      currency: 'EUR',
      interval: 'month',
      interval_count: 1,
      tiered: false,
      metered: false,
    },
  });
  test.match(
    facts.slice(1).map(({ values }) => values),
    [
      { currency: 'JPY', unit_amount: '999', interval: 'year', interval_count: 2, tiered: false },
      { tiered: true, unit_amount: null, metered: false },
      { tiered: true, metered: false },
      { metered: true, quantity: null, tiered: false },
    ],
  );
  test.notMatch(JSON.stringify(facts), PLANTED);
});

t.test('all subscriptions and all of their items are read, by one process or by many', async (test) => {
  const shown = many(10, (n) => item(`si_big${n}`));
  const hidden = many(150, (n) => item(`si_big${n}`));
  const { server, round } = await open(test, {
    subscriptions: many(250, (n) =>
      n === 42
        ? subscription('sub_big', 42, shown, { items: { data: shown, has_more: true } })
        : subscription(`sub_${n}`, n, [item(`si_${n}`)]),
    ),
    items: { sub_big: hidden },
  });
  for (const resumes of [false, true]) {
    const { facts, pages, covered } = await round({ resumes });
    test.equal(facts.length, 249 + 150);
    test.equal(known(facts).size, 249 + 150, 'each once');
    test.ok(facts.every(({ effectiveAt }) => effectiveAt === NOW));
    test.same(
      pages.map(({ records }) => records),
      [100, 100, 50, 100, 50],
    );
    test.same(covered, [DAY]);
    test.same(
      pages.map((page) => page.covered?.length ?? 0),
      [0, 0, 0, 0, 1],
    );
  }
  const asked = server.calls.slice(0, 5).map(({ method, url }) => `${method} ${url.pathname} ${url.searchParams}`);
  test.same(asked, [
    'GET /v1/subscriptions limit=100',
    'GET /v1/subscriptions limit=100&starting_after=sub_151',
    'GET /v1/subscriptions limit=100&starting_after=sub_51',
    'GET /v1/subscription_items limit=100&subscription=sub_big',
    'GET /v1/subscription_items limit=100&subscription=sub_big&starting_after=si_big100',
  ]);
});

t.test('a picture stays one of its moment and its day, however long it takes', async (test) => {
  const { round } = await open(test, {
    subscriptions: many(150, (n) => subscription(`sub_${n}`, n, [item(`si_${n}`)])),
  });
  const pages: FactPage[] = [];
  await test.rejects(
    round({
      afterPage(page) {
        pages.push(page);
        throw new Error('enough');
      },
    }),
    { message: 'enough' },
  );
  const rest = await round({ cursor: pages[0]?.cursor, now: new Date(NOW + 86_400_000) });
  const facts = [...pages.flatMap((page) => page.facts), ...rest.facts];
  test.equal(known(facts).size, 150);
  test.ok(facts.every(({ key, effectiveAt }) => key.startsWith('2026-06-15:') && effectiveAt === NOW));
  test.same(rest.covered, [DAY]);
});

t.test(
  'an account without subscriptions is known to have none, and the other mode counts for nothing',
  async (test) => {
    const { account, round } = await open(test);
    const empty = await round();
    test.same([empty.facts, empty.covered, empty.pages.length], [[], [DAY], 1]);
    account.subscriptions = [subscription('sub_1', 1, [item('si_1')], { livemode: false })];
    const other = await round();
    test.same([other.facts, other.covered, other.pages[0]?.records], [[], [DAY], 1]);
  },
);

t.test('what is broken off, or not as documented, is no picture', async (test) => {
  const { account, round } = await open(test, { subscriptions: many(150, (n) => subscription(`sub_${n}`, n, [])) });
  const bad = subscription('sub_x', 1, [item('si_x', { price: null })]);
  const replies = [
    (page: object) => ({ ...page, data: [null] }),
    (page: object) => ({ ...page, data: [bad] }),
    (page: object) => ({ ...page, data: [subscription('sub_x', 1, [], { status: `${PLANTED} is fine` })] }),
  ];
  for (const reply of replies) {
    account.send = (page, { url }) => (url.searchParams.has('starting_after') ? reply(page) : page);
    const pages: FactPage[] = [];
    await fails(test, round({ afterPage: (page) => pages.push(page) }), 'failed', 'a page');
    test.same(
      pages.map(({ done, covered }) => [done, covered]),
      [[false, undefined]],
    );
  }
  account.send = (_page, _call, res) => void json(res, 503, {}, { 'retry-after': '40' });
  await fails(test, round(), 'unavailable', '503');
  account.send = (page) => page;
  const gone = { at: NOW, day: '2026-06-15', after: 'sub_gone', isRead: false, parents: [] };
  await test.rejects(round({ cursor: gone }), CursorMovedError);
});
