import { Problem } from '../../engine/db/problem.ts';
import { databaseVersion } from '../../engine/db/schema/version.ts';
import { createThrottle, logThrottled } from '../../engine/log.ts';
import { StorageFullError } from '../../engine/storage/index.ts';
import type { Services } from '../services.ts';

export type Readiness = Readonly<{ schemaVersion: number; storage: 'reachable' | 'full' | 'unreachable' }>;

function notReady(message: string): Problem {
  return new Problem(503, 'service_unavailable', message, undefined, { 'Retry-After': '2' });
}

/**
 * Whether this process can do its work: the database responds, is migrated to what the code needs (`needed`; a newer one
 * is fine, since old processes run on while a release rolls out), notifications arrive, and the storage has responded
 * once. So a wrong setting ends a release before it is live; a later outage of the storage is reported and takes no process
 * away, because it would take all of them, and what needs no files goes on: heartbeats above all.
 * The check throws Problem 503 that says what is missing.
 */
export function createReadiness(): (services: Services, needed: number) => Promise<Readiness> {
  const throttle = createThrottle();
  let stored = false;
  return async ({ db, listener, storage, log }, needed) => {
    const version = await databaseVersion(db).catch((error: unknown) => {
      log.debug({ err: error }, 'not ready');
      throw notReady('The database cannot be reached, or was never migrated.');
    });
    if (version < needed) {
      throw notReady(`The database is at migration ${version}, and ${needed} is needed: run npm run migrate.`);
    }
    if (!listener.connected()) throw notReady('The connection for notifications is not there yet.');
    const state = await storage.check().then(
      () => 'reachable' as const,
      (error: unknown) => {
        logThrottled(log, throttle, 'files cannot be stored', error);
        return error instanceof StorageFullError ? 'full' : 'unreachable';
      },
    );
    stored ||= state !== 'unreachable';
    if (!stored) throw notReady('The storage of files cannot be reached: the log says why.');
    return { schemaVersion: version, storage: state };
  };
}
