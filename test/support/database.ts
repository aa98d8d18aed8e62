import pg from 'pg';
import { type Database, openDatabase } from '../../engine/db/database.ts';
import { openPool, type PoolOptions } from '../../engine/db/pool.ts';
import { makeDatabase } from './clones.ts';
import { type TearDown, takeDatabase } from './handed_on.ts';
import type { WarmConnections } from './warm_connections.ts';

export type { TearDown } from './handed_on.ts';

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
    /** Those that stay open for the next test. */
    connections?: WarmConnections;
  }>;

/** A database without anything in it, dropped at the end of the test. */
export async function createEmptyDatabase(t: TearDown): Promise<EmptyDatabase> {
  const { url, name, drop } = await makeDatabase(undefined);
  const owner = new pg.Pool({ connectionString: url, max: 4 });
  // A connection that the server ends at the drop is no failure of the test.
  owner.on('error', () => {});
  t.teardown(async () => {
    await owner.end();
    await drop();
  });
  return { url, name, owner };
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

/** A migrated database with nothing in it, which is this test's own until its end. */
export async function createTestDatabase(t: TearDown): Promise<TestDatabase> {
  const { url, name, owner, warm: connections } = await takeDatabase(t);
  const api = openAs(url, { role: 'runner_api', size: 8, applicationName: 'test api', connections });
  const jobs = openAs(url, { role: 'runner_jobs', size: 4, applicationName: 'test jobs', connections });
  // Handlers run last to first: pools end before the database goes.
  t.teardown(async () => {
    await Promise.all([api.end(), jobs.end()]);
  });
  return { url, name, owner, api, jobs, connections };
}
