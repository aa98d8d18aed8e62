import type { ServerResponse } from 'node:http';
import type * as Tap from 'tap';
import t from 'tap';
import { CursorMovedError } from '../../../engine/providers/dataset.ts';
import { xAds } from '../../../engine/providers/x-ads/index.ts';
import { datasetOf, known } from './dataset_calls.ts';
import { type Call, fails, json, openClient, openServer } from './support.ts';
import { failsAsDocumented } from './tool_calls.ts';

const KEY = 'xads.hourly_spend';
const PLANTED = 'planted-4711';
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const now = new Date('2026-11-30T12:20:00Z');
const end = Date.parse('2026-11-30T12:00:00Z');

type Campaign = { id: string; currency?: string; created?: string; updated?: string; deleted?: boolean };
/** What a campaign did in an hour, by `id placement hour`: impressions, clicks, engagements, micros. */
type Spent = Map<string, readonly [number, number, number, number]>;

type Options = Readonly<{
  campaigns?: readonly Campaign[];
  spent?: Spent;
  before?: (call: Call, campaigns: Campaign[], spent: Spent) => void;
  instead?: (call: Call, res: ServerResponse) => boolean;
  accountIds?: readonly string[];
}>;

const campaignsOf = (count: number): Campaign[] =>
  Array.from({ length: count }, (_, index) => ({ id: `c${String(index).padStart(3, '0')}` }));

/** An ads account as X's server has it: campaigns by cursor, and their hours as series that are null where nothing was. */
async function openAccount(test: Tap.Test, options: Options = {}) {
  const campaigns = [...(options.campaigns ?? [])];
  const spent: Spent = new Map(options.spent);

  function listed({ searchParams: query }: URL, res: ServerResponse): void {
    const after = query.get('cursor') ?? '';
    const all = campaigns.filter(({ id }) => id > after).sort((one, other) => (one.id < other.id ? -1 : 1));
    const size = Number(query.get('count'));
    const here = all.slice(0, size);
    json(res, 200, {
      request: { params: { account_id: 'abc' } },
      next_cursor: all.length > size ? here.at(-1)?.id : null,
      data: here.map(
        ({ id, currency = 'EUR', created = '2026-01-01T00:00:00Z', updated = created, deleted = false }) => ({
          id,
          name: PLANTED,
          currency,
          created_at: created,
          updated_at: updated,
          deleted,
          entity_status: 'ACTIVE',
        }),
      ),
    });
  }

  function counted({ searchParams: query }: URL, res: ServerResponse): void {
    const ids = (query.get('entity_ids') ?? '').split(',');
    const start = Date.parse(query.get('start_time') ?? '');
    const length = (Date.parse(query.get('end_time') ?? '') - start) / HOUR_MS;
    const wrong = ids.length > 20 || length > 168 || length < 1 || start % HOUR_MS !== 0;
    if (wrong) {
      json(res, 400, { errors: [{ code: 'INVALID_PARAMETER' }] });
      return;
    }
    const series = (id: string, place: number) => {
      const values: (number | null)[] = Array(length).fill(null);
      for (const [key, sums] of spent) {
        const [of, placement, time = ''] = key.split(' ');
        const hour = (Date.parse(time) - start) / HOUR_MS;
        if (of === id && placement === query.get('placement') && hour >= 0 && hour < length)
          values[hour] = sums[place] ?? 0;
      }
      return values.every((value) => value === null) ? null : values;
    };
    json(res, 200, {
      data_type: 'stats',
      time_series_length: length,
      data: ids.map((id) => {
        const billed = series(id, 3);
        const metrics = {
          impressions: series(id, 0),
          clicks: series(id, 1),
          engagements: series(id, 2),
          billed_charge_local_micro: billed,
          retweets: null,
        };
        return { id, id_data: [{ segment: null, metrics }] };
      }),
    });
  }

  const server = await openServer(test, (call, res) => {
    options.before?.(call, campaigns, spent);
    if (options.instead?.(call, res)) return;
    const { pathname } = call.url;
    if (pathname === '/12/accounts') {
      const ids = call.url.searchParams.get('account_ids')?.split(',') ?? [];
      const data = ids.map((id) => ({ id, name: PLANTED, timezone: 'America/Los_Angeles' }));
      json(res, 200, { data: [...data, { id: 'foreign', timezone: 'UTC' }] });
    } else if (pathname === '/12/accounts/abc/campaigns') listed(call.url, res);
    else if (pathname === '/12/stats/accounts/abc') counted(call.url, res);
    else json(res, 404, { errors: [{ code: 'NOT_FOUND', message: PLANTED }] });
  });
  const client = openClient(test, { 'https://ads-api.x.com': server.origin });
  const settings = { kind: 'x_ads', accountIds: options.accountIds ?? ['abc'] };
  const credential = { kind: 'oauth1', token: '7-access', secret: 'as', userId: '7', screenName: 'acme' };
  const deploymentClient = { id: 'consumer', secret: 'consumer-secret' };
  const open = datasetOf(xAds, KEY, { client, credential, settings, deploymentClient });
  /** What was asked of statistics, in the order of the requests. */
  const stats = () =>
    server.calls
      .filter(({ url }) => url.pathname.includes('/stats/'))
      .map(({ url }) => Object.fromEntries(url.searchParams));
  return { server, client, campaigns, spent, stats, ...open };
}

