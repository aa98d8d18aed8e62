import t from 'tap';
import { nextFire, parseExpression } from '../../../engine/schedules/index.ts';

/** All fires between two points in time, as `MM-DDTHH:mm` in UTC. */
function fires(cron: string, timezone: string, from: string, to: string): string[] {
  const found: string[] = [];
  const end = new Date(to);
  for (let at = nextFire(cron, timezone, new Date(from)); at && at < end; at = nextFire(cron, timezone, at)) {
    found.push(at.toISOString().slice(5, 16));
  }
  return found;
}

t.test('a fixed time that is left out fires at the next minute that is there', async (t) => {
  t.same(fires('30 2 * * *', 'Europe/Berlin', '2026-03-28T00:00Z', '2026-03-31T00:00Z'), [
    '03-28T01:30',
    '03-29T01:00',
    '03-30T00:30',
  ]);
  t.same(fires('30 2 * * *', 'America/New_York', '2026-03-07T00:00Z', '2026-03-10T00:00Z'), [
    '03-07T07:30',
    '03-08T07:00',
    '03-09T06:30',
  ]);
  t.same(fires('15 2 * * *', 'Australia/Lord_Howe', '2026-10-02T00:00Z', '2026-10-05T00:00Z'), [
    '10-02T15:45',
    '10-03T15:30',
    '10-04T15:15',
  ]);
  t.same(
    fires('*/15 2,3 * * *', 'Europe/Berlin', '2026-03-29T00:00Z', '2026-03-29T12:00Z'),
    ['03-29T01:00', '03-29T01:15', '03-29T01:30', '03-29T01:45'],
    'several that are left out fire once together, and with one that is there',
  );
});

t.test('a fixed time that comes twice fires once, the first time', async (t) => {
  t.same(fires('30 2 * * *', 'Europe/Berlin', '2026-10-24T00:00Z', '2026-10-27T00:00Z'), [
    '10-24T00:30',
    '10-25T00:30',
    '10-26T01:30',
  ]);
  t.same(fires('30 1 * * *', 'America/New_York', '2026-10-31T00:00Z', '2026-11-03T00:00Z'), [
    '10-31T05:30',
    '11-01T05:30',
    '11-02T06:30',
  ]);
  t.same(fires('45 1 * * *', 'Australia/Lord_Howe', '2026-04-03T00:00Z', '2026-04-06T00:00Z'), [
    '04-03T14:45',
    '04-04T14:45',
    '04-05T15:15',
  ]);
  t.same(fires('0,30 1-3 * * *', 'Europe/Berlin', '2026-10-24T22:00Z', '2026-10-25T12:00Z'), [
    '10-24T23:00',
    '10-24T23:30',
    '10-25T00:00',
    '10-25T00:30',
    '10-25T02:00',
    '10-25T02:30',
  ]);
});

t.test('a rhythm goes by real time', async (t) => {
  t.same(fires('*/30 * * * *', 'Europe/Berlin', '2026-10-24T23:59Z', '2026-10-25T02:01Z'), [
    '10-25T00:00',
    '10-25T00:30',
    '10-25T01:00',
    '10-25T01:30',
    '10-25T02:00',
  ]);
  t.same(fires('0 * * * *', 'America/New_York', '2026-03-08T05:30Z', '2026-03-08T08:30Z'), [
    '03-08T06:00',
    '03-08T07:00',
    '03-08T08:00',
  ]);
  t.same(
    fires('0 */2 * * *', 'Europe/Berlin', '2026-03-28T22:30Z', '2026-03-29T05:00Z'),
    ['03-28T23:00', '03-29T02:00', '03-29T04:00'],
    'two o’clock is not there',
  );
  t.same(
    fires('30 * * * *', 'Australia/Lord_Howe', '2026-04-04T14:00Z', '2026-04-04T16:30Z'),
    ['04-04T14:30', '04-04T15:00', '04-04T16:00'],
    'half past one comes twice',
  );
  t.same(fires('0 * * * *', 'Australia/Lord_Howe', '2026-10-03T14:00Z', '2026-10-03T17:30Z'), [
    '10-03T14:30',
    '10-03T16:00',
    '10-03T17:00',
  ]);
  t.same(
    fires('30 */2 * * *', 'Australia/Lord_Howe', '2026-10-03T13:00Z', '2026-10-03T18:00Z'),
    ['10-03T14:00', '10-03T15:30', '10-03T17:30'],
    'the minute of the change itself counts',
  );
});

const ZONES: readonly (readonly [string, readonly string[]])[] = [
  ['Europe/Berlin', ['2026-03-29', '2026-10-25']],
  ['America/New_York', ['2026-03-08', '2026-11-01']],
  ['Australia/Lord_Howe', ['2026-04-05', '2026-10-04']],
  ['Asia/Kathmandu', ['2026-03-29']],
  ['Europe/Lisbon', ['2026-03-29', '2026-10-25']],
  // At midnight, by two hours, and over a whole day that there never was.
  ['America/Havana', ['2026-03-08', '2026-11-01']],
  ['Antarctica/Troll', ['2026-03-29', '2026-10-25']],
  ['Pacific/Apia', ['2011-12-30']],
];
const EXPRESSIONS = [
  ...[
    '30 2 * * *',
    '0 2 * * *',
    '15 2 * * *',
    '*/15 2 * * *',
    '0,30 1-3 * * *',
    '45 1 * * *',
    '0 2 * * 0',
    '* 2 * * *',
  ],
  ...['*/30 * * * *', '0 * * * *', '0 */2 * * *', '30 */2 * * *', '5 1-3/2 * * *', '*/7 * * * *', '0 0 * * *'],
];
const MINUTE_MS = 60_000;

