import type { ServerResponse } from 'node:http';
import type * as Tap from 'tap';
import t from 'tap';
import { CursorError } from '../../../engine/providers/tool.ts';
import { xAds } from '../../../engine/providers/x-ads/index.ts';
import { amountOf, microsOf } from '../../../engine/providers/x-ads/money.ts';
import { oauth1Header } from '../../../engine/providers/x-ads/oauth1.ts';
import { type Call, fails, json, openClient, openServer, type Reply } from './support.ts';
import { runsAll, toolsOf } from './tool_calls.ts';

const deploymentClient = { id: 'consumer', secret: 'consumer-secret' };
const credential = { kind: 'oauth1', token: '7-access', secret: 'as', userId: '7', screenName: 'acme' };
const settings = { kind: 'x_ads', accountIds: ['18ce54d4x5t', '18ce54d4x5u'] };
const account = { accountId: '18ce54d4x5t' };

async function open(test: Tap.Test, reply: Reply, given: object = settings) {
  const server = await openServer(test, reply);
  const origins = { 'https://api.x.com': server.origin, 'https://ads-api.x.com': server.origin };
  const client = openClient(test, origins);
  return { server, client, ...toolsOf(xAds, { client, credential, settings: given, deploymentClient }) };
}

/** The signature over the provider's own address, with the parameters of the query among what is signed. */
function isSigned(test: Tap.Test, call: Call | undefined): void {
  const header = call?.headers.authorization ?? '';
  const field = (name: string) => decodeURIComponent(new RegExp(`${name}="([^"]*)"`).exec(header)?.[1] ?? '');
  const url = new URL(`${call?.url.pathname}${call?.url.search}`, 'https://ads-api.x.com');
  const consumer = { key: deploymentClient.id, secret: deploymentClient.secret };
  const options = { nonce: field('oauth_nonce'), timestamp: Number(field('oauth_timestamp')) };
  test.equal(header, oauth1Header({ method: call?.method ?? '', url }, consumer, credential, options));
}

const campaign = {
  id: '8wku2',
  name: 'Launch',
  entity_status: 'ACTIVE',
  currency: 'EUR',
  daily_budget_amount_local_micro: 12_500_000,
  total_budget_amount_local_micro: null,
};

t.test('each tool is one that runs', (test) => {
  runsAll(test, xAds);
  test.end();
});

t.test('money is exact in both directions', (test) => {
  for (const [decimal, micros, shown] of [
    ['12.5', '12500000', '12.50'],
    ['0.000001', '1', '0.000001'],
    ['999999999.999999', '999999999999999', '999999999.999999'],
    ['0012', '12000000', '12.00'],
    ['0.07', '70000', '0.07'],
  ] as const) {
    test.equal(microsOf(decimal), micros);
    test.equal(amountOf(Number(micros)), shown);
  }
  test.equal(amountOf(null), null);
  test.equal(amountOf(0), '0.00');
  test.equal(amountOf(-1_500_000), '-1.50');
  for (const wrong of [1.5, '1', 2 ** 53, undefined]) test.throws(() => amountOf(wrong), /not the documented one/);
  test.end();
});

t.test('accounts are those of the settings, in slices that one request can name', async (test) => {
  const { read, server, client } = await open(test, () => ({
    data: [{ id: '18ce54d4x5t', name: 'Acme', approval_status: 'ACCEPTED' }, { id: 'other' }],
    next_cursor: null,
  }));
  test.same(await read('x_ads.accounts.list', {}), {
    data: [{ id: '18ce54d4x5t', name: 'Acme', approval_status: 'ACCEPTED' }],
    nextCursor: null,
  });
  test.equal(server.calls[0]?.url.searchParams.get('account_ids'), '18ce54d4x5t,18ce54d4x5u');
  isSigned(test, server.calls[0]);
  test.match(client.taken, [[{ key: 'x-ads:accounts:i1', capacity: 5 }]]);
  for (const cursor of ['200', '7', 'x', '-200']) {
    await test.rejects(read('x_ads.accounts.list', {}, cursor), CursorError, cursor);
  }
  const accountIds = Array.from({ length: 201 }, (_, index) => `a${index}`);
  const many = await open(test, () => ({ data: [] }), { ...settings, accountIds });
  test.match(await many.read('x_ads.accounts.list', {}), { nextCursor: '200' });
  test.match(await many.read('x_ads.accounts.list', {}, '200'), { nextCursor: null });
  test.equal(many.server.calls[1]?.url.searchParams.get('account_ids'), 'a200');
  const none = await open(test, () => ({ data: [{ id: 'other' }] }), { ...settings, accountIds: [] });
  test.same((await none.read('x_ads.accounts.list', {})).data, []);
  test.equal(none.server.calls.length, 0, 'without ids it would list all');
});

