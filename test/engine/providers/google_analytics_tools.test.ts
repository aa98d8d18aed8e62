import type { ServerResponse } from 'node:http';
import type * as Tap from 'tap';
import t from 'tap';
import { googleAnalytics } from '../../../engine/providers/google-analytics/index.ts';
import { CursorError } from '../../../engine/providers/tool.ts';
import { fails, json, openClient, openServer, type Reply } from './support.ts';
import { runsAll, toolsOf } from './tool_calls.ts';

const credential = { kind: 'oauth2', accessToken: 'ya29.x', refreshToken: 'r', scopes: [], expiresAt: null };
const settings = { kind: 'google_analytics', propertyIds: ['1234'] };
const RUN = 'google_analytics.reports.run';
const report = {
  propertyId: '1234',
  dateRanges: [{ startDate: '7daysAgo', endDate: 'yesterday' }],
  metrics: [{ name: 'sessions' }],
  dimensions: [{ name: 'country' }],
};

async function open(test: Tap.Test, reply: Reply) {
  const server = await openServer(test, reply);
  const origins = {
    'https://analyticsdata.googleapis.com': server.origin,
    'https://analyticsadmin.googleapis.com': server.origin,
  };
  const client = openClient(test, origins);
  return {
    server,
    client,
    ...toolsOf(googleAnalytics, { client, credential, settings }),
  };
}

t.test('each tool is one that runs', (test) => {
  runsAll(test, googleAnalytics);
  test.end();
});

const rows = (count: number) =>
  Array.from({ length: count }, (_, index) => ({
    dimensionValues: [{ value: `country ${index}` }],
    metricValues: [{ value: String(index) }],
  }));

t.test('a report is asked as documented, page by page', async (test) => {
  const metadata = { currencyCode: 'EUR', timeZone: 'Europe/Berlin', dataLossFromOtherRow: true };
  const { read, server } = await open(test, ({ body }) => ({
    dimensionHeaders: [{ name: 'country' }],
    metricHeaders: [{ name: 'sessions', type: 'TYPE_INTEGER' }],
    rows: rows(Math.min(2, 5 - Number(JSON.parse(body).offset))),
    rowCount: 5,
    metadata,
    propertyQuota: { tokensPerDay: { consumed: 1 } },
    kind: 'analyticsData#runReport',
  }));
  const first = await read(RUN, { ...report, limit: 2 });
  test.same(first, {
    data: {
      dimensionHeaders: [{ name: 'country' }],
      metricHeaders: [{ name: 'sessions', type: 'TYPE_INTEGER' }],
      rows: rows(2),
      rowCount: 5,
      metadata,
    },
    nextCursor: '2',
  });
  test.match(server.calls, [
    {
      method: 'POST',
      headers: { authorization: 'Bearer ya29.x', 'content-type': 'application/json' },
    },
  ]);
  test.equal(server.calls[0]?.url.pathname, '/v1beta/properties/1234:runReport');
  const { propertyId: _, ...sent } = report;
  test.same(JSON.parse(server.calls[0]?.body ?? ''), { ...sent, limit: '2', offset: '0' });
  test.equal((await read(RUN, { ...report, limit: 2 }, '2')).nextCursor, '4');
  test.equal((await read(RUN, { ...report, limit: 2 }, '4')).nextCursor, null);
  test.same(JSON.parse(server.calls[2]?.body ?? ''), { ...sent, limit: '2', offset: '4' });
  for (const cursor of ['0', '-2', '1.5', 'x', '', '9999999999']) {
    await test.rejects(read(RUN, report, cursor), CursorError, cursor);
  }
  test.equal(server.calls.length, 3);
});

t.test('a report without rows has no next page', async (test) => {
  const { read } = await open(test, () => ({ kind: 'analyticsData#runReport', metadata: { emptyReason: 'x' } }));
  test.match(await read(RUN, report), { data: { rows: [], rowCount: 0 }, nextCursor: null });
  const claims = await open(test, () => ({ rowCount: 9 }));
  test.equal((await claims.read(RUN, report, '200')).nextCursor, null, 'it does not go on for ever');
});

