import { existsSync, readFileSync } from 'node:fs';
import pg from 'pg';
import { pino } from 'pino';
import { sql } from 'slonik';
import t, { type Test } from 'tap';
import { openListener } from '../../../engine/db/listen.ts';
import { migrate } from '../../../engine/db/migrate.ts';
import { openPlainPool } from '../../../engine/db/plain_pool.ts';
import { openPool, roleUrl } from '../../../engine/db/pool.ts';
import { createEmptyDatabase, createTestDatabase } from '../../support/database.ts';
import { until } from '../../support/wait.ts';

const { url, owner } = await createTestDatabase(t);

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

const TCP = '/proc/net/tcp';
const skip = existsSync(TCP) ? false : `needs ${TCP}`;
/** Where Linux says of a socket that the timer which runs next is that of the keep-alive. */
const KEEP_ALIVE_TIMER = 2;
/** Of what was sent, or is held back by the other end: it hides the other one for a moment. */
const PASSING_TIMERS = [1, 4];

/** The timer of our end of the connection from this port, as the system has it, and how many seconds are left of it. */
function timerOf(port: number): { kind: number; seconds: number } | undefined {
  const local = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  for (const line of readFileSync(TCP, 'utf8').split('\n')) {
    const [, from, , state, , timer = ''] = line.trim().split(/\s+/);
    const [kind = '', ticks = ''] = timer.split(':');
    if (from?.endsWith(local) && state === '01') {
      return { kind: Number.parseInt(kind, 16), seconds: Number.parseInt(ticks, 16) / 100 };
    }
  }
  return undefined;
}

/** Fails unless our end asks after at most four seconds of silence: by itself Linux waits for two hours. */
async function keepsAlive(t: Test, { rows }: pg.QueryResult<{ port: number }>, kind: string): Promise<void> {
  t.equal(rows.length, 1, `there is one: ${kind}`);
  const timer = await until('what was sent has arrived', () => {
    const now = timerOf(rows[0]?.port ?? 0);
    return now !== undefined && !PASSING_TIMERS.includes(now.kind) && now;
  });
  t.equal(timer.kind, KEEP_ALIVE_TIMER, kind);
  t.ok(timer.seconds <= 4, `${kind}: ${timer.seconds} s`);
}

function named(url: string, name: string): string {
  const given = new URL(url);
  given.searchParams.set('application_name', name);
  return given.href;
}

t.test('our end gives up connections of each kind whose Postgres is gone', { skip }, async (t) => {
  const portOf = (name: string) =>
    owner.query<{ port: number }>('select client_port as port from pg_stat_activity where application_name = $1', [
      name,
    ]);

  const pool = await openPool(url, { role: 'runner_api', size: 1, applicationName: 'a pool' });
  await pool.query(sql.unsafe`select 1`);
  await keepsAlive(t, await portOf('a pool'), 'a pool');
  await pool.end();

  const plain = openPlainPool({ url: named(url, 'plain'), size: 1, responseTimeoutMs: 5_000, lost: () => {} });
  await plain.query('select 1');
  await keepsAlive(t, await portOf('plain'), 'a pool for libraries');
  await plain.end();

  const listener = openListener({ url: named(url, 'listens'), log: pino({ level: 'silent' }) });
  await until('it listens', () => listener.connected());
  await keepsAlive(t, await portOf('listens'), 'the LISTEN connection');
  await listener.close();
});

t.test('and that of a migration', { skip }, async (t) => {
  const { url, owner } = await createEmptyDatabase(t);
  const holder = await owner.connect();
  await holder.query('select pg_advisory_lock(1)');
  const sqlFolder = t.testdir({
    'roles.sql': '',
    migrations: { '000001_waits.sql': 'select pg_advisory_xact_lock(1);' },
    functions: { 'access.json': JSON.stringify({ defaultOwner: 'migrating_login', owners: {}, execute: {} }) },
  });
  const migrated = migrate(url, { sqlFolder });
  const waiting = await until('it waits', async () => {
    const found = await owner.query<{ port: number }>(
      `select client_port as port from pg_stat_activity
       where datname = current_database() and wait_event_type = 'Lock' and query ~ 'pg_advisory_xact_lock'`,
    );
    return found.rows.length > 0 && found;
  });
  await keepsAlive(t, waiting, 'a migration');
  await holder.query('select pg_advisory_unlock(1)');
  holder.release();
  await migrated;
});
