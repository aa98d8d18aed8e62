import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import pg from 'pg';
import { type Config, forgetLibpq } from '../engine/config.ts';
import { connectionProblem } from '../engine/libpq.ts';
import { clusterElsewhere } from '../engine/postgres/elsewhere.ts';
import { DATABASE_NAME } from './start/database.ts';
import { keptSuperuserPassword } from './start/secrets.ts';

/** No database to work on: DATABASE_URL is not set and no start runs, or the database does not respond. */
export class NoDatabaseError extends Error {
  override name = 'NoDatabaseError';
}

/** The folder of the embedded database, which may lie outside of the data folder where root starts it. */
export function embeddedCluster(dataDir: string): string {
  return clusterElsewhere(dataDir) ?? path.join(dataDir, 'postgres');
}

/**
 * The database that a command of an operator works on: that of DATABASE_URL (the direct connection, where there is one), else the
 * embedded one of a start that runs now.
 * @throws NoDatabaseError when there is neither
 */
export function operatorDatabaseUrl({ dataDir, listenDatabaseUrl }: Config): string {
  if (listenDatabaseUrl !== undefined) return listenDatabaseUrl;
  const pidFile = path.join(embeddedCluster(dataDir), 'postmaster.pid');
  // The port is the fourth line of Postgres's own file.
  const port = existsSync(pidFile) ? Number(readFileSync(pidFile, 'utf8').split('\n')[3]) : 0;
  if (!port)
    throw new NoDatabaseError(`no Business Runner runs on ${dataDir}: run npm start first, or set DATABASE_URL`);
  // A new password would not be that of the running database, and would keep the next start from resetting it.
  const password = keptSuperuserPassword(dataDir);
  if (password === undefined)
    throw new NoDatabaseError(
      `the password of the database on ${dataDir} is lost: run npm start anew, or set DATABASE_URL`,
    );
  forgetLibpq();
  return `postgres://postgres:${password}@127.0.0.1:${port}/${DATABASE_NAME}`;
}

/**
 * A connection for a command.
 * @throws NoDatabaseError when the database does not respond
 */
export async function operatorClient(url: string, options: pg.ClientConfig = {}): Promise<pg.Client> {
  const client = new pg.Client({ ...options, connectionString: url });
  // A connection that breaks fails the query at hand; without a listener it would end the process.
  client.on('error', () => {});
  await client.connect().catch((error: unknown) => {
    throw new NoDatabaseError(`the database does not respond: ${connectionProblem(error)}`);
  });
  return client;
}
