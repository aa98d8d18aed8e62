import type * as Tap from 'tap';
import t from 'tap';
import { lemonSqueezy } from '../../../engine/providers/lemon-squeezy/index.ts';
import { CursorError } from '../../../engine/providers/tool.ts';
import { fails, json, openClient, openServer, type Reply } from './support.ts';
import { FAULTS, failsAsDocumented, toolsOf } from './tool_calls.ts';

const API = 'https://api.lemonsqueezy.com';
const credential = { kind: 'api_key', apiKey: 'x'.repeat(40) };
const settings = { kind: 'lemon_squeezy', storeIds: ['1', '2'] };

async function open(test: Tap.Test, reply: Reply) {
  const server = await openServer(test, reply);
  const client = openClient(test, { [API]: server.origin });
  return { server, client, tools: toolsOf(lemonSqueezy, { client, credential, settings }) };
}

const item = (id: string, store: number, more: object = {}) => ({
  type: 'x',
  id,
  attributes: { store_id: store, total: 1_199, urls: { customer_portal: 'https://x/?signature=planted' }, ...more },
  relationships: {},
  links: {},
});
const pageOf = (data: readonly object[], lastPage = 1) => ({
  data,
  meta: { page: { currentPage: 1, lastPage, total: 3 } },
});

const LISTS: Readonly<Record<string, readonly [args: object, path: string, filters: object]>> = {
  products: [{}, '/v1/products', {}],
  orders: [{ userEmail: 'a@b.example' }, '/v1/orders', { 'filter[user_email]': 'a@b.example' }],
  subscriptions: [{ status: 'active' }, '/v1/subscriptions', { 'filter[status]': 'active' }],
  subscription_invoices: [{ status: 'paid' }, '/v1/subscription-invoices', { 'filter[status]': 'paid' }],
  customers: [{ email: 'a@b.example' }, '/v1/customers', { 'filter[email]': 'a@b.example' }],
};

t.test('lists are those of a store, a page at a time', async (test) => {
  const { server, tools } = await open(test, () => pageOf([item('10', 1), item('11', 3)], 2));
  for (const [name, [args, path, filters]] of Object.entries(LISTS)) {
    const key = `lemon_squeezy.${name}.list`;
    test.same(await tools.read(key, { storeId: '1', ...args }), {
      data: [{ id: '10', store_id: 1, total: 1_199 }],
      nextCursor: '2',
    });
    const [call, ...more] = server.calls.splice(0);
    test.equal(more.length, 0);
    test.equal(call?.url.pathname, path);
    const query = { 'page[number]': '1', 'page[size]': '50', 'filter[store_id]': '1', ...filters };
    test.same(Object.fromEntries(call?.url.searchParams ?? []), query, key);
    test.match(call?.headers, { accept: 'application/vnd.api+json', authorization: `Bearer ${credential.apiKey}` });
    test.equal((await tools.read(key, { storeId: '1', pageSize: 100 }, '2')).nextCursor, null);
    test.match(Object.fromEntries(server.calls.splice(0)[0]?.url.searchParams ?? []), {
      'page[number]': '2',
      'page[size]': '100',
    });
    for (const cursor of ['', '0', 'x', '1.5', '99999']) {
      await test.rejects(tools.read(key, { storeId: '1' }, cursor), CursorError, cursor);
    }
    test.match(tools.issues(key, 'read', { storeId: '3' }), [{ path: ['storeId'] }], key);
    test.match(tools.issues(key, 'read', { storeId: '1', pageSize: 101 }), [{ path: ['pageSize'] }], key);
  }
  test.equal(server.calls.length, 0);
});

t.test('what is behind the last page that is read is not taken for the end', async (test) => {
  let lastPage = 10_000;
  const { server, tools } = await open(test, () => pageOf([item('10', 1)], lastPage));
  const read = (cursor: string) => tools.read('lemon_squeezy.orders.list', { storeId: '1' }, cursor);
  test.equal((await read('10000')).nextCursor, null);
  lastPage = 10_001;
  test.equal((await read('10000')).nextCursor, '10001');
  await test.rejects(read('10001'), { name: 'CursorError', message: /10,000 pages: narrow/ });
  test.equal(server.calls.length, 2);
});

t.test('stores are those of the settings', async (test) => {
  const { tools } = await open(test, () =>
    pageOf(['1', '2', '3'].map((id) => ({ id, attributes: { name: `S${id}` } }))),
  );
  test.same(await tools.read('lemon_squeezy.stores.list', {}), {
    data: [
      { id: '1', name: 'S1' },
      { id: '2', name: 'S2' },
    ],
    nextCursor: null,
  });
});

