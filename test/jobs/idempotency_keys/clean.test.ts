import { randomUUID } from 'node:crypto';
import t from 'tap';
import { openSql } from '../../support/transitions.ts';
import { openJobs, runJob } from '../support.ts';

const sql = await openSql(t);
await openJobs(t, sql.url);

t.test('idempotency keys go after a day, all of them, and no other', async (t) => {
  await sql.owner.query(
    `insert into app.idempotency_keys (organization_id, caller, method, path, key, body_hash, created_at)
     select $1, 'test', 'POST', '/tasks', 'key ' || n, 'hash', now() - case when n <= 2100 then interval '25 hours' else interval '23 hours' end
     from generate_series(1, 2103) n`,
    [randomUUID()],
  );
  await runJob(sql.owner, 'idempotency_keys__clean');
  const { rows } = await sql.owner.query('select key from app.idempotency_keys order by key');
  t.same(rows, [{ key: 'key 2101' }, { key: 'key 2102' }, { key: 'key 2103' }]);
});
