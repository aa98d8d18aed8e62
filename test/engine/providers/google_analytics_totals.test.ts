import { createHash } from 'node:crypto';
import t from 'tap';
import type { Fact, FactPage } from '../../../engine/providers/dataset.ts';
import { known } from './dataset_calls.ts';
import { openProperty, PLANTED, type Row } from './property_server.ts';
import { fails, json } from './support.ts';
import { failsAsDocumented } from './tool_calls.ts';

const KEY = 'ga4.daily_totals';
const HOUR_MS = 3_600_000;
// The 30th in Berlin, an hour after its midnight.
const now = new Date('2026-11-30T00:00:00Z');

const row = (date: string, country = 'Germany', sessions = 3): Row => ({
  date,
  country,
  device: 'mobile',
  channel: 'Organic Search',
  metrics: [String(sessions), '2', '9', '40', '12.5'],
});
const daysOf = (count: number, last = '2026-11-30') =>
  Array.from({ length: count }, (_, index) =>
    new Date(Date.parse(last) - index * 86_400_000).toISOString().slice(0, 10),
  );

/** What is left after the pages: withdrawn is what an exhaustive one does not have. */
function afterPages(pages: readonly FactPage[]): ReadonlyMap<string, Fact> {
  const left = new Map<string, Fact>();
  for (const { facts, exhaustive } of pages) {
    for (const [key, { effectiveAt }] of [...left]) {
      if (exhaustive && effectiveAt >= exhaustive.start && effectiveAt < exhaustive.end) left.delete(key);
    }
    for (const fact of facts) left.set(fact.key, fact);
  }
  return left;
}
const sessions = (facts: Iterable<Fact>) => [...facts].reduce((sum, { values }) => sum + Number(values['sessions']), 0);

t.test('properties of the settings that are reached are sources, with their zones', async (test) => {
  const { dataset, server } = await openProperty(test, { propertyIds: ['7', '8'], timezone: 'America/Havana' });
  test.same(await dataset(KEY).discover(), [{ resourceId: '7', environment: 'live', timezone: 'America/Havana' }]);
  const source = { resourceId: '9', environment: 'live', timezone: 'UTC' } as const;
  const sent = server.calls.length;
  await fails(test, dataset(KEY).round({ source, mode: 'tail', now }), 'not_found', 'of other settings');
  test.equal(server.calls.length, sent);
});

t.test('a row is told by its day, its dimensions and its sums', async (test) => {
  const rows = [row('2026-11-29'), { ...row('2026-11-28', ''), metrics: ['1', '0', '1', '1', '1.5E-7'] }];
  const { dataset, reports, client } = await openProperty(test, { rows });
  const open = dataset(KEY);
  const round = await open.round({ source: await open.source(), mode: 'tail', now });
  const hash = createHash('sha256').update('["Germany","mobile","Organic Search"]').digest('hex');
  test.same(round.facts[0], {
    key: `2026-11-29:${hash}`,
    effectiveAt: Date.parse('2026-11-28T23:00:00Z'),
    revision: null,
    values: {
      date: '2026-11-29',
      country: 'Germany',
      device_category: 'mobile',
      session_default_channel_group: 'Organic Search',
      sessions: 3,
      engaged_sessions: 2,
      screen_page_views: 9,
      event_count: 40,
      purchase_revenue: '12.5',
      currency: 'EUR',
    },
  });
  test.match(round.facts[1]?.values, { country: null, purchase_revenue: '0.00000015' });
  test.equal(round.facts.length, 2);
  test.match(reports, [{ dateRanges: [{ startDate: '2026-11-23', endDate: '2026-11-30' }], limit: '10000' }]);
  test.match(client.taken.at(-1), [{ key: 'google-analytics:data:account:i1:20/2' }]);
  test.notMatch(JSON.stringify(round), PLANTED);
});

t.test('whole days are exhaustive, and known; those that Google still counts in part', async (test) => {
  const { dataset, rows } = await openProperty(test, { rows: daysOf(8).map((date) => row(date)) });
  const open = dataset(KEY);
  const source = await open.source();
  const first = await open.round({ source, mode: 'tail', now });
  const start = Date.parse('2026-11-22T23:00:00Z');
  const end = Date.parse('2026-11-30T23:00:00Z');
  const open48 = Date.parse('2026-11-27T23:00:00Z');
  test.same(first.pages[0]?.exhaustive, { start, end });
  test.same(first.covered, [
    { start, end: open48, state: 'complete' },
    { start: open48, end, state: 'partial', reason: 'not_final' },
  ]);
  // What was counted for one country is counted for another one.
  rows.splice(0, 1, row('2026-11-30', 'France', 5));
  const second = await open.round({ source, mode: 'tail', now, cursor: first.cursor });
  test.equal(sessions(afterPages([...first.pages, ...second.pages]).values()), 7 * 3 + 5);
  const late = new Date('2026-12-20T12:00:00Z');
  const gap = await open.round({ source, mode: 'tail', now: late, cursor: second.cursor, resumes: true });
  test.equal(gap.covered.at(-1)?.start, Date.parse('2026-11-26T23:00:00Z'), 'what was not final is read again');
  test.equal(gap.facts.length, 4);
});