t.test('ads accounts of the settings are sources, with their zones', async (test) => {
  const { discover, server, client, round } = await openAccount(test, { accountIds: ['abc', 'abd'] });
  test.same(await discover(), [
    { resourceId: 'abc', environment: 'live', timezone: 'America/Los_Angeles' },
    { resourceId: 'abd', environment: 'live', timezone: 'America/Los_Angeles' },
  ]);
  test.equal(server.calls[0]?.url.searchParams.get('with_deleted'), 'true');
  test.match(client.taken, [[{ key: 'x-ads:accounts:i1', capacity: 5 }]]);
  const source = { resourceId: 'foreign', environment: 'live', timezone: 'UTC' } as const;
  await fails(test, round({ source, mode: 'tail', now }), 'not_found', 'of other settings');
  test.equal(server.calls.length, 1);
  const accountIds = Array.from({ length: 201 }, (_, index) => `a${index}`);
  const many = await openAccount(test, { accountIds });
  test.equal((await many.discover()).length, 201);
  test.equal(many.server.calls.length, 2);
});

t.test('an hour is told by its campaign, its placement and its sums', async (test) => {
  const spent: Spent = new Map([
    ['c000 ALL_ON_TWITTER 2026-11-30T10:00:00Z', [10, 2, 3, 1_234_567]],
    ['c000 TREND 2026-11-01T00:00:00Z', [1, 0, 0, 0]],
  ]);
  const { source, round, stats, client } = await openAccount(test, {
    campaigns: [{ id: 'c000', currency: 'USD' }],
    spent,
  });
  const first = await round({ source: await source(), mode: 'tail', now });
  test.same(
    first.facts.find(({ values }) => values['impressions'] === 10),
    {
      key: 'c000:ALL_ON_TWITTER:2026-11-30T10:00:00Z',
      effectiveAt: Date.parse('2026-11-30T10:00:00Z'),
      revision: null,
      values: {
        campaign: 'c000',
        placement: 'ALL_ON_TWITTER',
        impressions: 10,
        clicks: 2,
        engagements: 3,
        billed: '1.234567',
        currency: 'USD',
      },
    },
  );
  test.same(stats()[0], {
    entity: 'CAMPAIGN',
    entity_ids: 'c000',
    start_time: '2026-11-23T12:00:00Z',
    end_time: '2026-11-30T12:00:00Z',
    granularity: 'HOUR',
    placement: 'ALL_ON_TWITTER',
    metric_groups: 'ENGAGEMENT,BILLING',
  });
  test.equal(first.facts.length, 168, 'the hours of a week that has any; null is none');
  test.ok(first.facts.every(({ values }) => values['billed'] === '0' || values['impressions'] === 10));
  test.same(
    stats().map(({ placement, start_time: start }) => [placement, start]),
    ['2026-11-23T12:00:00Z', '2026-11-16T12:00:00Z'].flatMap((start) =>
      ['ALL_ON_TWITTER', 'SPOTLIGHT', 'TREND'].map((placement) => [placement, start]),
    ),
    'two weeks, each placement by itself',
  );
  test.same(
    new Set(client.taken.flat().map(({ key }) => key)),
    new Set(['x-ads:accounts:i1', 'x-ads:account:i1:60/1', 'x-ads:account:i1:50/0.25']),
  );
  test.notMatch(JSON.stringify(first), PLANTED);
});

