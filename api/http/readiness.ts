import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { sql } from 'slonik';
import { z } from 'zod';
import { Problem } from '../../engine/db/problem.ts';
import type { Services } from '../services.ts';

const MIGRATIONS = path.resolve(import.meta.dirname, '..', '..', 'sql', 'migrations');

/** The newest migration that this code brings. */
export async function codeVersion(): Promise<number> {
  const names = await readdir(MIGRATIONS);
  return Math.max(0, ...names.map((name) => Number(/^(\d+)_.*\.sql$/.exec(name)?.[1] ?? 0)));
}

function notReady(message: string): Problem {
  return new Problem(503, 'service_unavailable', message, undefined, { 'Retry-After': '2' });
}

/**
 * Whether this process can do its work: the database answers, is migrated to what the code needs (a newer one is fine,
 * since old processes run on while a release rolls out), and notifications arrive.
 * @throws Problem 503 that says what is missing
 */
export async function checkReady(services: Services, needed: number): Promise<{ schemaVersion: number }> {
  const row = await services.db
    .one(sql.type(z.object({ version: z.int() }))`
      select coalesce(max(version), 0)::integer as version from app.schema_migrations`)
    .catch((error: unknown) => {
      services.log.debug({ err: error }, 'not ready');
      throw notReady('The database cannot be reached, or was never migrated.');
    });
  if (row.version < needed) {
    throw notReady(`The database is at migration ${row.version}, and ${needed} is needed: run npm run migrate.`);
  }
  if (!services.listener.connected()) throw notReady('The connection for notifications is not there yet.');
  return { schemaVersion: row.version };
}
