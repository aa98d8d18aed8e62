import type { ServerResponse } from 'node:http';
import type * as Tap from 'tap';
import t from 'tap';
import { CursorMovedError, type FactPage } from '../../../engine/providers/dataset.ts';
import { stripe } from '../../../engine/providers/stripe/index.ts';
import { datasetOf, extent, keysOf, known, type RoundOptions } from './dataset_calls.ts';
import { ACCOUNT, type Account, openAccount, PLANTED, type Row, transaction } from './stripe_account.ts';
import { fails, json, openClient, openServer } from './support.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
/** Within a second: Stripe counts whole ones. */
const NOW = Date.parse('2026-06-15T12:00:00.500Z');
const now = new Date(NOW);
const FROM = Date.parse('2025-05-31T00:00:00Z');
const credential = { kind: 'api_key', apiKey: 'rk_live_abc123' };

async function open(test: Tap.Test, stock: Partial<Account> = {}) {
  const { account, server } = await openAccount(test, stock);
  const client = openClient(test, { 'https://api.stripe.com': server.origin });
  const balance = datasetOf(stripe, 'stripe.balance_tx', { client, credential, settings: null });
  const source = await balance.source();
  server.calls.splice(0);
  const round = (mode: RoundOptions['mode'], more: Partial<RoundOptions> = {}) =>
    balance.round({ source, mode, now, ...more });
  return { account, server, client, balance, source, round };
}

const seconds = (time: number) => Math.floor(time / 1_000);
const many = (count: number, make: (n: number) => Row) => Array.from({ length: count }, (_, n) => make(n + 1));
const idsOf = (rows: readonly Row[]) => rows.map(({ id }) => id).sort();

/** Most of it lately, some at one second. */
const year = () =>
  many(430, (n) => transaction(`txn_${n}`, seconds(NOW - (n <= 250 ? Math.floor(n / 5) * 3 * HOUR : n * 0.8 * DAY))));

t.test('the source is the account, in the mode of the key, on the clock of its dashboard', async (test) => {
  const { account, balance, server } = await open(test);
  const source = { resourceId: ACCOUNT, environment: 'live', timezone: 'America/Chicago' };
  test.same(await balance.discover(), [source]);
  account.timezone = 'Central Time';
  test.same(await balance.discover(), [{ ...source, timezone: null }]);
  const client = openClient(test, { 'https://api.stripe.com': server.origin });
  const tried = { client, credential: { kind: 'api_key', apiKey: 'rk_test_abc123' }, settings: null };
  test.match(await datasetOf(stripe, 'stripe.balance_tx', tried).discover(), [{ environment: 'test' }]);
});

t.test('a key that may not read its account names it, without a clock', async (test) => {
  const { origin } = await openServer(test, (_call, res) => void json(res, 403, { error: { type: 'forbidden' } }));
  const client = openClient(test, { 'https://api.stripe.com': origin });
  const apiKey = 'rk_live_51AbCdEfGhIjKlMnOabcdef';
  const balance = datasetOf(stripe, 'stripe.balance_tx', {
    client,
    credential: { kind: 'api_key', apiKey },
    settings: null,
  });
  test.same(await balance.discover(), [{ resourceId: ACCOUNT, environment: 'live', timezone: null }]);
});

t.test('a transaction has its amounts and its category, by the digits that Stripe counts in', async (test) => {
  const created = seconds(NOW - HOUR);
  const amounts = { eur: 1_199, jpy: 1_199, kwd: 1_199, isk: 1_100, ugx: 1_100, mga: 1_199 };
  const { round } = await open(test, {
    transactions: Object.entries(amounts).map(([currency, amount]) =>
      transaction(`txn_${currency}`, created, { currency, amount, fee: 0, net: -amount, reporting_category: 'refund' }),
    ),
  });
  const found = await round('tail');
  test.same(known(found.facts).get('txn_eur'), {
    key: 'txn_eur',
    effectiveAt: created * 1_000,
    revision: null,
    values: { amount: '11.99', fee: '0', net: '-11.99', currency: 'EUR', reporting_category: 'refund' },
  });
  test.same(Object.fromEntries(found.facts.map(({ values }) => [values['currency'], values['amount']])), {
    EUR: '11.99',
    JPY: '1199',
    KWD: '1.199',
    ISK: '11',
    UGX: '11',
    MGA: '1199',
  });
  test.notMatch(JSON.stringify(found), PLANTED);
});