t.test('what is of another store is none that there is', async (test) => {
  let found: object = {};
  const { server, client, tools } = await open(test, () => ({ data: found }));
  for (const [name, arg, path] of [
    ['orders', 'orderId', '/v1/orders/7'],
    ['subscriptions', 'subscriptionId', '/v1/subscriptions/7'],
    ['customers', 'customerId', '/v1/customers/7'],
  ] as const) {
    const key = `lemon_squeezy.${name}.get`;
    found = item('7', 2);
    test.same(await tools.read(key, { [arg]: '7' }), { data: { id: '7', store_id: 2, total: 1_199 } }, key);
    test.equal(server.calls.at(-1)?.url.pathname, path);
    found = item('7', 3);
    await fails(test, tools.read(key, { [arg]: '7' }), 'not_found', key);
    test.match(tools.issues(key, 'read', { [arg]: '../stores' }), [{ path: [arg] }]);
    const none = toolsOf(lemonSqueezy, { client, credential, settings: { ...settings, storeIds: [] } });
    test.equal(none.issues(key, 'read', { [arg]: '7' }).length, 1);
  }
  found = { id: '2', attributes: { name: 'S2' } };
  test.same(await tools.read('lemon_squeezy.stores.get', { storeId: '2' }), { data: { id: '2', name: 'S2' } });
  found = { id: '3', attributes: { name: 'S3' } };
  await fails(test, tools.read('lemon_squeezy.stores.get', { storeId: '3' }), 'not_found', 'a store');
});

const REFUND = 'lemon_squeezy.orders.refund';
const order = (store: number, more: object = {}) => ({
  data: item('7', store, { status: 'paid', refunded: false, refunded_amount: 0, currency: 'EUR', ...more }),
});

t.test('an order of the settings is refunded once', async (test) => {
  let store = 1;
  const { server, tools } = await open(test, ({ method }) =>
    method === 'POST' ? order(store, { status: 'partial_refund', refunded_amount: 500 }) : order(store),
  );
  test.same(await tools.execute(REFUND, { orderId: '7', amount: 500 }), {
    id: '7',
    status: 'partial_refund',
    refunded: false,
    refundedAmount: 500,
    currency: 'EUR',
  });
  const [look, refund, ...more] = server.calls.splice(0);
  test.equal(more.length, 0);
  test.match(look, { method: 'GET', url: { pathname: '/v1/orders/7' } });
  test.match(refund, {
    method: 'POST',
    url: { pathname: '/v1/orders/7/refund' },
    headers: { 'content-type': 'application/vnd.api+json', accept: 'application/vnd.api+json' },
  });
  test.same(JSON.parse(refund?.body ?? ''), { data: { type: 'orders', id: '7', attributes: { amount: 500 } } });
  await tools.execute(REFUND, { orderId: '7' });
  test.same(JSON.parse(server.calls.splice(0)[1]?.body ?? ''), { data: { type: 'orders', id: '7' } });
  store = 3;
  const error = await fails(test, tools.execute(REFUND, { orderId: '7' }), 'not_found', 'of another store');
  test.ok(error.isRefusal);
  test.same(
    server.calls.map(({ method }) => method),
    ['GET'],
  );
  test.equal(lemonSqueezy.tools.find(({ key }) => key === REFUND)?.risk, 'high');
});

t.test('what goes wrong says whether it was refunded', async (test) => {
  await failsAsDocumented(test, 'a refund', 'write', async (reply) => {
    const { server, tools } = await open(test, ({ method }, res) => (method === 'GET' ? order(1) : void reply(res)));
    const sent = () => server.calls.filter(({ method }) => method === 'POST').length;
    return { done: tools.execute(REFUND, { orderId: '7' }), sent };
  });
  for (const { what, reply, reason } of FAULTS) {
    const { server, tools } = await open(test, (_call, res) => void reply(res));
    const error = await fails(test, tools.execute(REFUND, { orderId: '7' }), reason, `before it: ${what}`);
    test.ok(error.isRefusal);
    test.notOk(server.calls.some(({ method }) => method === 'POST'));
  }
  await failsAsDocumented(test, 'a read', 'read', async (reply) => {
    const { server, tools } = await open(test, (_call, res) => void reply(res));
    return { done: tools.read('lemon_squeezy.orders.list', { storeId: '1' }), sent: () => server.calls.length };
  });
  const { tools } = await open(test, ({ method }, res) =>
    method === 'GET' ? order(1) : json(res, 422, { errors: [{ code: 'invalid', detail: 'planted' }] }),
  );
  test.match(await fails(test, tools.execute(REFUND, { orderId: '7' }), 'failed', '422'), {
    status: 422,
    code: 'invalid',
  });
});

t.test('an order that is paid back whole shows the refund', async (test) => {
  let found = order(1, { status: 'refunded', refunded: true, refunded_amount: 1_199 });
  const { tools } = await open(test, () => found);
  test.match(await tools.lookUp(REFUND, { orderId: '7' }), {
    outcome: 'found',
    result: { id: '7', refunded: true, refundedAmount: 1_199 },
  });
  test.same(await tools.lookUp(REFUND, { orderId: '7', amount: 500 }), { outcome: 'none' }, 'which one, nobody knows');
  found = order(1, { refunded_amount: 500, status: 'partial_refund' });
  test.same(await tools.lookUp(REFUND, { orderId: '7' }), { outcome: 'none' });
});

t.test('a summary says how much of which order', async (test) => {
  const { tools } = await open(test, () => ({}));
  test.equal(
    tools.summary(REFUND, { orderId: '7', amount: 500 }),
    'Refund 500 (in minor units of the order’s currency) of order 7 at Lemon Squeezy, in one of the stores 1, 2',
  );
  test.match(tools.summary(REFUND, { orderId: '7' }), /^Refund all that is left of order 7 at/);
});
