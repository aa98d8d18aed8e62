import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { sql } from 'slonik';
import { z } from 'zod';
import type { Queries } from '../call.ts';

const MIGRATIONS = path.resolve(import.meta.dirname, '..', '..', '..', 'sql', 'migrations');

/** The newest migration that this code brings. */
export async function codeVersion(): Promise<number> {
  const names = await readdir(MIGRATIONS);
  return Math.max(0, ...names.map((name) => Number(/^(\d+)_.*\.sql$/.exec(name)?.[1] ?? 0)));
}

/** The newest migration of the database. A newer one than the code's is fine: old processes run on during a release. */
export async function databaseVersion(queries: Queries): Promise<number> {
  const row = await queries.one(sql.type(z.object({ version: z.int() }))`
    select coalesce(max(version), 0)::integer as version from app.schema_migrations`);
  return row.version;
}