for (const resumes of [false, true]) {
  t.test(`a page has whole days alone, ${resumes ? 'resumed' : 'in one go'}`, async (test) => {
    const countries = Array.from({ length: 14 }, (_, index) => `C${index}`);
    const rows = daysOf(8).flatMap((date) => countries.map((country) => row(date, country, 1)));
    const { dataset, reports } = await openProperty(test, { rows, cap: 100 });
    const open = dataset(KEY);
    const source = await open.source();
    const round = await open.round({ source, mode: 'backfill', now, resumes });
    test.equal(round.facts.length, rows.length);
    test.equal(known(round.facts).size, rows.length, 'no row of a border twice');
    test.equal(afterPages(round.pages).size, rows.length);
    for (const { facts, records } of round.pages) {
      test.equal(facts.length % countries.length, 0);
      test.ok(records <= 100);
    }
    test.same(
      reports.slice(0, 3).map(({ dateRanges: [range], offset }) => [range?.startDate, range?.endDate, offset]),
      [
        ['2026-11-01', '2026-11-30', '0'],
        ['2026-11-01', '2026-11-23', '0'],
        ['2026-10-01', '2026-10-31', '0'],
      ],
    );
    test.equal(reports.length, 2 + 12);
    test.equal(reports.at(-1)?.dateRanges[0]?.startDate, '2025-11-01');
    // Newest first, without gaps.
    const starts = round.covered.filter(({ state }) => state === 'complete').map(({ start, end }) => [start, end]);
    test.equal(starts.at(-1)?.[0], Date.parse('2025-10-31T23:00:00Z'));
    for (const [index, [, end]] of starts.slice(1).entries()) test.equal(end, starts[index]?.[0]);
  });

  t.test(`a day on several pages is none that is exhaustive, ${resumes ? 'resumed' : 'in one go'}`, async (test) => {
    const crowd = Array.from({ length: 102 }, (_, index) => row('2026-11-20', `C${index}`, 1));
    const rows = [row('2026-11-21'), ...crowd, row('2026-11-19')];
    const { dataset, reports } = await openProperty(test, { rows, cap: 100 });
    const open = dataset(KEY);
    const source = await open.source();
    const late = new Date('2026-11-26T12:00:00Z');
    const { pages, facts } = await open.round({ source, mode: 'tail', now: late, resumes });
    test.equal(known(facts).size, rows.length);
    const times = { start: Date.parse('2026-11-19T23:00:00Z'), end: Date.parse('2026-11-20T23:00:00Z') };
    for (const { exhaustive, facts: some } of pages) {
      if (some.some(({ values }) => values['date'] === '2026-11-20')) test.equal(exhaustive, undefined);
      else test.ok(exhaustive && (exhaustive.end <= times.start || exhaustive.start >= times.end));
    }
    const ofDay = pages.flatMap(({ covered = [] }) => covered).filter(({ end }) => end === times.end);
    test.same(ofDay, [{ ...times, state: 'partial', reason: 'several_pages' }]);
    test.same(
      reports.map(({ dateRanges: [range], offset }) => [range?.startDate, range?.endDate, offset]),
      [
        ['2026-11-19', '2026-11-26', '0'],
        ['2026-11-19', '2026-11-20', '0'],
        ['2026-11-20', '2026-11-20', '100'],
        ['2026-11-19', '2026-11-19', '0'],
      ],
    );
  });
}

t.test('rows that change between pages are those of the page that has them last', async (test) => {
  const countries = Array.from({ length: 60 }, (_, index) => `C${index}`);
  const { dataset, reports } = await openProperty(test, {
    cap: 100,
    rows: daysOf(2).flatMap((date) => countries.map((country) => row(date, country, 1))),
    before(_, all) {
      if (reports.length > 1) all.splice(60, 10);
    },
  });
  const open = dataset(KEY);
  const { pages } = await open.round({ source: await open.source(), mode: 'tail', now });
  test.same(
    pages.map(({ facts }) => facts.length),
    [60, 50],
    'days behind the page are read as they are then',
  );
});

