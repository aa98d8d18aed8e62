import { execFile } from 'node:child_process';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import t, { type Test } from 'tap';
import { environmentWith } from '../../../../engine/config.ts';
import { migrate } from '../../../../engine/db/migrate.ts';
import { roleUrl } from '../../../../engine/db/pool.ts';
import { createLogger } from '../../../../engine/log.ts';
import { binariesIn } from '../../../../engine/postgres/binaries.ts';
import { type PostgresOptions, startPostgres, throwAway } from '../../../../engine/postgres/embedded.ts';
import { crontab } from '../../../../jobs/crontab.ts';
import { type Jobs, startJobs } from '../../../../jobs/runner/process.ts';
import { collectLog, dispatching, jobsConfig, type Logged, queued, spawnJobs } from '../../../jobs/support.ts';
import { createEmptyDatabase, type TearDown } from '../../../support/database.ts';
import { createTask, createTestOrganization, taskRow } from '../../../support/fixtures.ts';
import { openFolder } from '../../../support/folders.ts';
import { until } from '../../../support/wait.ts';

/** A server of the test's own, which it may stop and start again at the same place. */
async function openServer(t: TearDown) {
  const bin = process.env['TEST_POSTGRES_BIN'];
  const options: PostgresOptions = {
    cluster: path.join(await openFolder(t), 'postgres'),
    password: 'test',
    // What was committed survives the crash.
    settings: { ...throwAway, synchronous_commit: 'on' },
    ...(bin ? { binaries: await binariesIn(bin) } : {}),
  };
  let server = await startPostgres(options);
  const { url, port } = server;
  t.teardown(() => server.stop());
  return {
    url,
    stop: () => server.stop(),
    async crash() {
      process.kill(server.pid, 'SIGKILL');
      await server.ended;
    },
    async start() {
      server = await startPostgres({ ...options, port });
    },
  };
}

function openPool(t: TearDown, url: string): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, max: 2 });
  pool.on('error', () => {});
  t.teardown(() => pool.end());
  return pool;
}

/** The inodes of the sockets at which a process of this machine waits for connections, as Linux tells them. */
function listening(pid: number): string[] {
  const rows = ['tcp', 'tcp6'].flatMap((kind) => readFileSync(`/proc/${pid}/net/${kind}`, 'utf8').trim().split('\n'));
  const waiting = rows.map((row) => row.trim().split(/\s+/)).flatMap((row) => (row[3] === '0A' ? [row[9] ?? ''] : []));
  const files = readdirSync(`/proc/${pid}/fd`).map((name) => readlinkSync(`/proc/${pid}/fd/${name}`));
  return waiting.filter((inode) => files.includes(`socket:[${inode}]`));
}

const main = path.resolve(import.meta.dirname, '../../../..', 'jobs', 'main.ts');

/** Jobs as a process of their own, until it ends by itself. */
function run(settings: Parameters<typeof environmentWith>[0]) {
  return promisify(execFile)(process.execPath, [main], { env: environmentWith(settings) });
}

async function openJobsLater(t: Test, url: string): Promise<Jobs & { logged: Logged[] }> {
  const { logged, write } = collectLog();
  const jobs = startJobs(await jobsConfig(t, url), createLogger('debug', 'jobs', { destination: { write } }));
  t.teardown(() => jobs.stop());
  // What no waiting mends ends the test.
  return { ...jobs, ready: Promise.race([jobs.ready, jobs.failed]), logged };
}

t.test('a process outlives its database, keeps its jobs and goes on within seconds', async (t) => {
  const server = await openServer(t);
  // The roles are not there either.
  await t.rejects(run({ DATABASE_URL: server.url }), { code: 78, stderr: /^the database is not migrated; run: / });
  await migrate(server.url);
  const [owner, api] = [openPool(t, server.url), openPool(t, roleUrl(server.url, { role: 'runner_api' }))];
  const sql = { url: server.url, owner, api, jobs: api, admin: api };
  const { child, ended, output } = await spawnJobs(t, server.url);
  const pool = await dispatching(owner);
  if (process.platform === 'linux') t.same(listening(child.pid ?? 0), [], 'it listens nowhere without JOBS_PORT');
  const org = await createTestOrganization(sql);
  const task = await createTask(sql, org, { scheduledAt: new Date(Date.now() + 3_600_000).toISOString() });

  await server.stop();
  await until('it has noticed', () => output().includes('dispatch cannot read what is due'));
  await server.start();
  await owner.query('update app.tasks set scheduled_at = clock_timestamp() where id = $1', [task.id]);
  const from = Date.now();
  await until('due work is moved', async () => (await taskRow(sql, org, task.id)).status === 'pending');
  t.comment(`${Date.now() - from} ms after the restart`);
  t.ok(Date.now() - from < 8_000);
  // The run of before or, past a full minute, the one that takes over from it.
  await until('it is the same process that moves', async () =>
    (await queued(owner, 'dispatch')).some((job) => job.locked_by === pool),
  );

  await server.crash();
  const late = await openJobsLater(t, server.url);
  await until('the new one waits', () =>
    late.logged.some(({ msg }) => msg === 'jobs cannot be taken yet: the database is away'),
  );
  await server.start();
  await late.ready;
  await until('the new one has jobs', () => late.logged.some(({ msg }) => msg === 'jobs are taken'));
  t.equal(child.exitCode, null, 'the old one is still there');
  child.disconnect();
  t.equal(await ended, 0, 'and ends with its parent');
});

t.test('a database that is not migrated ends the process, which says what to run', async (t) => {
  const { url, owner } = await createEmptyDatabase(t);
  const unmigrated = { code: 78, stderr: 'the database is not migrated; run: node scripts/migrate.ts\n' };
  await t.rejects(run({ DATABASE_URL: url }), unmigrated);
  await migrate(url);
  const { ready } = await openJobsLater(t, url);
  await ready;
  const known = await until('the clock has its jobs', async () => {
    const { rows } = await owner.query('select identifier from graphile_worker._private_known_crontabs');
    return rows.length > 0 && rows.map((row) => row.identifier);
  });
  t.same(known.sort(), crontab.map(({ task }) => task).sort());
  await owner.query(
    'delete from app.schema_migrations where version = (select max(version) from app.schema_migrations)',
  );
  const behind = /^the database is at migration \d+, and \d+ is needed; run: node scripts\/migrate.ts\n$/;
  await t.rejects(run({ DATABASE_URL: url }), { code: 78, stderr: behind });
});

t.test('wrong settings are told in one line', async (t) => {
  await t.rejects(run({ DATABASE_URL: undefined }), { code: 78, stderr: /^DATABASE_URL: required [^\n]*\n$/ });
  await t.rejects(run({ LOG_LEVEL: 'loud' }), { code: 78, stderr: /^LOG_LEVEL: [^\n]*\n$/ });
});