t.test('lists are signed, paged, and have amounts as decimals', async (test) => {
  const { read, server } = await open(test, ({ url }, res) => {
    const cursor = url.searchParams.get('cursor');
    if (cursor === 'wrong') return json(res, 400, { errors: [{ code: 'INVALID_PARAMETER' }] }) ?? undefined;
    return { data: [campaign], next_cursor: cursor === null ? 'c-2' : null };
  });
  const given = { ...account, count: 200, campaignIds: ['8wku2', '8wku3'] };
  const first = await read('x_ads.campaigns.list', given);
  test.match(first, {
    nextCursor: 'c-2',
    data: [{ daily_budget_amount_local: '12.50', total_budget_amount_local: null }],
  });
  test.match(await read('x_ads.campaigns.list', given, 'c-2'), { nextCursor: null });
  test.equal(
    server.calls[1]?.url.href,
    'http://server/12/accounts/18ce54d4x5t/campaigns?campaign_ids=8wku2%2C8wku3&count=200&cursor=c-2',
  );
  for (const call of server.calls) isSigned(test, call);
  await test.rejects(read('x_ads.campaigns.list', given, 'wrong'), CursorError);
  await test.rejects(read('x_ads.campaigns.list', given, 'with space'), CursorError);
  await read('x_ads.line_items.list', { ...account, lineItemIds: ['l1'] });
  await read('x_ads.funding_instruments.list', account);
  test.same(
    server.calls.slice(-2).map(({ url }) => `${url.pathname}${url.search}`),
    ['/12/accounts/18ce54d4x5t/line_items?line_item_ids=l1', '/12/accounts/18ce54d4x5t/funding_instruments'],
  );
});

const stats = {
  ...account,
  entity: 'CAMPAIGN',
  entityIds: ['8wku2'],
  startTime: '2026-11-01T00:00:00Z',
  endTime: '2026-11-02T00:00:00Z',
  granularity: 'HOUR',
  placement: 'ALL_ON_TWITTER',
};

t.test('statistics are of whole hours, at most seven days', async (test) => {
  const metrics = { impressions: [1, 0], billed_charge_local_micro: [1_230_000, null], clicks: null };
  const { read, wrong, server } = await open(test, () => ({
    time_series_length: 24,
    data: [{ id: '8wku2', id_data: [{ segment: null, metrics }] }],
    request: { params: {} },
  }));
  test.same((await read('x_ads.stats.read', stats)).data, {
    timeSeriesLength: 24,
    data: [
      {
        id: '8wku2',
        id_data: [
          { segment: null, metrics: { impressions: [1, 0], billed_charge_local: ['1.23', null], clicks: null } },
        ],
      },
    ],
  });
  test.same(Object.fromEntries(server.calls[0]?.url.searchParams ?? []), {
    entity: 'CAMPAIGN',
    entity_ids: '8wku2',
    start_time: stats.startTime,
    end_time: stats.endTime,
    granularity: 'HOUR',
    placement: 'ALL_ON_TWITTER',
    metric_groups: 'ENGAGEMENT,BILLING',
  });
  isSigned(test, server.calls[0]);
  for (const [changes, field] of [
    [{ startTime: '2026-11-01T00:30:00Z' }, 'startTime'],
    [{ endTime: '2026-11-02T00:00:01Z' }, 'endTime'],
    [{ endTime: stats.startTime }, 'endTime'],
    [{ endTime: '2026-11-08T01:00:00Z' }, 'endTime'],
    [{ accountId: 'other' }, 'accountId'],
    [{ granularity: 'DAY' }, 'granularity'],
  ] as const) {
    test.same(wrong('x_ads.stats.read', { ...stats, ...changes }), [field], JSON.stringify(changes));
  }
});

t.test('no tool reaches an account that is none of the settings', async (test) => {
  const { wrong } = await open(test, () => ({}));
  for (const [key, more] of [
    ['campaigns.list', {}],
    ['line_items.list', {}],
    ['funding_instruments.list', {}],
    ['campaigns.status.update', { campaignId: 'c', entityStatus: 'PAUSED' }],
    ['campaigns.budget.update', { campaignId: 'c', currency: 'EUR', dailyBudgetAmountLocal: '1' }],
  ] as const) {
    const name = `x_ads.${key}`;
    test.same(wrong(name, { ...account, ...more }), [], key);
    test.same(wrong(name, { accountId: 'other', ...more }), ['accountId'], key);
    test.same(wrong(name, { ...account, ...more }, null), ['accountId'], `${key} without settings`);
  }
});

const STATUS = 'x_ads.campaigns.status.update';
const pause = { ...account, campaignId: '8wku2', entityStatus: 'PAUSED' };