t.test('midnights are those of the zone, also where clocks show one twice', async (test) => {
  const rows = ['2026-10-31', '2026-11-01', '2026-11-02'].map((date) => row(date));
  const { dataset } = await openProperty(test, { rows, timezone: 'America/Havana' });
  const open = dataset(KEY);
  const round = await open.round({ source: await open.source(), mode: 'tail', now: new Date('2026-11-07T12:00:00Z') });
  const times = new Map(round.facts.map(({ values, effectiveAt }) => [values['date'], effectiveAt]));
  test.equal(times.get('2026-10-31'), Date.parse('2026-10-31T04:00:00Z'));
  test.equal(times.get('2026-11-01'), Date.parse('2026-11-01T04:00:00Z'));
  test.equal(times.get('2026-11-02'), Date.parse('2026-11-02T05:00:00Z'), 'after 25 hours');
  test.equal(round.pages.at(-1)?.exhaustive?.start, Date.parse('2026-10-31T04:00:00Z'));
});

t.test('what Google says of a report is said of its days', async (test) => {
  const date = '2026-11-25';
  const cases = [
    [{ subjectToThresholding: true }, { state: 'suppressed', reason: 'thresholding' }, 1, false],
    [{ dataLossFromOtherRow: true }, { state: 'partial', reason: 'other_row' }, 1, true],
    [{ samplingMetadatas: [{ samplesReadCount: '1' }] }, { state: 'partial', reason: 'sampling' }, 1, true],
    [{ dataTruncationReasons: ['X'] }, { state: 'partial', reason: 'truncation' }, 1, true],
    [
      { schemaRestrictionResponse: { activeMetricRestrictions: [{ metricName: 'purchaseRevenue' }] } },
      { state: 'unavailable', reason: 'schema_restriction' },
      0,
      false,
    ],
    [{ schemaRestrictionResponse: {}, samplingMetadatas: [] }, { state: 'complete' }, 1, true],
  ] as const;
  for (const [metadata, expected, facts, isExhaustive] of cases) {
    const { dataset } = await openProperty(test, { rows: [row(date)], metadata: () => metadata });
    const open = dataset(KEY);
    const what = JSON.stringify(metadata);
    const round = await open.round({ source: await open.source(), mode: 'tail', now, resumes: true });
    test.equal(round.facts.length, facts, what);
    const midnight = Date.parse('2026-11-24T23:00:00Z');
    test.match(
      round.covered.find(({ start, end }) => start <= midnight && end > midnight),
      expected,
      what,
    );
    test.equal(
      round.pages.some(({ exhaustive }) => exhaustive),
      isExhaustive,
      what,
    );
  }
  // One day of them, so that the others are complete.
  const { dataset, reports } = await openProperty(test, {
    rows: daysOf(8).map((one) => row(one)),
    metadata: ({ dateRanges: [range] }) => ({
      dataLossFromOtherRow: (range?.startDate ?? '') <= date && (range?.endDate ?? '') >= date,
    }),
  });
  const open = dataset(KEY);
  const round = await open.round({ source: await open.source(), mode: 'tail', now, resumes: true });
  test.equal(reports.length, 9);
  test.equal(known(round.facts).size, 8);
  test.same(
    round.covered.map(({ state, reason }) => reason ?? state),
    ['not_final', 'not_final', 'not_final', 'complete', 'complete', 'other_row', 'complete', 'complete'],
  );
});

t.test('an empty property is known to be empty, unless Google says that it does not know', async (test) => {
  const none = await openProperty(test);
  const open = none.dataset(KEY);
  const round = await open.round({ source: await open.source(), mode: 'tail', now });
  test.match(round.covered, [{ state: 'complete' }, { state: 'partial', reason: 'not_final' }]);
  test.match(round.pages, [{ facts: [], records: 0, exhaustive: {} }]);
  const unknown = await openProperty(test, { metadata: () => ({ emptyReason: 'NO_DATA' }) });
  const closed = unknown.dataset(KEY);
  const missing = await closed.round({ source: await closed.source(), mode: 'tail', now });
  test.match([missing.facts, missing.covered, missing.pages[0]?.exhaustive], [[], [], undefined]);
});

