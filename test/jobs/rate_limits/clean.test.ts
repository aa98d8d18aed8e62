import t from 'tap';
import { openSql } from '../../support/transitions.ts';
import { openJobs, runJob } from '../support.ts';

const sql = await openSql(t);
await openJobs(t, sql.url);

t.test('budgets go once they are full for an hour, unless the provider asked to be left alone', async (t) => {
  await sql.owner.query(
    `insert into app.rate_limit_buckets (key, full_at, retry_not_before)
     select 'full ' || n, now() - interval '61 minutes', null::timestamptz from generate_series(1, 2100) n
     union all select 'used', now() - interval '59 minutes', null
     union all select 'held', now() - interval '61 minutes', now() + interval '1 hour'`,
  );
  await runJob(sql.owner, 'rate_limits__clean');
  const { rows } = await sql.owner.query('select key from app.rate_limit_buckets order by key');
  t.same(rows, [{ key: 'held' }, { key: 'used' }]);
});
