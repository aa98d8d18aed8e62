import { accessSync, constants } from 'node:fs';
import path from 'node:path';
import { ConfigError } from '../../engine/config.ts';
import { makeDataFolder } from '../../engine/postgres/place.ts';
import { acquireLock, LockedError } from '../../engine/process/lock.ts';

/** Names the start that runs, and is as old as it. */
export const LOCK_FILE = 'start.lock';

/** Another start holds the data folder. */
export class RunningError extends Error {
  override name = 'RunningError';
}

/** What an error means when all that was asked for is a file in the data folder. */
export function unusable(dataDir: string, error: unknown): ConfigError {
  return new ConfigError(`DATA_DIR: ${dataDir} cannot be used: ${(error as Error).message}`);
}

/**
 * Makes the data folder and locks it for this process. Returns the release.
 * @throws RunningError when another process holds it, ConfigError when it cannot be used.
 */
export async function lockDataFolder(dataDir: string): Promise<() => void> {
  try {
    await makeDataFolder(dataDir);
    accessSync(dataDir, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    throw unusable(dataDir, error);
  }
  try {
    return acquireLock(path.join(dataDir, LOCK_FILE));
  } catch (error) {
    if (!(error instanceof LockedError)) throw unusable(dataDir, error);
    throw new RunningError(
      `Business Runner already runs on ${dataDir}, as process ${error.pid}: stop it, or choose another DATA_DIR (and PORT)`,
    );
  }
}