for (const resumes of [false, true]) {
  t.test(`all campaigns are read, ${resumes ? 'by a process each page' : 'in one go'}`, async (test) => {
    const campaigns = campaignsOf(105);
    const hour = '2026-11-30T03:00:00Z';
    // The first and the last one of each request.
    const spending = campaigns.filter((_, index) => index % 20 === 0 || index % 20 === 19);
    const spent: Spent = new Map(spending.map(({ id }) => [`${id} SPOTLIGHT ${hour}`, [1, 1, 1, 1]]));
    const { source, round, stats, server } = await openAccount(test, {
      campaigns,
      spent,
      before(_, all) {
        // One that is new, in a page that was read and in one that was not.
        if (server.calls.length === 6) all.push({ id: 'c0005' }, { id: 'c9999' });
      },
    });
    const of = await source();
    const first = await round({ source: of, mode: 'tail', now, resumes });
    const seen = [...known(first.facts).values()].filter(({ values }) => values['impressions'] === 1);
    test.same(
      seen.map(({ values }) => values['campaign']).sort(),
      spending.map(({ id }) => id),
    );
    const asked = stats().map(({ entity_ids: ids = '' }) => ids.split(','));
    test.ok(asked.every((ids) => ids.length <= 20));
    test.same(new Set(asked.flat()), new Set([...campaigns.map(({ id }) => id), 'c9999']));
    test.equal(first.pages.filter(({ facts }) => facts.length > 0).length, asked.length / 6, 'each once');
    test.same(first.covered, [
      { start: end - 14 * DAY_MS, end: end - 3 * DAY_MS, state: 'complete' },
      { start: end - 3 * DAY_MS, end, state: 'partial', reason: 'estimated' },
    ]);
    test.ok(
      first.pages.slice(0, -1).every(({ covered = [] }) => covered.length === 0),
      'known once all were read',
    );
    test.ok(first.pages.every((page) => page.exhaustive === undefined));

    const before = stats().length;
    const later = new Date(now.getTime() + HOUR_MS);
    const second = await round({ source: of, mode: 'tail', now: later, cursor: first.cursor, resumes });
    test.ok(second.facts.some(({ values }) => values['campaign'] === 'c0005') === false, 'it has spent nothing');
    test.ok(
      stats()
        .slice(before)
        .some(({ entity_ids: ids = '' }) => ids.includes('c0005')),
    );
    test.same(
      [second.covered[0]?.start, second.covered.at(-1)?.end],
      [end - 23 * HOUR_MS, end + HOUR_MS],
      'a day again',
    );
    const tomorrow = new Date(now.getTime() + DAY_MS);
    const third = await round({ source: of, mode: 'tail', now: tomorrow, cursor: second.cursor, resumes });
    test.equal(third.covered[0]?.start, end - 13 * DAY_MS, 'all that may be adjusted, once a day');
    const away = new Date(now.getTime() + 40 * DAY_MS);
    const fourth = await round({ source: of, mode: 'tail', now: away, cursor: third.cursor, resumes });
    test.equal(fourth.covered[0]?.start, end + DAY_MS, 'from where it was');
  });

  t.test(`a backfill reads months, the newest one first, ${resumes ? 'resumed' : 'in one go'}`, async (test) => {
    const spent: Spent = new Map([
      ['c000 ALL_ON_TWITTER 2026-11-30T11:00:00Z', [1, 0, 0, 0]],
      ['c000 ALL_ON_TWITTER 2026-11-01T00:00:00Z', [2, 0, 0, 0]],
      ['c000 ALL_ON_TWITTER 2026-10-31T23:00:00Z', [3, 0, 0, 0]],
      ['c000 ALL_ON_TWITTER 2025-11-01T00:00:00Z', [4, 0, 0, 0]],
      ['c000 ALL_ON_TWITTER 2025-10-30T23:00:00Z', [5, 0, 0, 0]],
    ]);
    const campaigns = [{ id: 'c000', created: '2020-01-01T00:00:00Z' }];
    const { source, round } = await openAccount(test, { campaigns, spent });
    const { facts, covered } = await round({ source: await source(), mode: 'backfill', now, resumes });
    test.same(
      facts.map(({ values }) => values['impressions']),
      [1, 2, 3, 4],
      'hours without anything are not told',
    );
    test.same(
      covered.filter(({ state }) => state === 'complete').map(({ start }) => new Date(start).toISOString().slice(0, 7)),
      Array.from({ length: 14 }, (_, index) => new Date(Date.UTC(2026, 10 - index)).toISOString().slice(0, 7)),
    );
    for (const [index, { end: until }] of covered.slice(2).entries()) {
      test.equal(until, covered.slice(index === 0 ? 0 : index + 1)[0]?.start, 'no gaps');
    }
  });
}

