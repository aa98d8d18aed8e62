import { existsSync, lstatSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { type Config, ConfigError, defaultStorageUrl, readConfig } from '../engine/config.ts';
import { PostgresError } from '../engine/postgres/error.ts';
import { stopOrphan } from '../engine/postgres/orphan.ts';
import { clusterPointer, embeddedCluster } from './database_url.ts';
import { ENVIRONMENT_FILE_HELP, loadEnvironmentFile } from './environment_file.ts';
import { lockDataFolder, RunningError } from './start/data_folder.ts';
import { askYes, printError, printLine, printText } from './terminal.ts';

const USAGE = `npm run db:reset [-- --yes]: removes the embedded database and the stored files of DATA_DIR, after a question

The next npm start or npm run dev makes an empty database. Tokens, passwords and logs stay. It refuses while a start runs,
where DATABASE_URL is set, and where the database lies outside of DATA_DIR: nothing there is ever removed.

  --yes          does not ask
  ${ENVIRONMENT_FILE_HELP}
  --help
`;

const EX_USAGE = 64;
const EX_CONFIG = 78;

/** Nothing was removed; the message says why and what to do. */
class ResetError extends Error {
  override name = 'ResetError';
}

/**
 * What is to be removed.
 * @throws ResetError where the database lies outside of DATA_DIR: without it, files alone would go
 */
function targetsOf({ dataDir, storageUrl }: Config) {
  const cluster = embeddedCluster(dataDir);
  if (path.dirname(cluster) !== dataDir) {
    throw new ResetError(
      `the database is in ${cluster}, outside of ${dataDir}, and nothing was removed: remove that folder and ${clusterPointer(dataDir)} yourself, then run this again for the files`,
    );
  }
  const isOwnStorage = storageUrl === defaultStorageUrl(dataDir);
  const targets = [cluster, ...(isOwnStorage ? [path.join(dataDir, 'files')] : [])];
  // A link is removed as such; what it leads to stays.
  const remove = targets.filter((target) => lstatSync(target, { throwIfNoEntry: false }));
  return { cluster, remove, isOwnStorage };
}

async function confirm(question: string): Promise<boolean> {
  if (!process.stdin.isTTY) throw new ResetError('there is no terminal to ask: add --yes');
  return askYes(question, process.stdin);
}

async function reset(config: Config, yes: boolean): Promise<void> {
  const { dataDir } = config;
  if (config.databaseUrl !== undefined) {
    throw new ResetError('DATABASE_URL is set, and npm run db:reset removes the embedded database alone');
  }
  if (!existsSync(dataDir)) throw new ResetError(`there is no ${dataDir}: nothing to remove`);
  const release = await lockDataFolder(dataDir);
  try {
    const { cluster, remove, isOwnStorage } = targetsOf(config);
    if (!isOwnStorage) printLine('note: files of STORAGE_URL stay where they are');
    if (remove.length === 0) throw new ResetError(`${dataDir} holds no database and no files: nothing to remove`);
    if (!yes && !(await confirm(`Remove ${remove.join(' and ')} with everything in them?`))) {
      throw new ResetError('nothing was removed');
    }
    // A start that was killed may have left its Postgres running.
    if (remove.includes(cluster)) await stopOrphan(cluster);
    for (const target of remove) {
      await rm(target, { recursive: true, force: true }).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== 'EACCES' && error.code !== 'EPERM') throw error;
        throw new ResetError(`${target} belongs to another account: run this as root, or as that account`);
      });
      printLine(`removed ${target}`);
    }
  } finally {
    release();
  }
}

function readArguments() {
  try {
    const args = loadEnvironmentFile(process.argv.slice(2));
    return parseArgs({ args, options: { yes: { type: 'boolean' }, help: { type: 'boolean' } } }).values;
  } catch (error) {
    printError(`${(error as Error).message}; see npm run db:reset -- --help`);
    process.exit(EX_USAGE);
  }
}

try {
  const { yes = false, help = false } = readArguments();
  if (help) printText(USAGE);
  else await reset(readConfig(), yes);
} catch (error) {
  if (![ConfigError, PostgresError, ResetError, RunningError].some((kind) => error instanceof kind)) throw error;
  printError((error as Error).message);
  process.exitCode = error instanceof ConfigError ? EX_CONFIG : 1;
}
