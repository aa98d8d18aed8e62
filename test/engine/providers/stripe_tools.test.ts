import type * as Tap from 'tap';
import t from 'tap';
import { stripe } from '../../../engine/providers/stripe/index.ts';
import { CursorError } from '../../../engine/providers/tool.ts';
import { fails, json, openClient, openServer, type Reply } from './support.ts';
import { ACTION, failsAsDocumented, toolsOf } from './tool_calls.ts';

const API = 'https://api.stripe.com';
const credential = { kind: 'api_key', apiKey: 'rk_test_abc123' };

async function open(test: Tap.Test, reply: Reply) {
  const server = await openServer(test, reply);
  const client = openClient(test, { [API]: server.origin });
  return { server, tools: toolsOf(stripe, { client, credential, settings: null }) };
}

const LISTS: Readonly<Record<string, readonly [args: object, query: object]>> = {
  customers: [{ email: 'a@b.example' }, { email: 'a@b.example' }],
  charges: [{ customer: 'cus_1' }, { customer: 'cus_1' }],
  invoices: [
    { customer: 'cus_1', status: 'open' },
    { customer: 'cus_1', status: 'open' },
  ],
  subscriptions: [{ status: 'all' }, { status: 'all' }],
  balance_transactions: [{}, {}],
};

t.test('lists go on behind their last entry', async (test) => {
  let more = true;
  const { server, tools } = await open(test, () => ({
    object: 'list',
    data: [{ id: 'xx_1' }, { id: 'xx_2', amount: 5 }],
    has_more: more,
  }));
  for (const [name, [args, query]] of Object.entries(LISTS)) {
    const key = `stripe.${name}.list`;
    more = true;
    test.same(await tools.read(key, { ...args, limit: 2, createdAfter: 1_700_000_000 }), {
      data: [{ id: 'xx_1' }, { id: 'xx_2', amount: 5 }],
      nextCursor: 'xx_2',
    });
    const [call, ...rest] = server.calls.splice(0);
    test.equal(rest.length, 0);
    test.equal(call?.url.pathname, `/v1/${name}`);
    const asked = { limit: '2', 'created[gte]': '1700000000', ...query };
    test.same(Object.fromEntries(call?.url.searchParams ?? []), asked, key);
    test.match(call?.headers, { authorization: 'Bearer rk_test_abc123', 'stripe-version': /^\d{4}-/ });
    more = false;
    test.equal((await tools.read(key, args, 'xx_2')).nextCursor, null);
    test.equal(server.calls.splice(0)[0]?.url.searchParams.get('starting_after'), 'xx_2');
    for (const cursor of ['', 'x', 'xx_2&limit=1', '../x']) {
      await test.rejects(tools.read(key, args, cursor), CursorError, cursor);
    }
    test.match(tools.issues(key, 'read', { limit: 101 }), [{ path: ['limit'] }]);
  }
  test.equal(server.calls.length, 0);
});

t.test('one is read by its id', async (test) => {
  const { server, tools } = await open(test, () => ({ id: 'xx_1', object: 'x' }));
  for (const name of Object.keys(LISTS)) {
    test.same(await tools.read(`stripe.${name}.get`, { id: 'xx_1' }), { data: { id: 'xx_1', object: 'x' } });
    test.equal(server.calls.at(-1)?.url.pathname, `/v1/${name}/xx_1`);
    for (const id of ['../balance', 'xx_1/refund', 'xx_1?x=1', '']) {
      test.match(tools.issues(`stripe.${name}.get`, 'read', { id }), [{ path: ['id'] }], id);
    }
  }
});

t.test('the balance is read', async (test) => {
  const balance = { object: 'balance', available: [{ amount: 5, currency: 'eur' }], pending: [] };
  const { server, tools } = await open(test, () => balance);
  test.same(await tools.read('stripe.balance.read', {}), { data: balance });
  test.equal(server.calls[0]?.url.pathname, '/v1/balance');
});

const WRITES: Readonly<Record<string, readonly [args: object, path: string, form: object]>> = {
  'refunds.create': [
    { charge: 'ch_1', amount: 500, reason: 'requested_by_customer' },
    '/v1/refunds',
    { charge: 'ch_1', amount: '500', reason: 'requested_by_customer' },
  ],
  'customers.update': [
    { customer: 'cus_1', name: 'Änne & Co', email: 'a@b.example' },
    '/v1/customers/cus_1',
    { name: 'Änne & Co', email: 'a@b.example' },
  ],
  'invoices.send': [{ invoice: 'in_1' }, '/v1/invoices/in_1/send', {}],
};

