import { existsSync, statSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import type pg from 'pg';
import { type Config, ConfigError, readConfig } from '../engine/config.ts';
import { type EncryptionKey, encryptionKeys } from '../engine/secrets/index.ts';
import { NoDatabaseError, operatorClient, operatorDatabaseUrl } from './database_url.ts';
import { loadEnvironmentFile } from './environment_file.ts';
import { recordsByKey, rotate } from './keys/rotation.ts';
import { LOCK_FILE } from './start/data_folder.ts';
import { ENCRYPTION_KEYS_FILE, keptEncryptionKeys } from './start/secrets.ts';
import { printErrorText, printText } from './terminal.ts';

const USAGE = `npm run keys -- COMMAND: the keys that the credentials of integrations are encrypted with

  list      says which keys there are, and how many records need each
  rotate    wraps all records by the first key; it may run beside npm start, be stopped anywhere and run again

The keys are those of ENCRYPTION_KEYS; without it those that npm start keeps in the file ${ENCRYPTION_KEYS_FILE} of DATA_DIR.
To rotate, put a new key first in the list, id:base64 (openssl rand -base64 32), and leave the others behind it. Start all
processes anew, then rotate: one that does not have the new key opens nothing that is wrapped by it. Take an old key out
once list says that no record needs it.

The database is that of DATABASE_URL, with the login that migrates it; without it the one that npm start runs on DATA_DIR.
With --no-env-file the settings in .env are not read.
`;

/** What a person can mend, in one line. */
class KeysError extends Error {
  override name = 'KeysError';
}

const SHOWN = 20;

const counted = (records: number) => `${records} ${records === 1 ? 'record' : 'records'}`;

/** As `npm start` has them, and the file that they are kept in. Makes none. */
function keysOf({ dataDir, integrations }: Config): { keys: readonly EncryptionKey[]; file: string | undefined } {
  if (integrations.encryptionKeys.length > 0) return { keys: integrations.encryptionKeys, file: undefined };
  if (!existsSync(path.join(dataDir, ENCRYPTION_KEYS_FILE))) {
    throw new KeysError(`there are no keys: set ENCRYPTION_KEYS, or run npm start, which makes one in ${dataDir}`);
  }
  const { keys, file } = keptEncryptionKeys(dataDir);
  return { keys: encryptionKeys.parse(keys), file };
}

/**
 * The start that runs has the keys of when it began.
 * @throws KeysError where the file was changed since then
 */
function checkRunningStart(dataDir: string, file: string): void {
  const started = statSync(path.join(dataDir, LOCK_FILE), { throwIfNoEntry: false });
  if (started && statSync(file).mtimeMs > started.mtimeMs) {
    throw new KeysError(`${file} was changed after npm start began: start it anew, and then rotate`);
  }
}

async function list(client: pg.Client, keys: readonly EncryptionKey[]): Promise<string> {
  const records = await recordsByKey(client);
  const line = (id: string, note: string) => `${id.padEnd(24)} ${counted(records.get(id) ?? 0).padEnd(14)} ${note}`;
  const known = keys.map(({ id }, index) => {
    if (index === 0) return line(id, 'encrypts what is new');
    return line(id, records.has(id) ? 'still needed: rotate' : 'not needed any more: may be taken out');
  });
  const missing = [...records.keys()]
    .filter((id) => keys.every((key) => key.id !== id))
    .map((id) => line(id, 'missing: put it back, or connect these integrations again'));
  return [...known, ...missing].join('\n');
}

/** What was done, and whether all records are wrapped by the first key now. */
async function rotated(client: pg.Client, keys: readonly EncryptionKey[]): Promise<{ said: string; whole: boolean }> {
  const [first, ...others] = keys;
  if (!first) throw new KeysError('there are no keys: set ENCRYPTION_KEYS');
  const { rewrapped, damaged } = await rotate(client, keys);
  const records = await recordsByKey(client);
  const lines = [`wrapped ${counted(rewrapped)} by ${first.id}`];
  for (const { organizationId, integrationId, field } of damaged.slice(0, SHOWN)) {
    lines.push(`damaged: ${field} of integration ${integrationId}, organization ${organizationId}: connect it again`);
  }
  if (damaged.length > SHOWN) lines.push(`and ${damaged.length - SHOWN} more are damaged`);
  let whole = damaged.length === 0;
  for (const [id, left] of records) {
    if (id === first.id) continue;
    const isKnown = others.some((key) => key.id === id);
    whole &&= isKnown;
    // A flow's secrets last ten minutes, and are not worth the wrapping.
    lines.push(
      isKnown
        ? `${id} still has ${counted(left)}: damaged ones, and authorizations that are under way for ten minutes`
        : `${id} is missing, and has ${counted(left)}: put it back, or connect these integrations again`,
    );
  }
  return { said: lines.join('\n'), whole };
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    args: loadEnvironmentFile(process.argv.slice(2)),
    options: { help: { type: 'boolean' } },
    allowPositionals: true,
  });
  const [command, ...rest] = positionals;
  if (values.help || rest.length > 0 || (command !== 'list' && command !== 'rotate')) {
    printText(USAGE);
    process.exitCode = values.help ? 0 : 64;
    return;
  }
  const config = readConfig();
  const { keys, file } = keysOf(config);
  if (command === 'rotate' && file !== undefined && keys.length > 1) checkRunningStart(config.dataDir, file);
  const client = await operatorClient(operatorDatabaseUrl(config), { application_name: 'business-runner keys' });
  try {
    // For operators: no login of the API or the jobs may become this role.
    await client.query('set role runner_global').catch((error: Error) => {
      throw new KeysError(`this database or login is not one that npm run migrate was used with: ${error.message}`);
    });
    if (command === 'list') {
      printText(`${await list(client, keys)}\n`);
      return;
    }
    const { said, whole } = await rotated(client, keys);
    printText(`${said}\n`);
    if (!whole) process.exitCode = 1;
  } finally {
    await client.end();
  }
}

try {
  await main();
} catch (error) {
  const badOption = error instanceof TypeError && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS');
  const known = [ConfigError, KeysError, NoDatabaseError].some((kind) => error instanceof kind);
  if (!known && !badOption) throw error;
  printErrorText(`${(error as Error).message}\n`);
  process.exitCode = error instanceof ConfigError ? 78 : badOption ? 64 : 1;
}
