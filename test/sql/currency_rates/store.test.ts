import t from 'tap';
import { openSession, openSql } from '../../support/transitions.ts';
import { claim, claimed, endLease, makeDue, rates, reset, source, store } from './support.ts';

const sql = await openSql(t);
t.beforeEach(() => reset(sql));

const FRIDAY = { day: '2026-11-27', rates: { USD: '1.1594', JPY: '181.0600' } };
const MONDAY = { day: '2026-11-30', rates: { USD: '1.1612' } };
const STORED = ['2026-11-27 EUR 1', '2026-11-27 JPY 181.0600', '2026-11-27 USD 1.1594'];

t.test('rates keep their digits, and the euro is among them', async (test) => {
  const dueAt = new Date(Date.now() + 3_600_000);
  const stored = await store(sql, await claimed(sql), [FRIDAY], { dueAt });
  test.same(stored, { held: true, added: 3, differing: 0, replaced: [] });
  test.same(await rates(sql), STORED);
  test.match(await source(sql), { newest_day: '2026-11-27', due_at: dueAt, lease_expires_at: null, failure_count: 0 });
  test.match(await claim(sql), { claimed: false, leaseExpiresAt: null });
});

t.test('what is there already changes nothing', async (test) => {
  await store(sql, await claimed(sql), [FRIDAY]);
  await makeDue(sql);
  test.match(await store(sql, await claimed(sql), [FRIDAY, MONDAY]), { added: 2, differing: 0 });
  test.same(await rates(sql), [...STORED, '2026-11-30 EUR 1', '2026-11-30 USD 1.1612']);
  test.match(await source(sql), { newest_day: '2026-11-30' });
});

t.test('the history goes in pieces, and after a crash between them begins again', async (test) => {
  const fence = await claimed(sql);
  test.match(await store(sql, fence, [MONDAY], { dueAt: null }), { held: true, added: 2 });
  test.match(await source(sql), { newest_day: null, history_loaded_at: null, due: true }, 'it is still being read');
  await endLease(sql);
  const next = await claim(sql);
  test.match(next, { claimed: true, newestDay: null, historyLoadedAt: null }, 'whoever comes next reads all of it');
  test.match(await store(sql, Number(next['fence']), [MONDAY], { dueAt: null }), { held: true, added: 0 });
  test.match(await store(sql, Number(next['fence']), [FRIDAY]), { held: true, added: 3 });
  test.match(await source(sql), { newest_day: '2026-11-30', history_loaded_at: Date });
});

t.test('the history replaces what the bank has corrected, and says what it was', async (test) => {
  await store(sql, await claimed(sql), [FRIDAY]);
  await makeDue(sql);
  const corrected = { day: '2026-11-27', rates: { USD: '1.1595', JPY: '181.06' } };
  test.same(await store(sql, await claimed(sql), [corrected]), {
    held: true,
    added: 0,
    differing: 1,
    replaced: [{ currency: 'USD', day: '2026-11-27', was: '1.1594', rate: '1.1595' }],
  });
  test.same(await rates(sql), ['2026-11-27 EUR 1', '2026-11-27 JPY 181.0600', '2026-11-27 USD 1.1595']);
});

t.test('another document that says otherwise replaces nothing, and leaves the lease for the history', async (test) => {
  await store(sql, await claimed(sql), [FRIDAY]);
  const { history_loaded_at: loadedAt } = await source(sql);
  await makeDue(sql);
  const fence = await claimed(sql);
  const other = { day: '2026-11-27', rates: { USD: '1.1595' } };
  const stored = await store(sql, fence, [other, MONDAY], { isHistory: false });
  test.match(stored, { held: true, added: 2, differing: 1, replaced: [] });
  test.ok((await rates(sql)).includes('2026-11-27 USD 1.1594'));
  test.match(await source(sql), { newest_day: '2026-11-27', due: true });
  test.match(await store(sql, fence, [other, MONDAY]), { held: true, differing: 1 });
  test.match(await source(sql), { newest_day: '2026-11-30', due: false });
  test.notSame((await source(sql))['history_loaded_at'], loadedAt);
});

t.test('a day’s document leaves the time of the history as it is', async (test) => {
  await store(sql, await claimed(sql), [FRIDAY]);
  const { history_loaded_at: loadedAt } = await source(sql);
  await makeDue(sql);
  await store(sql, await claimed(sql), [MONDAY], { isHistory: false });
  test.match(await source(sql), { newest_day: '2026-11-30', history_loaded_at: loadedAt });
});

t.test('nothing is stored after the lease is gone, nor twice under one', async (test) => {
  const gone = { held: false, added: 0 };
  const fence = await claimed(sql);
  await endLease(sql);
  test.match(await store(sql, fence, [FRIDAY]), gone, 'its time is over');
  const next = await claimed(sql);
  test.match(await store(sql, fence, [FRIDAY]), gone, 'another one has it');
  test.match(await store(sql, next + 1, [FRIDAY]), gone, 'nobody has had it');
  test.same(await rates(sql), []);
  test.match(await store(sql, next, [FRIDAY]), { held: true });
  test.match(await store(sql, next, [MONDAY]), gone, 'it ended with the last piece');
  test.same(await rates(sql), STORED);
});

t.test('one that was late waits for the newer lease, and then stores nothing', async (test) => {
  const fence = await claimed(sql);
  await endLease(sql);
  const newer = await openSession(test, sql, 'runner_jobs');
  await newer.begin();
  test.match(await claim(sql, newer), { claimed: true });
  const late = await openSession(test, sql, 'runner_jobs');
  const stored = store(sql, fence, [FRIDAY], { connection: late });
  await late.waits();
  await newer.commit();
  test.match(await stored, { held: false });
  test.same(await rates(sql), []);
});

t.test('no row holds what is no rate', async (test) => {
  const insert = (currency: string, rate: string) =>
    sql.owner.query(`insert into app.currency_rates (currency, day, rate) values ($1, '2026-11-27', $2)`, [
      currency,
      rate,
    ]);
  for (const rate of ['0', '-1', 'NaN', 'Infinity', '1000000000000']) {
    await test.rejects(insert('USD', rate), { code: '23514', constraint: 'currency_rates_rate_check' }, rate);
  }
  await test.rejects(insert('usd', '1'), { code: '23514', constraint: 'currency_rates_currency_check' });
  await test.rejects(insert('EUR', '1.1'), { code: '23514', constraint: 'currency_rates_euro_is_one_check' });
  const fence = await claimed(sql);
  const wrong = { day: '2026-11-27', rates: { CHF: '0.93', USD: '0' } };
  await test.rejects(store(sql, fence, [wrong]), { code: '23514', constraint: 'currency_rates_rate_check' });
  test.same(await rates(sql), [], 'and a piece is stored whole or not at all');
});
