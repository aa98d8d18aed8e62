import t from 'tap';
import { bankDay, dayAfter, documentFor, nextLook } from '../../../engine/currency_rates/index.ts';

const at = (text: string) => new Date(text);

t.test('the bank’s day is that of clocks in Frankfurt', async (test) => {
  test.equal(bankDay(at('2026-11-30T22:59:59Z')), '2026-11-30');
  test.equal(bankDay(at('2026-11-30T23:00:00Z')), '2026-12-01');
  test.equal(bankDay(at('2026-06-30T22:00:00Z')), '2026-07-01', 'an hour earlier in summer');
  test.equal(dayAfter('2028-02-28', 1), '2028-02-29');
  test.equal(dayAfter('2026-03-29', 1), '2026-03-30', 'also over a change of the clocks');
});

t.test('the smallest document that closes the gap is read', async (test) => {
  const monday = at('2026-11-30T15:15:00Z');
  const after = (newestDay: string | null, historyLoadedAt: string | null = '2026-11-20T12:00:00Z') =>
    documentFor({ newestDay, historyLoadedAt: historyLoadedAt === null ? null : at(historyLoadedAt) }, monday);
  test.equal(after(null), 'history', 'nothing is known');
  test.equal(after('2026-11-27', null), 'history', 'it was never read to its end');
  test.equal(after('2026-11-30'), 'daily');
  test.equal(after('2026-11-27'), 'daily', 'a weekend is no gap');
  test.equal(after('2026-11-28'), 'daily');
  test.equal(after('2026-11-26'), 'recent', 'Friday may be missing');
  test.equal(after('2026-09-01'), 'recent', 'ninety days');
  test.equal(after('2026-08-31'), 'history', 'and a day more');
  test.equal(after('2026-11-27', '2026-10-31T15:15:00Z'), 'history', 'what was corrected is found within 30 days');
  test.equal(after('2026-11-27', '2026-10-31T15:15:01Z'), 'daily');
});

t.test('a day is looked for half-hourly from 16:15 to 20:00 in Frankfurt, and then given up', async (test) => {
  const friday = '2026-11-27';
  const looks: string[] = [];
  let now = at('2026-11-30T09:00:00Z');
  for (let look = 0; look < 9; look++) {
    now = nextLook(friday, now);
    looks.push(now.toISOString());
  }
  test.same(looks, [
    '2026-11-30T15:15:00.000Z',
    '2026-11-30T15:45:00.000Z',
    '2026-11-30T16:15:00.000Z',
    '2026-11-30T16:45:00.000Z',
    '2026-11-30T17:15:00.000Z',
    '2026-11-30T17:45:00.000Z',
    '2026-11-30T18:15:00.000Z',
    '2026-11-30T18:45:00.000Z',
    '2026-12-01T15:15:00.000Z',
  ]);
});

t.test('once a day’s rates are there, the next working day’s are looked for', async (test) => {
  const next = (newestDay: string, now: string) => nextLook(newestDay, at(now)).toISOString();
  test.equal(next('2026-11-30', '2026-11-30T15:16:00Z'), '2026-12-01T15:15:00.000Z');
  test.equal(next('2026-11-27', '2026-11-27T15:16:00Z'), '2026-11-30T15:15:00.000Z', 'over a weekend');
  test.equal(next('2026-11-27', '2026-11-28T10:00:00Z'), '2026-11-30T15:15:00.000Z', 'in it');
  test.equal(next('2026-11-30', '2026-11-30T09:00:00Z'), '2026-12-01T15:15:00.000Z', 'however early they come');
  test.equal(next('2026-11-30', '2026-11-30T22:59:00Z'), '2026-12-01T15:15:00.000Z', 'or late');
});

t.test('16:15 is 16:15, before and after the clocks change', async (test) => {
  const next = (newestDay: string, now: string) => nextLook(newestDay, at(now)).toISOString();
  test.equal(next('2026-03-27', '2026-03-27T15:16:00Z'), '2026-03-30T14:15:00.000Z', 'to summer on 29 March');
  test.equal(next('2026-10-23', '2026-10-23T14:16:00Z'), '2026-10-26T15:15:00.000Z', 'to winter on 25 October');
});
