import { Problem } from '../../engine/db/problem.ts';
import { databaseVersion } from '../../engine/db/schema/version.ts';
import type { Services } from '../services.ts';

function notReady(message: string): Problem {
  return new Problem(503, 'service_unavailable', message, undefined, { 'Retry-After': '2' });
}

/**
 * Whether this process can do its work: the database answers, is migrated to what the code needs (a newer one is fine,
 * since old processes run on while a release rolls out), and notifications arrive.
 * @throws Problem 503 that says what is missing
 */
export async function checkReady(services: Services, needed: number): Promise<{ schemaVersion: number }> {
  const version = await databaseVersion(services.db).catch((error: unknown) => {
    services.log.debug({ err: error }, 'not ready');
    throw notReady('The database cannot be reached, or was never migrated.');
  });
  if (version < needed) {
    throw notReady(`The database is at migration ${version}, and ${needed} is needed: run npm run migrate.`);
  }
  if (!services.listener.connected()) throw notReady('The connection for notifications is not there yet.');
  return { schemaVersion: version };
}
