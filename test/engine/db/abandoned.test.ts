import pg from 'pg';
import t from 'tap';
import { migrate } from '../../../engine/db/migrate.ts';
import { openPlainPool } from '../../../engine/db/plain_pool.ts';
import { roleUrl } from '../../../engine/db/pool.ts';
import { createEmptyDatabase, createTestDatabase } from '../../support/database.ts';

const { url } = await createTestDatabase(t);

/** As Postgres has them of the socket, not as they were asked for. */
const SETTINGS = `current_setting('idle_in_transaction_session_timeout') as idle,
  current_setting('tcp_keepalives_idle') as idle_after, current_setting('tcp_keepalives_interval') as every,
  current_setting('tcp_keepalives_count') as count, current_setting('tcp_user_timeout') as unread`;
const LIMITS = { idle: '10s', idle_after: '4', every: '2', count: '2', unread: '8000' };

t.test('Postgres gives up connections of each role whose process or host is gone', async (t) => {
  for (const role of ['runner_api', 'runner_jobs', 'runner_admin'] as const) {
    const pool = openPlainPool({ url: roleUrl(url, { role }), size: 1, responseTimeoutMs: 5_000, lost: () => {} });
    t.same((await pool.query(`select ${SETTINGS}`)).rows, [LIMITS], role);
    await pool.end();
  }
  const given = new URL(url);
  given.searchParams.set('options', '-c idle_in_transaction_session_timeout=0 -c work_mem=5MB');
  const client = new pg.Client({ connectionString: roleUrl(given.href, { role: 'runner_api' }) });
  await client.connect();
  t.match((await client.query(`select ${SETTINGS}`)).rows, [LIMITS], 'whatever the URL says');
  await client.end();
});

t.test('and a migration', async (t) => {
  const { url, owner } = await createEmptyDatabase(t);
  const sqlFolder = t.testdir({
    'roles.sql': '',
    migrations: { '000001_limits.sql': `create table app.limits as select ${SETTINGS};` },
    functions: { 'access.json': JSON.stringify({ defaultOwner: 'migrating_login', owners: {}, execute: {} }) },
  });
  await migrate(url, { sqlFolder });
  t.same((await owner.query('select * from app.limits')).rows, [LIMITS]);
});
