import t from 'tap';
import { backfillStart, localDay, utcMonth } from '../../../engine/providers/periods.ts';

const at = (time: string) => Date.parse(time);

t.test('a day goes from midnight to midnight of its zone, also where clocks change then', async (test) => {
  const days = [
    ['UTC', '2026-06-15T23:59:59.999Z', '2026-06-15', '2026-06-15T00:00Z', '2026-06-16T00:00Z'],
    ['Europe/Berlin', '2026-03-29T21:59:00Z', '2026-03-29', '2026-03-28T23:00Z', '2026-03-29T22:00Z'],
    // Midnight comes twice, and counts the first time.
    ['America/Havana', '2026-11-01T04:00:00Z', '2026-11-01', '2026-11-01T04:00Z', '2026-11-02T05:00Z'],
    ['America/Havana', '2026-11-01T05:30:00Z', '2026-11-01', '2026-11-01T04:00Z', '2026-11-02T05:00Z'],
    // Midnight never comes.
    ['America/Santiago', '2026-09-06T04:00:00Z', '2026-09-06', '2026-09-06T04:00Z', '2026-09-07T03:00Z'],
    ['Pacific/Kiritimati', '2026-01-01T10:00:00Z', '2026-01-02', '2026-01-01T10:00Z', '2026-01-02T10:00Z'],
  ] as const;
  for (const [zone, time, day, start, end] of days) {
    test.same(localDay(zone, at(time)), { day, start: at(start), end: at(end) }, `${zone} ${time}`);
  }
});

t.test('the past begins before the first of a month twelve months ago, wherever', async (test) => {
  test.equal(backfillStart(at('2026-06-15T12:00Z')), at('2025-05-31T00:00Z'));
  test.equal(backfillStart(at('2024-03-01T00:00Z')), at('2023-02-28T00:00Z'));
  for (const zone of ['Pacific/Kiritimati', 'Pacific/Niue']) {
    test.ok(backfillStart(at('2026-06-15T12:00Z')) <= localDay(zone, at('2025-06-01T12:00Z')).start, zone);
  }
});

t.test('a month is that of UTC', async (test) => {
  test.same(utcMonth(at('2026-12-31T23:59:59.999Z')), { start: at('2026-12-01T00:00Z'), end: at('2027-01-01T00:00Z') });
  test.same(utcMonth(at('2024-02-01T00:00Z')), { start: at('2024-02-01T00:00Z'), end: at('2024-03-01T00:00Z') });
});