t.test('a campaign is paused by one request, and looked up', async (test) => {
  let status = 'ACTIVE';
  const { summary, execute, lookUp, server } = await open(test, ({ method, url }) => {
    if (method === 'PUT') status = url.searchParams.get('entity_status') ?? '';
    return { data: { ...campaign, entity_status: status } };
  });
  test.equal(summary(STATUS, pause), 'Pause campaign 8wku2 of ads account 18ce54d4x5t of X');
  test.match(summary(STATUS, { ...pause, entityStatus: 'ACTIVE' }), /spends money again/);
  test.same(await lookUp(STATUS, pause), { outcome: 'none' });
  const done = { id: '8wku2', entityStatus: 'PAUSED' };
  test.same(await execute(STATUS, pause), done);
  test.same(await lookUp(STATUS, pause), { outcome: 'found', result: done });
  test.same(
    server.calls.map(({ method, url }) => `${method} ${url.pathname}${url.search}`),
    [
      'GET /12/accounts/18ce54d4x5t/campaigns/8wku2',
      'PUT /12/accounts/18ce54d4x5t/campaigns/8wku2?entity_status=PAUSED',
      'GET /12/accounts/18ce54d4x5t/campaigns/8wku2',
    ],
  );
  for (const call of server.calls) isSigned(test, call);
});

const BUDGET = 'x_ads.campaigns.budget.update';
const budget = { ...account, campaignId: '8wku2', currency: 'EUR', dailyBudgetAmountLocal: '40.5' };

t.test('a budget is changed in the currency that was decided by', async (test) => {
  let daily = 12_500_000;
  let broken = 0;
  const { summary, execute, lookUp, wrong, server } = await open(test, ({ method, url }, res) => {
    if (broken > 0) {
      broken -= 1;
      return json(res, 503, {}) ?? undefined;
    }
    if (method === 'PUT') daily = Number(url.searchParams.get('daily_budget_amount_local_micro'));
    return { data: { ...campaign, daily_budget_amount_local_micro: daily } };
  });
  test.equal(
    summary(BUDGET, { ...budget, totalBudgetAmountLocal: '500' }),
    'Let campaign 8wku2 of ads account 18ce54d4x5t of X spend at most 40.5 EUR a day and 500 EUR in all, whatever its budget is now',
  );
  test.same(await lookUp(BUDGET, budget), { outcome: 'none' });
  const other = await fails(test, execute(BUDGET, { ...budget, currency: 'USD' }), 'failed', 'another currency');
  test.equal(other.isRefusal, true);
  broken = 3;
  const before = await fails(test, execute(BUDGET, budget), 'unavailable', 'what comes before');
  test.match(before, { isRefusal: true, status: 503 });
  test.notOk(server.calls.some(({ method }) => method === 'PUT'));
  const done = { id: '8wku2', currency: 'EUR', daily_budget_amount_local: '40.50', total_budget_amount_local: null };
  test.same(await execute(BUDGET, budget), done);
  test.same(await lookUp(BUDGET, budget), { outcome: 'found', result: done });
  test.same(await lookUp(BUDGET, { ...budget, totalBudgetAmountLocal: '500' }), { outcome: 'none' });
  const put = server.calls.filter(({ method }) => method === 'PUT');
  test.same(
    put.map(({ url }) => url.search),
    ['?daily_budget_amount_local_micro=40500000'],
  );
  isSigned(test, put[0]);
  test.same(wrong(BUDGET, { ...account, campaignId: 'c', currency: 'EUR' }), ['']);
  for (const amount of ['0', '0.00', '-1', '1e3', '1.0000001', '1,5', '', '.5', '1234567890']) {
    test.same(wrong(BUDGET, { ...budget, dailyBudgetAmountLocal: amount }), ['dailyBudgetAmountLocal'], amount);
  }
});

t.test('failures of a write are distinguished, and it is sent once', async (test) => {
  type Fault = (res: ServerResponse) => unknown;
  let fault: Fault = () => undefined;
  const { execute, server } = await open(test, (_call, res) => void fault(res));
  const faults = [
    [(res: ServerResponse) => json(res, 401, { errors: [{ code: 'UNAUTHORIZED_ACCESS' }] }), 'rejected'],
    [(res: ServerResponse) => json(res, 403, { errors: [{ code: 'UNAUTHORIZED_CLIENT' }] }), 'forbidden'],
    [(res: ServerResponse) => json(res, 404, { errors: [{ code: 'NOT_FOUND' }] }), 'not_found'],
    [(res: ServerResponse) => json(res, 429, {}, { 'retry-after': '90' }), 'rate_limited'],
    [(res: ServerResponse) => json(res, 500, {}), 'unavailable'],
    [(res: ServerResponse) => res.destroy(), 'unavailable'],
    [(res: ServerResponse) => res.writeHead(200, { 'content-type': 'text/html' }).end('<p>'), 'failed'],
  ] as const;
  for (const [one, reason] of faults) {
    fault = one;
    const sent = server.calls.length;
    const error = await fails(test, execute(STATUS, pause), reason, reason);
    test.equal(error.isRefusal, false);
    test.equal(server.calls.length, sent + 1, 'once');
  }
});
