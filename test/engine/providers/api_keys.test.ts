import t from 'tap';
import { lemonSqueezy } from '../../../engine/providers/lemon-squeezy/index.ts';
import { stripe } from '../../../engine/providers/stripe/index.ts';
import { upstashRedis } from '../../../engine/providers/upstash-redis/index.ts';
import { fails, json, openClient, openServer } from './support.ts';

const STRIPE = 'https://api.stripe.com';
const LEMON = 'https://api.lemonsqueezy.com';
const UPSTASH = 'https://eu2-tidy-cat-30142.upstash.io';

t.test('a restricted key of Stripe belongs to an account and a mode', async (test) => {
  const account = { id: 'acct_1Abcdefgh', object: 'account', country: 'SE', default_currency: 'sek', settings: null };
  const server = await openServer(test, () => account);
  const client = openClient(test, { [STRIPE]: server.origin });
  const context = { client, account: 'i1' };
  const access = { credential: { kind: 'api_key', apiKey: 'rk_test_abc123' }, settings: null };
  test.same(await stripe.verify(context, access), { subject: 'acct_1Abcdefgh:test', label: '…efgh (test)' });
  const live = { ...access, credential: { kind: 'api_key', apiKey: 'rk_live_abc123' } };
  test.equal((await stripe.verify(context, live)).subject, 'acct_1Abcdefgh:live');
  test.same(await stripe.discover(context, access), {
    items: [{ id: '…efgh', name: null, mode: 'test', country: 'SE', currency: 'SEK' }],
    truncated: false,
  });
  test.match(server.calls[0], {
    method: 'GET',
    headers: { authorization: 'Bearer rk_test_abc123', 'stripe-version': /^\d{4}-/ },
  });
  test.equal(server.calls[0]?.url.pathname, '/v1/account');
  test.match(client.taken[0], [{ key: /^stripe:account:i1:/ }]);
});

t.test('a secret key of Stripe is not sent', async (test) => {
  const server = await openServer(test, () => ({}));
  const client = openClient(test, { [STRIPE]: server.origin });
  const access = { credential: { kind: 'api_key', apiKey: 'sk_live_abc123' }, settings: null };
  await test.rejects(stripe.verify({ client, account: 'i1' }, access), /restricted key/);
  test.equal(server.calls.length, 0);
});

t.test('a restricted key that may not read its account carries the id of it', async (test) => {
  const server = await openServer(test, (_call, res) => json(res, 403, { error: { type: 'invalid_request_error' } }));
  const client = openClient(test, { [STRIPE]: server.origin });
  const context = { client, account: 'i1' };
  const withId = { kind: 'api_key', apiKey: 'rk_live_51AbCdEfGhIjKlMnOmore0123' };
  test.same(await stripe.verify(context, { credential: withId, settings: null }), {
    subject: 'acct_1AbCdEfGhIjKlMnO:live',
    label: '…lMnO (live)',
  });
  const without = { kind: 'api_key', apiKey: 'rk_live_short' };
  await fails(test, stripe.verify(context, { credential: without, settings: null }), 'forbidden', 'an older key');
});

t.test('Stripe says why it refuses in a word', async (test) => {
  const server = await openServer(test, (_call, res) =>
    json(res, 401, { error: { type: 'invalid_request_error', message: 'Invalid API Key provided: rk_test_abc123' } }),
  );
  const client = openClient(test, { [STRIPE]: server.origin });
  const access = { credential: { kind: 'api_key', apiKey: 'rk_test_abc123' }, settings: null };
  const error = await fails(test, stripe.verify({ client, account: 'i1' }, access), 'rejected', '401');
  test.match(error, { status: 401, code: 'invalid_request_error' });
  test.notMatch(JSON.stringify([error, error.message]), 'rk_test');
});

t.test('a provider that stalls has failed when the time of a discovery is over', async (test) => {
  const server = await openServer(test, ({ url }) =>
    url.searchParams.get('page[number]') === '1'
      ? { data: Array.from({ length: 100 }, (_, index) => store(index)), meta: { page: { total: 200 } } }
      : undefined,
  );
  const client = openClient(test, { [LEMON]: server.origin });
  const context = { client, account: 'i1', deadlineMs: 500 };
  const access = { credential: { kind: 'api_key', apiKey: 'x'.repeat(40) }, settings: null };
  await fails(test, lemonSqueezy.discover(context, access), 'unavailable', 'the second page');
  test.same(
    client.observed.map(({ outcome }) => outcome),
    ['ok', 'aborted'],
  );
  const gone = new AbortController();
  const reason = new Error('gone');
  gone.abort(reason);
  await test.rejects(lemonSqueezy.discover({ ...context, signal: gone.signal }, access), reason);
});

const store = (id: number) => ({
  type: 'stores',
  id: String(id),
  attributes: { name: `Store ${id}`, slug: `s${id}`, domain: `s${id}.lemonsqueezy.com`, currency: 'EUR', plan: 'x' },
});

