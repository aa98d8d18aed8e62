import t from 'tap';
import { functionQuery } from '../../../engine/db/function_text.ts';
import { openSql } from '../../support/transitions.ts';
import { claimed, store } from './support.ts';

const sql = await openSql(t);
await store(sql, await claimed(sql), [
  { day: '2026-11-30', rates: { USD: '1.1612' } },
  { day: '2026-11-27', rates: { USD: '1.1594', JPY: '181.06' } },
  { day: '2026-11-20', rates: { USD: '1.1500', JPY: '180.10', BGN: '1.9558' } },
]);

async function read(currency: string, day: string, base?: string): Promise<unknown> {
  const args = { currency, day, ...(base === undefined ? {} : { base }) };
  const { text, values } = functionQuery('currency_rate_read', args);
  const { rows } = await sql.api.query(text, values);
  return rows[0].result;
}

t.test('the newest rate up to the day counts, with its day', async (test) => {
  test.same(await read('USD', '2026-11-30'), { day: '2026-11-30', rate: '1.1612', baseRate: '1' });
  test.same(await read('USD', '2026-11-29'), { day: '2026-11-27', rate: '1.1594', baseRate: '1' }, 'a Sunday');
  test.same(await read('USD', '2026-11-26'), { day: '2026-11-20', rate: '1.1500', baseRate: '1' });
});

t.test('a rate is at most seven days old', async (test) => {
  test.match(await read('BGN', '2026-11-27'), { day: '2026-11-20' });
  test.equal(await read('BGN', '2026-11-28'), null, 'a currency that drops out is a gap, and never zero');
  test.equal(await read('USD', '2026-11-19'), null, 'later rates are not looked at');
  test.equal(await read('XXX', '2026-11-30'), null);
});

t.test('two currencies have their rates of one day', async (test) => {
  test.same(await read('USD', '2026-11-30', 'JPY'), { day: '2026-11-27', rate: '1.1594', baseRate: '181.06' });
  test.same(await read('JPY', '2026-11-30', 'USD'), { day: '2026-11-27', rate: '181.06', baseRate: '1.1594' });
  test.same(await read('EUR', '2026-11-29', 'USD'), { day: '2026-11-27', rate: '1', baseRate: '1.1594' });
  test.same(await read('EUR', '2026-11-29'), { day: '2026-11-27', rate: '1', baseRate: '1' });
  test.equal(await read('BGN', '2026-11-30', 'USD'), null);
});

t.test('the key finds it, however long the history is', async (test) => {
  const client = await sql.owner.connect();
  try {
    await client.query('begin');
    await client.query(`insert into app.currency_rates (currency, day, rate)
      select c, d::date, 1 from unnest(array['EUR', 'USD', 'JPY', 'GBP', 'CHF']) c,
        generate_series('2010-01-01'::date, '2025-12-31', '1 day') d`);
    await client.query('analyze app.currency_rates');
    const { text, values } = functionQuery('currency_rate_read', { currency: 'USD', day: '2020-06-15', base: 'JPY' });
    const { rows } = await client.query(text, values);
    test.match(rows[0].result, { day: '2020-06-15' });
    const plan = await client.query(`explain (costs off) select c.day from app.currency_rates c
      join app.currency_rates b on b.currency = 'JPY' and b.day = c.day
      where c.currency = 'USD' and c.day between '2020-06-08' and '2020-06-15' order by c.day desc limit 1`);
    test.notMatch(JSON.stringify(plan.rows), /Seq Scan/);
  } finally {
    await client.query('rollback');
    client.release();
  }
});