t.test('the past is read month by month from the newest, by one process or by many', async (test) => {
  const { account, server, round } = await open(test, { transactions: year() });
  for (const resumes of [false, true]) {
    const seen = new Set<string>();
    const found = await round('backfill', {
      resumes,
      afterPage({ facts, covered = [] }) {
        for (const { key } of facts) seen.add(key);
        const from = covered[0]?.start;
        if (from === undefined) return;
        const missed = account.transactions.filter(({ id, created }) => created * 1_000 >= from && !seen.has(id));
        if (missed.length > 0) throw new Error(`${idsOf(missed)} are missed since ${from}`);
      },
    });
    test.same(keysOf(found), idsOf(account.transactions));
    test.same(extent(found.covered), { start: FROM, end: NOW });
    test.equal(found.covered.length, 14);
    test.equal(found.cursor, null);
    test.equal(found.facts.length, 430, 'each once');
    test.same(
      found.pages.slice(0, 2).map(({ records, done, covered }) => [records, done, covered]),
      [
        [100, false, undefined],
        [100, false, undefined],
      ],
    );
    test.ok(found.pages.every(({ bytes }) => bytes > 10));
    test.notMatch(JSON.stringify(found.pages), PLANTED);
  }
  for (const { method, url, headers } of server.calls) {
    test.equal(method, 'GET');
    test.equal(url.searchParams.get('limit'), '100');
    test.match(headers, { 'stripe-version': /^\d{4}-/ });
  }
});

t.test('a tail reads back to what is known, and an hour further', async (test) => {
  const { account, server, round } = await open(test, { transactions: year() });
  const first = await round('tail');
  test.same(extent(first.covered), { start: NOW - 25 * HOUR, end: NOW });
  test.same(first.cursor, { known: NOW });
  test.equal(server.calls.splice(0).length, 1);

  const later = new Date(NOW + 15 * 60_000);
  account.transactions.push(
    transaction('txn_new', seconds(NOW + 1_000)),
    transaction('txn_now', seconds(NOW)),
    transaction('txn_late', seconds(NOW - 50 * 60_000)),
  );
  const second = await round('tail', { cursor: first.cursor, now: later });
  test.same(
    ['txn_new', 'txn_now', 'txn_late'].filter((key) => !keysOf(second).includes(key)),
    [],
  );
  test.ok(second.facts.length < 15);
  test.same(second.covered, [{ start: NOW, end: later.getTime(), state: 'complete' }]);
  test.same(second.cursor, { known: later.getTime() });
  // A clock that was put back tells nothing new.
  const third = await round('tail', { cursor: second.cursor, now });
  test.same([third.covered, third.cursor], [[], { known: later.getTime() }]);
});

t.test('what was made at one second is read whole, over pages and at the bound of what is known', async (test) => {
  const { round } = await open(test, { transactions: many(250, (n) => transaction(`txn_${n}`, seconds(NOW))) });
  for (const resumes of [false, true]) {
    test.equal(keysOf(await round('tail', { resumes })).length, 250);
    const cursor = { known: seconds(NOW) * 1_000 + HOUR };
    test.equal(keysOf(await round('tail', { resumes, cursor, now: new Date(NOW + DAY) })).length, 250);
    test.equal(keysOf(await round('backfill', { resumes })).length, 250);
  }
});

t.test('what comes between two pages is for the next round, and none is missed', async (test) => {
  const { account, round } = await open(test, { transactions: year() });
  const before = idsOf(account.transactions.filter(({ created }) => created * 1_000 >= NOW - 25 * HOUR));
  let n = 0;
  const add = () => account.transactions.push(transaction(`txn_new${++n}`, seconds(NOW + n * 1_000)));
  account.transactions.push(...many(250, (of) => transaction(`txn_more${of}`, seconds(NOW - of * 1_000))));
  const first = await round('tail', { afterPage: add, resumes: true });
  test.same(
    before.filter((id) => !keysOf(first).includes(id)),
    [],
  );
  test.ok(n >= 3);
  const second = await round('tail', { cursor: first.cursor, now: new Date(NOW + DAY) });
  test.equal(keysOf(second).filter((key) => key.startsWith('txn_new')).length, n);
});

