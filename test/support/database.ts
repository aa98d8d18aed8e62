import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { type Database, openDatabase } from '../../engine/db/database.ts';
import { openPool, type PoolOptions } from '../../engine/db/pool.ts';
import { databaseUrl, execute, startTestPostgres, TEMPLATE } from './postgres.ts';

/** What a test file hands in; tap's and node:test's contexts both fit. */
export type TearDown = Readonly<{ teardown: (handler: () => Promise<void>) => unknown }>;

export type EmptyDatabase = Readonly<{
  /** As superuser. */
  url: string;
  name: string;
  /** As superuser, who is above row security: to prepare and to inspect. */
  owner: pg.Pool;
}>;

export type TestDatabase = EmptyDatabase &
  Readonly<{
    /** With the rights of the API, as the API opens it. */
    api: Database;
    /** With the rights of the job process. */
    jobs: Database;
  }>;

let ownServer: Promise<string> | undefined;

/** The Postgres of the test run, handed over by scripts/test.ts; a file that runs alone starts its own. */
async function templateUrl(): Promise<string> {
  const given = process.env['TEST_DATABASE_URL'];
  if (given) return given;
  ownServer ??= startTestPostgres().then((server) => {
    // It must not keep the process alive, and goes when nothing else does.
    server.unref();
    process.once('beforeExit', () => void server.stop());
    return server.url;
  });
  return ownServer;
}

/** A database that lives until it is dropped, or with its server. */
export async function makeDatabase(
  template: string | undefined,
): Promise<Readonly<{ url: string; name: string; drop: () => Promise<void> }>> {
  const source = await templateUrl();
  // Nobody may be connected to a template that is being cloned: statements go through the database postgres.
  const server = databaseUrl(source, 'postgres');
  // Files are copied in half the time that it takes by way of the log.
  const name = `test_${process.pid}_${randomBytes(6).toString('hex')}`;
  await execute(server, `create database ${name} template ${template ?? 'template0'} strategy file_copy`);
  const drop = () => execute(server, `drop database if exists ${name} with (force)`);
  return { url: databaseUrl(source, name), name, drop };
}

async function create(t: TearDown, template: string | undefined): Promise<EmptyDatabase> {
  const { url, name, drop } = await makeDatabase(template);
  const owner = new pg.Pool({ connectionString: url, max: 4 });
  // A connection that the server ends at the drop is no failure of the test.
  owner.on('error', () => {});
  t.teardown(async () => {
    await owner.end();
    await drop();
  });
  return { url, name, owner };
}

/** A database without anything in it, dropped at the end of the test. */
export function createEmptyDatabase(t: TearDown): Promise<EmptyDatabase> {
  return create(t, undefined);
}

/** As the processes open it: a refusal leaves the connection, and its plans, as they were. */
export function openAs(url: string, options: PoolOptions): Database {
  return openDatabase({
    open: () => openPool(url, { ...options, prepare: true }),
    size: options.size,
    maxWaiting: 1_000,
    responseTimeoutMs: 120_000,
    waitTimeoutMs: 60_000,
  });
}

/** A migrated database of this test's own (a clone of the template), dropped at its end. */
export async function createTestDatabase(t: TearDown): Promise<TestDatabase> {
  const database = await create(t, TEMPLATE);
  const api = openAs(database.url, { role: 'runner_api', size: 8, applicationName: 'test api' });
  const jobs = openAs(database.url, { role: 'runner_jobs', size: 4, applicationName: 'test jobs' });
  // Handlers run last to first: pools end before the database goes.
  t.teardown(async () => {
    await Promise.all([api.end(), jobs.end()]);
  });
  return { ...database, api, jobs };
}
