import { sql } from 'slonik';
import t from 'tap';
import { createTestDatabase } from '../../support/database.ts';

const { api } = await createTestDatabase(t);

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
    array[timestamptz '2026-03-01 12:00:00+00'] as timestamptz, array[date '2026-03-01'] as date,
    array[[1, 2], [3, 4]]::int8[] as nested, array['a,b', 'c"d']::text[] as text, '{}'::int8[] as empty`);
  t.same(row, {
    int8: [1, null, 3],
    numeric: ['0.10'],
    timestamptz: ['2026-03-01T12:00:00.000Z'],
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