t.test('a tail that goes on later knows no more than when it began', async (test) => {
  const { account, round } = await open(test, {
    transactions: many(150, (n) => transaction(`txn_${n}`, seconds(NOW - n * 1_000))),
  });
  const pages: FactPage[] = [];
  const ends = round('tail', {
    afterPage(page) {
      pages.push(page);
      throw new Error('enough');
    },
  });
  await test.rejects(ends, { message: 'enough' });
  account.transactions.push(transaction('txn_new', seconds(NOW + 1_000)));
  const rest = await round('tail', { cursor: pages[0]?.cursor, now: new Date(NOW + 2 * HOUR) });
  test.same([rest.cursor, extent(rest.covered).end], [{ known: NOW }, NOW]);
  const next = await round('tail', { cursor: rest.cursor, now: new Date(NOW + 2 * HOUR) });
  test.ok(keysOf(next).includes('txn_new'));
});

t.test('rows of the other mode are left out, and counted', async (test) => {
  const { round } = await open(test, {
    transactions: [
      transaction('txn_1', seconds(NOW), { livemode: false }),
      transaction('txn_2', seconds(NOW), { livemode: true }),
      transaction('txn_3', seconds(NOW)),
    ],
  });
  const found = await round('tail');
  test.same(keysOf(found), ['txn_2', 'txn_3']);
  test.equal(found.pages[0]?.records, 3);
});

t.test('an account without anything is known to have moved nothing', async (test) => {
  const { round } = await open(test);
  const tail = await round('tail');
  test.same([tail.pages.length, tail.facts], [1, []]);
  test.same(extent(tail.covered), { start: NOW - 25 * HOUR, end: NOW });
  const past = await round('backfill');
  test.same([past.pages.length, past.facts], [14, []]);
  test.same(extent(past.covered), { start: FROM, end: NOW });
});

type Fault = Readonly<{
  reason: 'rate_limited' | 'unavailable' | 'failed';
  send: (page: object, res: ServerResponse) => unknown;
}>;
const FAULTS: Readonly<Record<string, Fault>> = {
  '429': {
    reason: 'rate_limited',
    send: (_, res) => void json(res, 429, { error: { message: PLANTED } }, { 'retry-after': '40' }),
  },
  '503': { reason: 'unavailable', send: (_, res) => void json(res, 503, {}, { 'retry-after': '40' }) },
  'a body that is cut off': {
    reason: 'unavailable',
    send(page, res) {
      const body = JSON.stringify(page);
      res.writeHead(200, { 'content-type': 'application/json', 'content-length': String(body.length) });
      res.write(body.slice(0, body.length / 2), () => res.destroy());
    },
  },
  'a page of nulls': { reason: 'failed', send: (page) => ({ ...page, data: Array(100).fill(null) }) },
  'a row of nulls': { reason: 'failed', send: (page) => ({ ...page, data: [{ id: 'txn_1', amount: null }] }) },
  'a sentence for a category': {
    reason: 'failed',
    send: (page) => ({ ...page, data: [transaction('txn_1', 1, { reporting_category: `${PLANTED} or so` })] }),
  },
  'more that never comes': { reason: 'failed', send: (page) => ({ ...page, data: [], has_more: true }) },
};

t.test('what goes wrong at a page is told, and the round goes on from the one before it', async (test) => {
  for (const [what, { reason, send }] of Object.entries(FAULTS)) {
    const { account, round, client } = await open(test, { transactions: year() });
    let calls = 0;
    account.send = (page, _call, res) => {
      calls += 1;
      return calls < 3 ? page : send(page, res);
    };
    const pages: FactPage[] = [];
    const error = await fails(test, round('backfill', { afterPage: (page) => pages.push(page) }), reason, what);
    test.equal(pages.length, 2, what);
    test.notMatch(JSON.stringify([error, error.message]), PLANTED);
    if (/^\d/.test(what)) test.ok(error.retryNotBefore && client.postponed.length > 0, `${what}: nobody asks before`);
    account.send = (page) => page;
    const rest = await round('backfill', { cursor: pages.at(-1)?.cursor, now: new Date(NOW + HOUR) });
    const facts = [...pages.flatMap((page) => page.facts), ...rest.facts];
    test.same(keysOf({ facts }), idsOf(account.transactions), what);
    test.equal(facts.length, 430, what);
  }
});

t.test(
  'where the id is gone that a list goes on after, and of a cursor of another form, the round begins anew',
  async (test) => {
    const { round } = await open(test);
    const cursor = { known: null, at: NOW, after: 'txn_gone' };
    await test.rejects(round('tail', { cursor }), CursorMovedError);
    await test.rejects(round('tail', { cursor: { page: 1 } }), CursorMovedError);
    await test.rejects(round('backfill', { cursor: { known: 1 } }), CursorMovedError);
  },
);