t.test('an hour that was adjusted is told anew, down to nothing', async (test) => {
  const key = 'c000 ALL_ON_TWITTER 2026-11-28T10:00:00Z';
  const spent: Spent = new Map([
    [key, [10, 2, 3, 5_000_000]],
    ['c000 ALL_ON_TWITTER 2026-11-28T11:00:00Z', [1, 0, 0, 0]],
  ]);
  const account = await openAccount(test, { campaigns: campaignsOf(1), spent });
  const source = await account.source();
  const first = await account.round({ source, mode: 'tail', now });
  account.spent.set(key, [0, 0, 0, 0]);
  const tomorrow = new Date(now.getTime() + DAY_MS);
  const second = await account.round({ source, mode: 'tail', now: tomorrow, cursor: first.cursor });
  const fact = known([...first.facts, ...second.facts]).get(key.replaceAll(' ', ':'));
  test.match(fact?.values, { impressions: 0, billed: '0' });
});

t.test('campaigns that cannot have spent are not asked for', async (test) => {
  const { source, round, stats } = await openAccount(test, {
    campaigns: [
      { id: 'old', deleted: true, updated: '2026-10-01T00:00:00Z' },
      { id: 'late', deleted: true, updated: '2026-11-25T00:00:00Z' },
      { id: 'just', deleted: true, updated: '2026-11-16T00:00:00Z' },
      { id: 'next', created: '2026-11-30T12:10:00Z' },
    ],
  });
  const of = await source();
  await round({ source: of, mode: 'tail', now });
  test.same(new Set(stats().map(({ entity_ids: ids }) => ids)), new Set(['just,late']));
});

t.test('an account without campaigns is known to have spent nothing', async (test) => {
  const { source, round } = await openAccount(test);
  const of = await source();
  const tail = await round({ source: of, mode: 'tail', now });
  test.match(tail, { facts: [], pages: [{ records: 0, done: true }], covered: [{ state: 'complete' }, { end }] });
  const backfill = await round({ source: of, mode: 'backfill', now });
  test.equal(backfill.pages.length, 14);
  test.equal(backfill.covered.at(-1)?.start, Date.UTC(2025, 9, 31), 'where it is a month later already');
});

