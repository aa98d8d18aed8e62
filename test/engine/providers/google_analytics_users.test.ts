import t from 'tap';
import { known } from './dataset_calls.ts';
import { openProperty, PLANTED } from './property_server.ts';
import { fails, json } from './support.ts';
import { failsAsDocumented } from './tool_calls.ts';

const KEY = 'ga4.period_users';
// A Wednesday; in Berlin it is one o'clock.
const now = new Date('2026-12-02T00:00:00Z');
const users = ({ startDate, endDate }: Readonly<{ startDate: string; endDate: string }>) => [
  String(100 + (Date.parse(endDate) - Date.parse(startDate)) / 86_400_000),
  '90',
];

t.test('users are asked for by whole periods, never by the day within one', async (test) => {
  const { dataset, reports } = await openProperty(test, { users });
  const open = dataset(KEY);
  const round = await open.round({ source: await open.source(), mode: 'tail', now, resumes: true });
  test.same(
    reports.map(({ dateRanges: [range] }) => [range?.startDate, range?.endDate]),
    [
      ['2026-12-01', '2026-12-01'],
      ['2026-11-30', '2026-11-30'],
      ['2026-11-29', '2026-11-29'],
      ['2026-11-28', '2026-11-28'],
      ['2026-11-27', '2026-11-27'],
      ['2026-11-26', '2026-11-26'],
      ['2026-11-25', '2026-11-25'],
      ['2026-11-23', '2026-11-29'],
      ['2026-11-01', '2026-11-30'],
    ],
    'that ended within seven days: neither the week nor the month under way',
  );
  for (const { dimensions, dateRanges } of reports) test.same([dimensions, dateRanges.length], [[], 1]);
  test.same(round.facts.at(-2), {
    key: 'week:2026-11-23:2026-11-30',
    effectiveAt: Date.parse('2026-11-22T23:00:00Z'),
    revision: null,
    values: {
      grain: 'week',
      period_start: '2026-11-23',
      period_end: '2026-11-30',
      total_users: 106,
      active_users: 90,
      coverage: 'complete',
    },
  });
  test.match(round.facts[0]?.values, { grain: 'day', coverage: 'partial' }, 'Google still counts');
  test.match(round.facts.at(-1)?.values, { grain: 'month', total_users: 129, coverage: 'partial' });
  test.same(
    round.covered.map(({ start, state }) => [new Date(start).toISOString().slice(0, 10), state]),
    [
      ['2026-11-30', 'partial'],
      ['2026-11-29', 'partial'],
      ['2026-11-28', 'complete'],
      ['2026-11-27', 'complete'],
      ['2026-11-26', 'complete'],
      ['2026-11-25', 'complete'],
      ['2026-11-24', 'complete'],
    ],
    'of the days, by their midnights in the zone',
  );
  test.notMatch(JSON.stringify(round), PLANTED);
});

t.test('a tail that was away reads what ended meanwhile', async (test) => {
  const { dataset, reports } = await openProperty(test, { users });
  const open = dataset(KEY);
  const source = await open.source();
  const { cursor } = await open.round({ source, mode: 'tail', now: new Date('2026-09-30T12:00:00Z') });
  reports.length = 0;
  const { facts } = await open.round({ source, mode: 'tail', now, cursor, resumes: true });
  const grains = (grain: string) => facts.filter(({ values }) => values['grain'] === grain);
  test.equal(known(facts).size, facts.length);
  test.same([grains('day').length, grains('week').length, grains('month').length], [66, 10, 3]);
  test.equal(grains('day').at(-1)?.values['period_end'], '2026-09-28', 'what was not final then');
});

t.test('a backfill reads twelve months, the newest one first', async (test) => {
  const { dataset } = await openProperty(test, { users });
  const open = dataset(KEY);
  const source = await open.source();
  for (const resumes of [false, true]) {
    const { facts } = await open.round({ source, mode: 'backfill', now, resumes });
    const months = facts
      .filter(({ values }) => values['grain'] === 'month')
      .map(({ values }) => values['period_start']);
    test.same([months.length, months[0], months.at(-1)], [12, '2026-11-01', '2025-12-01']);
    const days = facts.filter(({ values }) => values['grain'] === 'day').map(({ values }) => values['period_start']);
    test.same([days.length, days[0], days.at(-1)], [366, '2026-12-01', '2025-12-01']);
    const weeks = facts.filter(({ values }) => values['grain'] === 'week');
    for (const { values } of weeks) test.equal(new Date(String(values['period_start'])).getUTCDay(), 1, 'a Monday');
    test.equal(known(facts).size, facts.length);
  }
});

t.test('nobody is none, and what is withheld is not', async (test) => {
  const cases = [
    [{}, undefined, [0, 'complete']],
    [{ emptyReason: 'NO_DATA' }, undefined, undefined],
    [{ subjectToThresholding: true }, undefined, undefined],
    [{ subjectToThresholding: true }, ['12', '11'], [12, 'suppressed']],
    [{ samplingMetadatas: [{}] }, ['12', '11'], [12, 'partial']],
    [{ schemaRestrictionResponse: { activeMetricRestrictions: [{}] } }, ['12', '11'], undefined],
  ] as const;
  for (const [metadata, given, expected] of cases) {
    const { dataset } = await openProperty(test, { metadata: () => metadata, users: () => given });
    const open = dataset(KEY);
    const { facts } = await open.round({ source: await open.source(), mode: 'tail', now });
    const day = facts.find(({ key }) => key.startsWith('day:2026-11-27'))?.values;
    test.same(day && [day['total_users'], day['coverage']], expected, JSON.stringify(metadata));
  }
});

t.test('days are those of the zone, also where clocks show a midnight twice', async (test) => {
  const { dataset } = await openProperty(test, { users, timezone: 'America/Havana' });
  const open = dataset(KEY);
  const { covered } = await open.round({
    source: await open.source(),
    mode: 'tail',
    now: new Date('2026-11-07T12:00:00Z'),
  });
  test.ok(
    covered.some(
      ({ start, end }) => start === Date.parse('2026-11-01T04:00:00Z') && end === Date.parse('2026-11-02T05:00:00Z'),
    ),
    'a day of 25 hours',
  );
});

t.test('faults end the round', async (test) => {
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
  const metricHeaders = [{ name: 'totalUsers' }, { name: 'activeUsers' }];
  for (const rows of [[null], [{}], [{ metricValues: [{ value: 'x' }, { value: '1' }] }], [{ metricValues: [] }]]) {
    const { dataset } = await openProperty(test, {
      instead({ url }, res) {
        if (!url.pathname.endsWith(':runReport')) return false;
        json(res, 200, { metricHeaders, rows, rowCount: 1, metadata: {} });
        return true;
      },
    });
    const open = dataset(KEY);
    const round = open.round({ source: await open.source(), mode: 'tail', now });
    await fails(test, round, 'failed', JSON.stringify(rows));
  }
});