/** All clock times that the expression names between two. */
function named(cron: string, from: number, to: number): Set<number> {
  const { next } = parseExpression(cron);
  const found = new Set<number>();
  for (let clock = next(from); clock !== undefined && clock < to; clock = next(clock)) found.add(clock);
  return found;
}

/** Walks through every minute with a clock in hand: the rules as they are said. */
function walked(cron: string, timezone: string, from: number, to: number): string[] {
  const { rhythmic } = parseExpression(cron);
  const names = named(cron, from - 24 * 60 * MINUTE_MS, to + 24 * 60 * MINUTE_MS);
  const format = new Intl.DateTimeFormat('sv-SE', { timeZone: timezone, dateStyle: 'short', timeStyle: 'short' });
  const wall = (time: number) => Date.parse(`${format.format(time).replace(' ', 'T')}Z`);
  const fired: string[] = [];
  let latest = wall(from - 180 * MINUTE_MS);
  for (let time = from - 179 * MINUTE_MS; time < to; time += MINUTE_MS) {
    const clock = wall(time);
    let fire = rhythmic && names.has(clock);
    for (let passed = latest + MINUTE_MS; !rhythmic && passed <= clock; passed += MINUTE_MS) fire ||= names.has(passed);
    latest = Math.max(latest, clock);
    if (fire && time > from) fired.push(new Date(time).toISOString().slice(5, 16));
  }
  return fired;
}

t.test('over every change it fires as one who walks through the minutes would', async (t) => {
  for (const [zone, days] of ZONES) {
    for (const day of days) {
      const from = Date.parse(`${day}T00:00Z`) - 12 * 60 * MINUTE_MS;
      const to = Date.parse(`${day}T00:00Z`) + 24 * 60 * MINUTE_MS;
      for (const cron of EXPRESSIONS) {
        const found = fires(cron, zone, new Date(from).toISOString(), new Date(to).toISOString());
        t.same(found, walked(cron, zone, from, to), `${cron} in ${zone} around ${day}`);
      }
    }
  }
});

t.test('far away and never', async (t) => {
  const after = new Date('2026-03-01T00:00Z');
  t.equal(nextFire('0 0 29 2 *', 'UTC', after)?.toISOString(), '2028-02-29T00:00:00.000Z');
  t.equal(nextFire('0 * 1 1 *', 'Europe/Berlin', after)?.toISOString(), '2026-12-31T23:00:00.000Z');
  t.equal(nextFire('0 0 30 2 *', 'UTC', after), undefined);
  t.equal(
    nextFire('0 9 13 * FRI', 'UTC', after)?.toISOString(),
    '2026-03-06T09:00:00.000Z',
    'one of the two is enough',
  );
  t.equal(
    nextFire('0 9 * * *', 'UTC', new Date('2026-03-01T09:00:00.000Z'))?.toISOString(),
    '2026-03-02T09:00:00.000Z',
    'strictly after',
  );
  t.equal(
    nextFire('* * * * *', 'UTC', new Date('2026-03-01T09:00:59.999Z'))?.toISOString(),
    '2026-03-01T09:01:00.000Z',
  );
});

t.test('what is no expression of five fields', async (t) => {
  const wrong = ['', '* * * *', '* * * * * *', '@daily', '60 * * * *', '* 24 * * *', '* * 0 * *', '* * * 13 *'];
  const foreign = ['0 0 L * *', '0 0 * * MON#2', '0 0 15W * *', '? * * * *', '2026-01-01T00:00:00', 'mon * * * *'];
  const odd = ['*/0 * * * *', '5-1 * * * *', '/5 * * * *', '* * * mon *', '* * * * jan', '1,,2 * * * *', '* * * * 8'];
  for (const cron of [...wrong, ...foreign, ...odd]) t.throws(() => parseExpression(cron), cron);
  for (const cron of ['0 9 * JAN-MAR mon,WED', '5,10-20/5 */2 1,15 * 0-7', '  0   9 * * 7 ']) {
    t.doesNotThrow(() => parseExpression(cron), cron);
  }
});

t.test('a refusal says what was sent, not how a library counts it', async (t) => {
  for (const [cron, message] of [
    ['0 9 1 13 *', 'month: 13 is not between 1 and 12'],
    ['0 9 1 0 *', 'month: 0 is not between 1 and 12'],
    ['0 9 1 1-14 *', 'month: 14 is not between 1 and 12'],
    ['0 9 32 * *', 'day of month: 32 is not between 1 and 31'],
    ['0 9 0 * *', 'day of month: 0 is not between 1 and 31'],
    ['0 24 * * *', 'hour: 24 is not between 0 and 23'],
    ['61 * * * *', 'minute: 61 is not between 0 and 59'],
    ['0 0 * * 8', 'day of week: 8 is not between 0 and 7'],
    ['0 0 * * fri-mon', 'day of week: fri-mon ends before it begins'],
    ['0 0 * dec-feb *', 'month: dec-feb ends before it begins'],
    ['0 0 * mon *', 'month: mon is no number and none of jan, feb, mar, apr, may, jun, jul, aug, sep, oct, nov, dec'],
    ['0 0 * * mon/2', 'day of week: in mon/2, * or a range has to stand before the step'],
    ['0 */0 * * *', 'hour: the step of */0 is not between 1 and 24'],
    ['0 0 * */13 *', 'month: the step of */13 is not between 1 and 12'],
  ] as const) {
    t.throws(() => parseExpression(cron), { message }, cron);
  }
  // All that is let through is taken by the library as well, and the other way around.
  for (const cron of ['0 0 * * sat-sun', '0 0 * * SUN-6/7', '0 0 1-5/31 * *', '007 3-3/1 * 1-12/12 5-7']) {
    t.doesNotThrow(() => parseExpression(cron), cron);
  }
});