t.test('another zone or currency is another series', async (test) => {
  for (const metadata of [{ timeZone: 'Asia/Tokyo' }, { timeZone: 'Nowhere/Else' }]) {
    const { dataset } = await openProperty(test, { rows: [row('2026-11-29')], metadata: () => metadata });
    const open = dataset(KEY);
    const round = open.round({ source: await open.source(), mode: 'tail', now });
    test.match((await fails(test, round, 'failed', 'zone')).message, /another series/);
  }
  const { dataset } = await openProperty(test, {
    rows: [],
    timezone: 'Asia/Kolkata',
    metadata: () => ({ timeZone: 'Asia/Calcutta' }),
  });
  const same = dataset(KEY);
  await same.round({ source: await same.source(), mode: 'tail', now });

  let currencyCode = 'EUR';
  const changing = await openProperty(test, { rows: [row('2026-11-29')], metadata: () => ({ currencyCode }) });
  const open = changing.dataset(KEY);
  const source = await open.source();
  const { cursor } = await open.round({ source, mode: 'tail', now });
  currencyCode = 'USD';
  const round = open.round({ source, mode: 'tail', now, cursor });
  test.match((await fails(test, round, 'failed', 'currency')).message, /another series/);
});

t.test('faults and rows of another form end the round', async (test) => {
  await failsAsDocumented(test, KEY, 'read', async (reply) => {
    const { dataset, server } = await openProperty(test, {
      instead({ url }, res) {
        if (!url.pathname.endsWith(':runReport')) return false;
        reply(res);
        return true;
      },
    });
    const open = dataset(KEY);
    return { done: open.round({ source: await open.source(), mode: 'tail', now }), sent: () => server.calls.length };
  });
  const good = { dimensionValues: ['20261129', 'x', 'x', 'x'].map((value) => ({ value })) };
  const headers = {
    dimensionHeaders: ['date', 'country', 'deviceCategory', 'sessionDefaultChannelGroup'].map((name) => ({ name })),
    metricHeaders: ['sessions', 'engagedSessions', 'screenPageViews', 'eventCount', 'purchaseRevenue'].map((name) => ({
      name,
    })),
    metadata: { currencyCode: 'EUR' },
  };
  const metrics = (...values: unknown[]) => ({ metricValues: values.map((value) => ({ value })) });
  const wrong = [
    { rows: [null] },
    { rows: [{ ...good, ...metrics('1', '1', '1', '1') }] },
    { rows: [{ ...good, ...metrics('1', '1', null, '1', '1') }] },
    { rows: [{ ...good, ...metrics('1.5', '1', '1', '1', '1') }] },
    { rows: [{ ...good, ...metrics('1', '1', '1', '1', 'NaN') }] },
    { rows: [{ ...good, ...metrics('1', '1', '1', '1', '1E30') }] },
    { rows: [{ dimensionValues: good.dimensionValues.slice(1), ...metrics('1', '1', '1', '1', '1') }] },
    {
      rows: [
        {
          dimensionValues: [{ value: '20261312' }, ...good.dimensionValues.slice(1)],
          ...metrics('1', '1', '1', '1', '1'),
        },
      ],
    },
    {
      rows: [
        {
          dimensionValues: [{ value: '20200101' }, ...good.dimensionValues.slice(1)],
          ...metrics('1', '1', '1', '1', '1'),
        },
      ],
    },
    { rows: [{ ...good, ...metrics('1', '1', '1', '1', '1') }], metricHeaders: [] },
    { rows: [{ ...good, ...metrics('1', '1', '1', '1', '1') }], metadata: {} },
    { rows: [], rowCount: 5 },
  ];
  for (const answer of wrong) {
    const { dataset } = await openProperty(test, {
      instead({ url }, res) {
        if (!url.pathname.endsWith(':runReport')) return false;
        json(res, 200, { ...headers, ...answer });
        return true;
      },
    });
    const open = dataset(KEY);
    const round = open.round({ source: await open.source(), mode: 'tail', now });
    await fails(test, round, 'failed', JSON.stringify(answer));
  }
});

t.test('a round goes on where it was broken off', async (test) => {
  let isDown = false;
  const { dataset } = await openProperty(test, {
    rows: daysOf(60).map((date) => row(date)),
    instead({ url }, res) {
      if (isDown && url.pathname.endsWith(':runReport')) json(res, 503, {}, { 'retry-after': '40' });
      return isDown && url.pathname.endsWith(':runReport');
    },
  });
  const open = dataset(KEY);
  const source = await open.source();
  const pages: FactPage[] = [];
  const afterPage = (page: FactPage) => {
    pages.push(page);
    isDown = true;
  };
  const broken = await fails(test, open.round({ source, mode: 'backfill', now, afterPage }), 'unavailable', 'down');
  test.ok(broken.retryNotBefore);
  isDown = false;
  const later = new Date(now.getTime() + 30 * HOUR_MS);
  const rest = await open.round({ source, mode: 'backfill', now: later, cursor: pages[0]?.cursor });
  test.equal(known([...pages.flatMap(({ facts }) => facts), ...rest.facts]).size, 60);
});
