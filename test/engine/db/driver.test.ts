import { sql } from 'slonik';
import t from 'tap';
import { z } from 'zod';
import { evaluate } from '../../../engine/db/call.ts';
import { openDatabase } from '../../../engine/db/database.ts';
import type { Decision } from '../../../engine/db/decision.ts';
import { openPool } from '../../../engine/db/pool.ts';
import { createTestDatabase } from '../../support/database.ts';

const { api, owner, url } = await createTestDatabase(t);

t.test(
  'values are read without losing anything: numbers exactly, times as ISO 8601 in UTC, dates as they are',
  async (t) => {
    const row = await api.one(sql.unsafe`select 0.10::numeric as numeric, 9007199254740991::int8 as int8,
    timestamptz '2026-03-01 12:00:00.5+02' as timestamptz, timestamp '2026-03-01 12:00:00' as timestamp,
    date '2026-03-01' as date, 7::int4 as int4, true as bool, '{"a": [1]}'::jsonb as jsonb, null::int8 as nothing`);
    t.same(row, {
      numeric: '0.10',
      int8: 9_007_199_254_740_991,
      timestamptz: '2026-03-01T10:00:00.500Z',
      timestamp: '2026-03-01 12:00:00',
      date: '2026-03-01',
      int4: 7,
      bool: true,
      jsonb: { a: [1] },
      nothing: null,
    });
  },
);

t.test('the items of arrays are read in the same way', async (t) => {
  const row = await api.one(sql.unsafe`select array[1, null, 3]::int8[] as int8, array[0.10]::numeric[] as numeric,
    array[timestamptz '2026-03-01 12:00:00+00', '2026-03-01 12:00:00.12399+00', '0001-02-03 04:05:06+00'] as timestamptz, array[date '2026-03-01'] as date,
    array[[1, 2], [3, 4]]::int8[] as nested, array['a,b', 'c"d']::text[] as text, '{}'::int8[] as empty`);
  t.same(row, {
    int8: [1, null, 3],
    numeric: ['0.10'],
    timestamptz: ['2026-03-01T12:00:00.000Z', '2026-03-01T12:00:00.123Z', '0001-02-03T04:05:06.000Z'],
    date: ['2026-03-01'],
    nested: [
      [1, 2],
      [3, 4],
    ],
    text: ['a,b', 'c"d'],
    empty: [],
  });
});

t.test('an int8 that JavaScript cannot hold is refused, not rounded', async (t) => {
  await t.rejects(api.one(sql.unsafe`select 9007199254740993::int8`), { name: 'RangeError' });
  t.same(await api.one(sql.unsafe`select 1 as one`), { one: 1 }, 'the connection goes on');
});

t.test('several statements in one are refused', async (t) => {
  await t.rejects(api.query(sql.unsafe`select 1; select 2`), { code: '42601' });
});

t.test('calls are prepared once a connection, where it is asked for; what else is read is planned anew', async (t) => {
  const define = (expression: string) =>
    owner.query(`create or replace function app.probe(p_value integer, p_text text) returns jsonb language sql
      as $$ select to_jsonb(${expression}) $$; grant execute on function app.probe to runner_api`);
  await define('p_value');
  const prepared = sql.type(z.object({ name: z.string() }))`select name from pg_prepared_statements order by name`;
  for (const prepare of [true, false]) {
    const options = { role: 'runner_api', size: 1, prepare } as const;
    const pool = openDatabase({
      open: () => openPool(url, options),
      size: 1,
      maxWaiting: 1,
      responseTimeoutMs: 20_000,
    });
    t.teardown(() => pool.end());
    const probe = (value: number | string, decision?: Decision) =>
      evaluate(pool, sql.fragment`app.probe(${value}, ${null})`, z.int(), decision);
    const decision: Decision = {
      organizationId: undefined,
      actorKind: 'operator',
      actor: 'anna',
      action: 'probe.try',
      subject: 'probe',
      id: undefined,
      arguments: {},
      requestId: '0198c0de-0000-7000-8000-000000000001',
    };
    t.same([await probe(1), await probe(2)], [1, 2]);
    const names = async () => (await pool.any(prepared)).map(({ name }) => name.replace(/^\d+_/, ''));
    t.same(await names(), prepare ? ['probe'] : []);
    await t.rejects(probe('x'), { code: '22P02' });
    t.equal(await probe(3), 3, 'an error leaves the statement as it was');
    // There is no such organization: what is refused was prepared all the same.
    await t.rejects(probe(4, decision));
    t.same(await names(), prepare ? ['probe', 'probe'] : []);
    await define('p_value * 10');
    t.equal(await probe(3), 30, 'what a migration replaces is seen');
    await define('p_value');
  }
});
