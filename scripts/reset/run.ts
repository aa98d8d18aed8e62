import { existsSync, lstatSync, readdirSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { type Config, ConfigError, defaultStorageUrl, readConfig } from '../../engine/config.ts';
import { clusterPointer, ELSEWHERE, orphanedFolders, ownerElsewhere } from '../../engine/postgres/elsewhere.ts';
import { PostgresError } from '../../engine/postgres/error.ts';
import { stopOrphan } from '../../engine/postgres/orphan.ts';
import { embeddedCluster } from '../database_url.ts';
import { ENVIRONMENT_FILE_HELP, loadEnvironmentFile } from '../environment_file.ts';
import { lockDataFolder, RunningError } from '../start/data_folder.ts';
import { askYes, printError, printLine, printText } from '../terminal.ts';

const USAGE = `npm run reset [-- --yes]: removes the embedded database and the stored files of DATA_DIR, after a question

The next npm start or npm run dev makes an empty database. Tokens, passwords and logs stay. It refuses while a start runs, and
where DATABASE_URL is set. A database that a start as root put outside of DATA_DIR is removed with it. What is left at the end
is named, and so are databases in ${ELSEWHERE} whose data folder is gone: they are yours to remove.

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

type Targets = Readonly<{
  cluster: string;
  /** The folder that was made for a database outside of the data folder. */
  outside: string | undefined;
  /** Of database and files, what is there. */
  remove: readonly string[];
  isOwnStorage: boolean;
}>;

/**
 * What is to be removed.
 * @throws ResetError where the database lies outside of DATA_DIR, in a folder that does not say that it is this one's: without
 * the database, files alone would go
 */
function targetsOf({ dataDir, storageUrl }: Config): Targets {
  const cluster = embeddedCluster(dataDir);
  const folder = path.dirname(cluster);
  const outside = folder === dataDir ? undefined : folder;
  if (outside !== undefined && ownerElsewhere(cluster) !== dataDir) {
    throw new ResetError(
      `the database is in ${cluster}, outside of ${dataDir}, in a folder that does not name ${dataDir} as its own, and nothing was removed: remove that folder and ${clusterPointer(dataDir)} yourself, then run this again for the files`,
    );
  }
  const isOwnStorage = storageUrl === defaultStorageUrl(dataDir);
  const targets = [cluster, ...(isOwnStorage ? [path.join(dataDir, 'files')] : [])];
  // A link is removed as such; what it leads to stays.
  const remove = targets.filter((target) => lstatSync(target, { throwIfNoEntry: false }));
  return { cluster, outside, remove, isOwnStorage };
}

async function confirm(question: string): Promise<boolean> {
  if (!process.stdin.isTTY) throw new ResetError('there is no terminal to ask: add --yes');
  return askYes(question, process.stdin);
}

async function remove(target: string): Promise<void> {
  await rm(target, { recursive: true, force: true }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EACCES' && error.code !== 'EPERM') throw error;
    throw new ResetError(`${target} belongs to another account: run this as root, or as that account`);
  });
  printLine(`removed ${target}`);
}

/** What a reset leaves: for a person who wants all of it gone. */
function tellWhatIsLeft(dataDir: string, elsewhere: string): void {
  const names = readdirSync(dataDir).filter((name) => !name.startsWith('start.lock'));
  if (names.length > 0) printLine(`left in ${dataDir}: ${names.sort().join(', ')}`);
  const binaries = existsSync(elsewhere) ? readdirSync(elsewhere).filter((name) => name.startsWith('postgres-')) : [];
  for (const name of binaries)
    printLine(`left: ${path.join(elsewhere, name)}, the Postgres binaries of starts as root`);
}

function tellOrphans(elsewhere: string): void {
  for (const { folder, dataDir } of orphanedFolders(elsewhere)) {
    const owner =
      dataDir === undefined ? 'a data folder that is not known' : `${dataDir}, which does not name it any more`;
    printLine(`orphaned: ${folder}, the database of ${owner}; if nothing needs it: rm -r ${folder}`);
  }
}

async function reset(config: Config, yes: boolean, elsewhere: string): Promise<void> {
  const { dataDir } = config;
  if (config.databaseUrl !== undefined) {
    throw new ResetError('DATABASE_URL is set, and npm run reset removes the embedded database alone');
  }
  if (!existsSync(dataDir)) throw new ResetError(`there is no ${dataDir}: nothing to remove`);
  const release = await lockDataFolder(dataDir);
  try {
    const { cluster, outside, remove: targets, isOwnStorage } = targetsOf(config);
    if (!isOwnStorage) printLine('note: files of STORAGE_URL stay where they are');
    if (targets.length === 0 && outside === undefined) {
      throw new ResetError(`${dataDir} holds no database and no files: nothing to remove`);
    }
    const asked = [...targets, ...(outside === undefined ? [] : [outside])];
    if (!yes && !(await confirm(`Remove ${asked.join(' and ')} with everything in them?`))) {
      throw new ResetError('nothing was removed');
    }
    // A start that was killed may have left its Postgres running.
    if (targets.includes(cluster)) await stopOrphan(cluster);
    for (const target of targets) await remove(target);
    if (outside !== undefined) {
      // The folder last: while the pointer is there, it leads somewhere.
      await rm(clusterPointer(dataDir), { force: true });
      await remove(outside);
    }
    tellWhatIsLeft(dataDir, elsewhere);
  } finally {
    release();
  }
}

function readArguments() {
  try {
    const args = loadEnvironmentFile(process.argv.slice(2));
    return parseArgs({ args, options: { yes: { type: 'boolean' }, help: { type: 'boolean' } } }).values;
  } catch (error) {
    printError(`${(error as Error).message}; see npm run reset -- --help`);
    process.exit(EX_USAGE);
  }
}

/** The command. @param elsewhere where starts as root put databases and binaries */
export async function runReset(elsewhere: string = ELSEWHERE): Promise<void> {
  try {
    const { yes = false, help = false } = readArguments();
    if (help) printText(USAGE);
    else await reset(readConfig(), yes, elsewhere).finally(() => tellOrphans(elsewhere));
  } catch (error) {
    if (![ConfigError, PostgresError, ResetError, RunningError].some((kind) => error instanceof kind)) throw error;
    printError((error as Error).message);
    process.exitCode = error instanceof ConfigError ? EX_CONFIG : 1;
  }
}
