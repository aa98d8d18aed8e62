import { homedir } from 'node:os';
import path from 'node:path';

const ROOT = path.resolve(import.meta.dirname, '../..');

/** Where workers and agent runtimes find their service token in the data folder. */
export const TOKEN_FILE = 'agent-service-token';
/** Where an owner finds the token of what takes one with OWNER_AUTH=open too. */
export const OWNER_TOKEN_FILE = 'owner-token';

/** The data folder by the settings with which the service was started: a shell expands ~, a file of settings does not. */
export function dataFolder(settings: NodeJS.ProcessEnv): string {
  return path.resolve(ROOT, (settings['DATA_DIR'] || '.data').replace(/^~(?=\/|$)/, homedir()));
}