t.test('faults end the round, and it goes on from the page before', async (test) => {
  for (const part of ['/campaigns', '/stats/']) {
    await failsAsDocumented(test, part, 'read', async (reply) => {
      const { source, round, server } = await openAccount(test, {
        campaigns: campaignsOf(1),
        instead({ url }, res) {
          if (!url.pathname.includes(part)) return false;
          reply(res);
          return true;
        },
      });
      return { done: round({ source: await source(), mode: 'tail', now }), sent: () => server.calls.length };
    });
  }
  const one = (metrics: unknown, id = 'c000') => ({ data: [{ id, id_data: [{ segment: null, metrics }] }] });
  const wrong = [
    { data: [null] },
    one(null),
    one({ impressions: [1, 2] }),
    one({ impressions: [1.5] }),
    one({ impressions: ['1'] }),
    one({}, 'other'),
  ];
  for (const answer of wrong) {
    const { source, round } = await openAccount(test, {
      campaigns: campaignsOf(1),
      instead({ url }, res) {
        if (!url.pathname.includes('/stats/')) return false;
        json(res, 200, answer);
        return true;
      },
    });
    await fails(test, round({ source: await source(), mode: 'tail', now }), 'failed', JSON.stringify(answer));
  }

  let isDown = false;
  const spent: Spent = new Map([['c000 TREND 2026-11-30T10:00:00Z', [1, 1, 1, 1]]]);
  const { source, round } = await openAccount(test, {
    campaigns: campaignsOf(30),
    spent,
    instead({ url }, res) {
      const isFault = isDown && url.pathname.includes('/stats/');
      const reset = String(Math.floor(Date.now() / 1_000) + 600);
      if (isFault) json(res, 429, {}, { 'x-account-rate-limit-reset': reset });
      return isFault;
    },
  });
  const of = await source();
  let cursor: unknown;
  const afterPage = (page: { cursor: unknown }) => {
    cursor = page.cursor;
    isDown = true;
  };
  const error = await fails(test, round({ source: of, mode: 'tail', now, afterPage }), 'rate_limited', 'limited');
  test.ok(Number(error.retryNotBefore) > Date.now() + 500_000, 'the limit of the account is what counts');
  isDown = false;
  const rest = await round({ source: of, mode: 'tail', now: new Date(now.getTime() + 5 * HOUR_MS), cursor });
  test.equal(rest.facts.filter(({ values }) => values['impressions'] === 1).length, 1);
  test.equal(rest.covered.at(-1)?.end, end, 'the hours are those of when the round began');
  const late = await round({ source: of, mode: 'tail', now: new Date(now.getTime() + 9 * DAY_MS), cursor });
  test.equal(late.covered.at(-1)?.state, 'partial', 'what was an estimate when it was read');
});

t.test('a place that X does not know any more begins the round anew', async (test) => {
  const { source, round } = await openAccount(test, {
    campaigns: campaignsOf(101),
    instead({ url }, res) {
      const isOver = url.pathname.endsWith('/campaigns') && url.searchParams.has('cursor');
      if (isOver) json(res, 400, { errors: [{ code: 'INVALID_PARAMETER', message: PLANTED }] });
      return isOver;
    },
  });
  await test.rejects(round({ source: await source(), mode: 'tail', now }), CursorMovedError);
});

t.test('a list of campaigns that leads to the same place again ends the round', async (test) => {
  const { source, round } = await openAccount(test, {
    instead: ({ url }, res) => {
      if (!url.pathname.endsWith('/campaigns')) return false;
      json(res, 200, { data: [], next_cursor: 'here' });
      return true;
    },
  });
  await fails(test, round({ source: await source(), mode: 'tail', now }), 'failed', 'the same place');
});
