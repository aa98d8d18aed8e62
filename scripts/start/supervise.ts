import { type Config, ConfigError, readConfig } from '../../engine/config.ts';
import { MigrateError } from '../../engine/db/migrate.ts';
import { PostgresError } from '../../engine/postgres/error.ts';
import { LockedError } from '../../engine/process/lock.ts';
import { settingsHelp } from '../../engine/settings_text.ts';
import { loadEnvironmentFile } from '../environment_file.ts';
import { countPresses } from '../presses.ts';
import { printError, printErrorText, printLine, printText } from '../terminal.ts';
import { RunningError } from './data_folder.ts';
import { ServiceError } from './service.ts';

const EX_USAGE = 64;
const EX_CONFIG = 78;

class Stopped extends Error {
  override name = 'Stopped';
}

/** Aborted by the first signal; a second Ctrl-C exits without waiting. */
function stopSignal(): AbortSignal {
  const controller = new AbortController();
  const press = countPresses();
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(name, () => {
      // Our exit kills the API and the jobs; Postgres is stopped by its guard, which sees that we are gone.
      if (press() > 1) process.exit(130);
      controller.abort(new Stopped());
    });
  }
  return controller.signal;
}

export type Command = Readonly<{
  /** As a person types it. */
  name: string;
  usage: string;
  /** Runs until `signal` is aborted, then stops what it started. */
  run: (config: Config, signal: AbortSignal) => Promise<void>;
}>;

async function execute({ name, usage, run }: Command): Promise<void> {
  const given = loadEnvironmentFile(process.argv.slice(2));
  if (given.includes('--help')) {
    printText(usage + settingsHelp());
    return;
  }
  const [unknown] = given;
  if (unknown !== undefined) {
    printError(`${name}: unknown option ${unknown}; see ${name} -- --help`);
    process.exitCode = EX_USAGE;
    return;
  }
  const signal = stopSignal();
  signal.addEventListener('abort', () => printLine('Stopping …'), { once: true });
  try {
    await run(readConfig(), signal);
  } finally {
    if (signal.aborted) printLine('Stopped.');
  }
}

// The disk is full, broken, read-only or not ours; no memory, processes or files are left.
const SYSTEM = 'ENOSPC EDQUOT EIO EROFS EACCES EPERM ENOMEM EAGAIN EMFILE ENFILE'.split(' ');

/** What the machine refused: the code at hand is not to blame, and where it stands tells nothing. */
function isOfSystem(error: unknown): error is Error {
  return error instanceof Error && 'code' in error && SYSTEM.includes(String(error.code));
}

/** Runs a long-running command: options, settings, signals, and errors that are one line for the person who runs it. */
export async function supervise(command: Command): Promise<void> {
  try {
    await execute(command);
  } catch (error) {
    if (error instanceof Stopped) return;
    const known = [ConfigError, LockedError, MigrateError, PostgresError, RunningError, ServiceError].some(
      (kind) => error instanceof kind,
    );
    if (known && error instanceof Error) printError(error.message);
    else if (isOfSystem(error)) printError(`${command.name}: ${error.message}`);
    else printErrorText(`${error instanceof Error ? error.stack : error}\n`);
    process.exitCode = error instanceof ConfigError ? EX_CONFIG : 1;
  }
}

/** Resolves when the signal is aborted. */
export async function aborted(signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
