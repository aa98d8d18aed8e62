import { readFileSync } from 'node:fs';
import path from 'node:path';
import { dataFolder, OWNER_TOKEN_FILE } from './worker/local_data.ts';

/** The token that `npm start` keeps for owners of this machine; undefined where there is none. */
function keptToken(settings: NodeJS.ProcessEnv): string | undefined {
  try {
    return readFileSync(path.join(dataFolder(settings), OWNER_TOKEN_FILE), 'utf8').trim();
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