t.test('filters and orders have the shapes of the provider, and nothing else goes through', async (test) => {
  const { read, wrong, server } = await open(test, () => ({}));
  const country = { filter: { fieldName: 'country', stringFilter: { value: 'Sweden', matchType: 'EXACT' } } };
  const given = {
    ...report,
    dimensionFilter: { andGroup: { expressions: [country, { notExpression: country }] } },
    metricFilter: {
      filter: { fieldName: 'sessions', numericFilter: { operation: 'GREATER_THAN', value: { int64Value: '10' } } },
    },
    orderBys: [{ metric: { metricName: 'sessions' }, desc: true }],
  };
  await read(RUN, given);
  const { propertyId: _, ...sent } = given;
  test.same(JSON.parse(server.calls[0]?.body ?? ''), { ...sent, limit: '200', offset: '0' });
  for (const [change, path] of [
    [{ propertyId: '99' }, 'propertyId'],
    [{ propertyId: '1234:x' }, 'propertyId'],
    [{ limit: 201 }, 'limit'],
    [{ offset: 5 }, 'offset'],
    [{ metrics: [] }, 'metrics'],
    [{ dateRanges: [{ startDate: 'last week', endDate: 'today' }] }, 'dateRanges.0.startDate'],
    [{ dimensionFilter: { andGroup: { expressions: [] } } }, 'dimensionFilter.andGroup.expressions'],
  ] as const) {
    test.same(wrong(RUN, { ...report, ...change }), [path], path);
  }
  test.same(wrong(RUN, report, null), ['propertyId'], 'without settings');
});

t.test('what a property has is listed without what nobody needs', async (test) => {
  const dimension = { apiName: 'country', uiName: 'Country', description: 'From where.', category: 'Geography' };
  const { read, server } = await open(test, ({ url }) =>
    url.pathname.endsWith('/metadata')
      ? {
          dimensions: [{ ...dimension, deprecatedApiNames: ['ga:country'] }],
          metrics: [{ apiName: 'sessions', type: 'TYPE_INTEGER', expression: 'x' }],
        }
      : { name: 'properties/1234', displayName: 'Shop', timeZone: 'Europe/Berlin', currencyCode: 'EUR', etag: 'x' },
  );
  test.same((await read('google_analytics.metadata.get', { propertyId: '1234' })).data, {
    dimensions: [dimension],
    metrics: [{ apiName: 'sessions', type: 'TYPE_INTEGER' }],
  });
  test.same((await read('google_analytics.properties.get', { propertyId: '1234' })).data, {
    name: 'properties/1234',
    displayName: 'Shop',
    timeZone: 'Europe/Berlin',
    currencyCode: 'EUR',
  });
  test.same(
    server.calls.map(({ url }) => url.pathname),
    ['/v1beta/properties/1234/metadata', '/v1beta/properties/1234'],
  );
});

t.test('each fault has its reason', async (test) => {
  type Fault = (res: ServerResponse) => unknown;
  let fault: Fault = () => undefined;
  const { read } = await open(test, (_call, res) => void fault(res));
  const scope = { error: { status: 'PERMISSION_DENIED', details: [{ reason: 'ACCESS_TOKEN_SCOPE_INSUFFICIENT' }] } };
  const quota = { error: { status: 'RESOURCE_EXHAUSTED', message: 'Exhausted property tokens per hour.' } };
  const faults: readonly (readonly [Fault, Parameters<typeof fails>[2], string?])[] = [
    [(res) => json(res, 401, { error: { status: 'UNAUTHENTICATED' } }), 'rejected'],
    [(res) => json(res, 403, scope), 'forbidden', 'ACCESS_TOKEN_SCOPE_INSUFFICIENT'],
    [(res) => json(res, 404, {}), 'not_found'],
    [(res) => json(res, 429, quota, { 'retry-after': '120' }), 'rate_limited', 'RESOURCE_EXHAUSTED'],
    [(res) => json(res, 503, {}), 'unavailable'],
    [(res) => json(res, 200, { rows: 'no' }), 'failed'],
    [(res) => res.writeHead(200, { 'content-type': 'text/html' }).end('{}'), 'failed'],
    [
      (res) => {
        res.writeHead(200, { 'content-type': 'application/json', 'content-length': 99 });
        res.write('{"rows":', () => res.destroy());
      },
      'unavailable',
    ],
    [(res) => json(res, 200, { text: 'x'.repeat(5 * 1024 * 1024) }), 'too_large'],
  ];
  for (const [one, reason, code] of faults) {
    fault = one;
    const error = await fails(test, read(RUN, report), reason, reason);
    if (code !== undefined) test.equal(error.code, code);
  }
});
