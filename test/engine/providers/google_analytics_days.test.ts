import t from 'tap';
import { addDays, localDays, monthOf, weekOf } from '../../../engine/providers/google-analytics/days.ts';

t.test('a day begins when clocks first show it', (test) => {
  for (const [timezone, day, start, hours] of [
    ['UTC', '2026-11-01', '2026-11-01T00:00:00Z', 24],
    ['Europe/Berlin', '2026-03-29', '2026-03-28T23:00:00Z', 23],
    ['Europe/Berlin', '2026-10-25', '2026-10-24T22:00:00Z', 25],
    // Twice midnight, and none.
    ['America/Havana', '2026-11-01', '2026-11-01T04:00:00Z', 25],
    ['Africa/Cairo', '2026-04-24', '2026-04-23T22:00:00Z', 23],
    ['Australia/Lord_Howe', '2026-04-05', '2026-04-04T13:00:00Z', 24.5],
    ['Pacific/Kiritimati', '2026-01-01', '2025-12-31T10:00:00Z', 24],
    ['America/St_Johns', '2026-01-01', '2026-01-01T03:30:00Z', 24],
  ] as const) {
    const days = localDays(timezone);
    const what = `${timezone}, ${day}`;
    test.equal(days.start(day), Date.parse(start), what);
    test.equal((days.start(addDays(day, 1)) - days.start(day)) / 3_600_000, hours, what);
    test.equal(days.of(days.start(day)), day, what);
    test.equal(days.of(days.start(day) - 1), addDays(day, -1), what);
  }
  test.throws(() => localDays('Nowhere/Else'), RangeError);
  test.end();
});

t.test('weeks begin on Monday, months on their first day', (test) => {
  test.equal(weekOf('2026-11-30'), '2026-11-30');
  test.equal(weekOf('2026-11-29'), '2026-11-23');
  test.equal(weekOf('2027-01-01'), '2026-12-28');
  test.equal(monthOf('2026-11-30'), '2026-11-01');
  test.equal(monthOf('2026-11-30', 3), '2027-02-01', 'also from a day that the other month lacks');
  test.equal(monthOf('2026-01-31', -12), '2025-01-01');
  test.end();
});