t.test('a write is sent once, by the key of its action', async (test) => {
  const { server, tools } = await open(test, () => ({ id: 're_1', status: 'succeeded', secret: 'x' }));
  const keys = stripe.tools.filter(({ effect }) => effect === 'write').map(({ key }) => key.replace('stripe.', ''));
  test.same(keys.sort(), Object.keys(WRITES).sort());
  for (const [key, [args, path, form]] of Object.entries(WRITES)) {
    test.same(await tools.execute(`stripe.${key}`, args), { id: 're_1', status: 'succeeded' }, key);
    const [call, ...more] = server.calls.splice(0);
    test.equal(more.length, 0);
    test.match(call, {
      method: 'POST',
      url: { pathname: path },
      headers: { 'idempotency-key': ACTION, 'content-type': 'application/x-www-form-urlencoded' },
    });
    const sent = Object.fromEntries(new URLSearchParams(call?.body));
    // Sending an invoice takes no parameters.
    const marker = key === 'invoices.send' ? {} : { 'metadata[business_runner_action]': ACTION };
    test.same(sent, { ...form, ...marker }, key);
  }
});

t.test('what goes wrong says whether a write was done', async (test) => {
  for (const [key, [args]] of Object.entries(WRITES)) {
    await failsAsDocumented(test, key, 'write', async (reply) => {
      const { server, tools } = await open(test, (_call, res) => void reply(res));
      return { done: tools.execute(`stripe.${key}`, args), sent: () => server.calls.length };
    });
  }
  await failsAsDocumented(test, 'a read', 'read', async (reply) => {
    const { server, tools } = await open(test, (_call, res) => void reply(res));
    return { done: tools.read('stripe.charges.list', {}), sent: () => server.calls.length };
  });
  const { tools } = await open(test, (_call, res) =>
    json(res, 400, { error: { type: 'invalid_request_error', code: 'charge_already_refunded', message: 'planted' } }),
  );
  const error = await fails(test, tools.execute('stripe.refunds.create', { charge: 'ch_1' }), 'failed', '400');
  test.match(error, { status: 400, code: 'charge_already_refunded' });
});

t.test('a refund and a change are found by what they are marked with', async (test) => {
  const marked = { business_runner_action: ACTION };
  let found: object = {};
  const { server, tools } = await open(test, () => found);
  const lookUp = (key: string) => tools.lookUp(`stripe.${key}`, WRITES[key]?.[0]);
  found = {
    data: [
      { id: 're_0', metadata: null },
      { id: 're_1', status: 'pending', metadata: marked },
    ],
  };
  test.same(await lookUp('refunds.create'), { outcome: 'found', result: { id: 're_1', status: 'pending' } });
  const { url, method } = server.calls[0] ?? {};
  test.equal(`${method} ${url?.pathname}${url?.search}`, 'GET /v1/refunds?charge=ch_1&limit=100');
  found = { data: [{ id: 're_0', metadata: { business_runner_action: 'another' } }] };
  test.same(await lookUp('refunds.create'), { outcome: 'none' }, 'it may come yet');
  found = { id: 'cus_1', metadata: marked };
  test.same(await lookUp('customers.update'), { outcome: 'found', result: { id: 'cus_1', status: null } });
  test.equal(server.calls.at(-1)?.url.pathname, '/v1/customers/cus_1');
  found = { id: 'cus_1', metadata: {} };
  test.same(await lookUp('customers.update'), { outcome: 'none' });
  test.notOk(tools.canLookUp('stripe.invoices.send', { invoice: 'in_1' }));
});

t.test('a summary says how much, whose and what for', async (test) => {
  const { tools } = await open(test, () => ({}));
  const summary = (key: string, args = WRITES[key]?.[0]) => tools.summary(`stripe.${key}`, args);
  test.equal(
    summary('refunds.create'),
    'Refund 500 (in minor units of the charge’s currency) of charge ch_1, requested by customer',
  );
  test.equal(summary('refunds.create', { charge: 'ch_1' }), 'Refund what is left of charge ch_1');
  test.equal(summary('customers.update'), 'Change customer cus_1: name to “Änne & Co”, email to “a@b.example”');
  test.equal(
    summary('invoices.send'),
    'Send invoice in_1 by e-mail, to the customer and over the amount that it has at Stripe',
  );
  test.equal(stripe.tools.find(({ key }) => key === 'stripe.refunds.create')?.risk, 'high');
  test.match(tools.issues('stripe.customers.update', 'write', { customer: 'cus_1' }), [{ path: [] }]);
});
