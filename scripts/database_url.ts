import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type { Config } from '../engine/config.ts';
import { DATABASE_NAME } from './start/database.ts';
import { databasePasswords } from './start/secrets.ts';

/** No DATABASE_URL is set, and no start runs whose database could be meant. */
export class NoDatabaseError extends Error {
  override name = 'NoDatabaseError';
}

/**
 * The database that a command of an operator works on: that of DATABASE_URL (the direct connection, where there is one), else the
 * embedded one of a start that runs now.
 * @throws NoDatabaseError when there is neither
 */
export function operatorDatabaseUrl({ dataDir, listenDatabaseUrl }: Config): string {
  if (listenDatabaseUrl !== undefined) return listenDatabaseUrl;
  const elsewhere = path.join(dataDir, 'postgres.location');
  const cluster = existsSync(elsewhere) ? readFileSync(elsewhere, 'utf8').trim() : path.join(dataDir, 'postgres');
  const pidFile = path.join(cluster, 'postmaster.pid');
  // The port is the fourth line of Postgres's own file.
  const port = existsSync(pidFile) ? Number(readFileSync(pidFile, 'utf8').split('\n')[3]) : 0;
  if (!port)
    throw new NoDatabaseError(`no Business Runner runs on ${dataDir}: run npm start first, or set DATABASE_URL`);
  const { passwords } = databasePasswords(dataDir);
  return `postgres://postgres:${passwords.superuser}@127.0.0.1:${port}/${DATABASE_NAME}`;
}
