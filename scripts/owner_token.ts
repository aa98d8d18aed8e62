import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';

const ROOT = path.resolve(import.meta.dirname, '..');

/** The token that `npm start` keeps for owners of this machine; undefined where there is none. */
function keptToken(settings: NodeJS.ProcessEnv): string | undefined {
  const dataDir = (settings['DATA_DIR'] || '.data').replace(/^~(?=\/|$)/, homedir());
  try {
    return readFileSync(path.resolve(ROOT, dataDir, 'owner-token'), 'utf8').trim();
  } catch {
    return undefined;
  }
}

/**
 * An owner's token of the service on this machine, by the settings with which it was started. It is for the address that these
 * settings name, and no other.
 */
export function localOwnerToken(settings: NodeJS.ProcessEnv): string | undefined {
  return settings['OWNER_TOKENS']?.split(',')[0]?.trim() || keptToken(settings);
}