function lemonServer(test: Parameters<typeof openServer>[0], count: number, told = count) {
  return openServer(test, ({ url }) => {
    if (url.pathname === '/v1/users/me')
      return { data: { id: '7', attributes: { name: 'Anna', email: 'anna@example.com' } } };
    const page = Number(url.searchParams.get('page[number]'));
    const size = Number(url.searchParams.get('page[size]'));
    const ids = Array.from({ length: count }, (_, index) => index + 1).slice((page - 1) * size, page * size);
    return { data: ids.map(store), meta: { page: { currentPage: page, total: told } } };
  });
}

t.test('stores of Lemon Squeezy are read page by page, at most 200', async (test) => {
  const credential = { kind: 'api_key', apiKey: 'x'.repeat(40) };
  const access = { credential, settings: null };
  for (const [count, told, kept, calls, truncated] of [
    [0, 0, 0, 1, false],
    [3, 3, 3, 1, false],
    [150, 150, 150, 2, false],
    [200, 200, 200, 2, false],
    [250, 250, 200, 2, true],
    [3, 9, 3, 2, true],
  ] as const) {
    const server = await lemonServer(test, count, told);
    const client = openClient(test, { [LEMON]: server.origin });
    const found = await lemonSqueezy.discover({ client, account: 'i1' }, access);
    test.equal(found.items.length, kept);
    test.equal(found.truncated, truncated, `${count} of ${told}`);
    test.equal(server.calls.length, calls);
    if (count === 3) {
      test.same(found.items[0], {
        id: '1',
        name: 'Store 1',
        slug: 's1',
        domain: 's1.lemonsqueezy.com',
        currency: 'EUR',
      });
      const settings = { kind: 'lemon_squeezy', storeIds: ['1', '9'] };
      // A store that was not read may be one of the key's.
      const issues = truncated ? [] : [{ path: ['storeIds', 1] }];
      test.match(lemonSqueezy.checkSettings(settings, found), issues);
      test.equal(lemonSqueezy.checkSettings(settings, found).length, issues.length);
      test.same(lemonSqueezy.checkSettings({ kind: 'lemon_squeezy', storeIds: [] }, found), []);
    }
  }
});

t.test('a key of Lemon Squeezy belongs to a user', async (test) => {
  const server = await lemonServer(test, 1);
  const client = openClient(test, { [LEMON]: server.origin });
  const access = { credential: { kind: 'api_key', apiKey: 'x'.repeat(40) }, settings: null };
  test.same(await lemonSqueezy.verify({ client, account: 'i1' }, access), { subject: '7', label: 'a…@example.com' });
  test.match(server.calls, [{ headers: { accept: 'application/vnd.api+json' } }]);
});

const upstash = {
  credential: { kind: 'bearer_token', token: 'AX-token-0123456789' },
  settings: { kind: 'upstash_redis', restUrl: UPSTASH, keyScope: { kind: 'prefixes', prefixes: ['app:'] } },
};

t.test('a token of Upstash is pinged at the database of the settings', async (test) => {
  const server = await openServer(test, () => ({ result: 'PONG' }));
  const client = openClient(test, { [UPSTASH]: server.origin });
  test.same(await upstashRedis.verify({ client, account: 'i1' }, upstash), {
    subject: 'eu2-tidy-cat-30142.upstash.io',
    label: '…0142.upstash.io',
  });
  test.match(server.calls, [
    { method: 'POST', body: '["PING"]', headers: { authorization: 'Bearer AX-token-0123456789' } },
  ]);
  const none = upstashRedis.verify({ client, account: 'i1' }, { ...upstash, settings: null });
  await fails(test, none, 'refused', 'without settings');
});

t.test('the token of Upstash goes to no other server', async (test) => {
  const { schema } = upstashRedis.settings ?? {};
  for (const restUrl of [
    'http://a.upstash.io',
    'https://a.upstash.io:8443',
    'https://u:p@a.upstash.io',
    'https://a.upstash.io.example.com',
    'https://upstash.io',
    'https://exampleupstash.io',
    'https://a.upstash.io/path',
    'https://a.upstash.io/?q',
    'https://127.0.0.1',
    'no address',
  ]) {
    test.notOk(schema?.safeParse({ ...upstash.settings, restUrl }).success, restUrl);
  }
  for (const restUrl of [UPSTASH, `${UPSTASH}/`, UPSTASH.toUpperCase()]) {
    test.match(schema?.safeParse({ ...upstash.settings, restUrl }), { success: true, data: { restUrl: UPSTASH } });
  }
  const empty = { ...upstash.settings, keyScope: { kind: 'prefixes', prefixes: [] } };
  test.notOk(schema?.safeParse(empty).success, 'no prefix allows everything');
});
