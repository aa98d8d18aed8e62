import type { Queries } from './call.ts';
import { findPostgresError } from './errors.ts';
import { codeVersion, databaseVersion } from './schema/version.ts';

/** The database has not what this code needs, and no waiting mends it: a person has to migrate it. */
export class NotMigratedError extends Error {
  override name = 'NotMigratedError';
}

// insufficient_privilege, undefined_table, undefined_function, invalid_schema_name, and a role that is not there.
const missing = new Set(['42501', '42P01', '42883', '3F000', '22023']);

/** Whether something that migrations make is not there: none was run, or one is under way. */
export function isMissing(error: unknown): boolean {
  return missing.has(findPostgresError(error)?.code ?? '');
}

/** @throws NotMigratedError that says what to run; what the query throws where the database does not respond */
export async function requireMigrated(queries: Queries): Promise<void> {
  const needed = await codeVersion();
  const version = await databaseVersion(queries).catch((error: unknown) => {
    if (!isMissing(error)) throw error;
    return 0;
  });
  if (version >= needed) return;
  const state = version === 0 ? 'is not migrated' : `is at migration ${version}, and ${needed} is needed`;
  throw new NotMigratedError(`the database ${state}; run: node scripts/migrate.ts`);
}
