import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { Config } from '../../engine/config.ts';
import { MigrateError, migrate } from '../../engine/db/migrate.ts';
import { CLOSE_OTHER_DATABASES } from '../../engine/db/schema/close.ts';
import { clusterExists } from '../../engine/postgres/cluster.ts';
import { type RunningPostgres, startPostgres } from '../../engine/postgres/embedded.ts';
import { fullDisk, PostgresError } from '../../engine/postgres/error.ts';
import { findPlace } from '../../engine/postgres/place.ts';
import type { LogFile } from './log_file.ts';
import { type DatabasePasswords, databasePasswords } from './secrets.ts';

export const DATABASE_NAME = 'business_runner';
/** So many of its last lines say why Postgres ended. */
const LAST_WORDS = 50;
/** The first start waits half a minute, and a person who sees nothing thinks that it hangs. */
const MIGRATING = 'Bringing the database up to date …';
const FIRST_BACKOFF_MS = 100;
const MAX_BACKOFF_MS = 10_000;

export type Database = Readonly<{
  /** The connections of the processes; undefined when they inherit DATABASE_URL. */
  urls: { api: string; jobs: string; admin: string } | undefined;
  /** The connection of the migration. */
  migrateUrl: string;
  /** One line for a person: what it is and where. */
  summary: string;
  notes: readonly string[];
  stop: (graceMs: number) => Promise<void>;
}>;

export type DatabaseOptions = Readonly<{
  log: LogFile;
  print: (line: string) => void;
  signal: AbortSignal;
}>;

function urlOf(postgres: RunningPostgres, user: string, password: string): string {
  return `postgres://${user}:${password}@127.0.0.1:${postgres.port}/${DATABASE_NAME}`;
}

async function query(url: string, ...statements: readonly string[]): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => {});
  await client.connect();
  try {
    for (const statement of statements) await client.query(statement);
  } finally {
    await client.end();
  }
}

/** Why the database could not be prepared: of a Postgres that ended, its last words say it. */
function preparationError(error: unknown, words: readonly string[], place: string, log: LogFile): Error {
  const message = error instanceof Error ? error.message : String(error);
  const full = fullDisk([...words, message]);
  if (full === undefined && error instanceof MigrateError) return error;
  return new PostgresError(`the database in ${place} cannot be prepared: ${full ?? message} (more in ${log.path})`, {
    cause: error,
  });
}

/** Creates the database, migrates it and sets the passwords of its logins. */
async function prepare(postgres: RunningPostgres, passwords: DatabasePasswords, log: LogFile): Promise<void> {
  await query(postgres.url, `create database ${DATABASE_NAME}`).catch((error) => {
    if (error.code !== '42P04') throw error; // it exists
  });
  await migrate(urlOf(postgres, 'postgres', passwords.superuser), { log: log.write });
  await query(
    postgres.url,
    ...CLOSE_OTHER_DATABASES,
    `alter role runner_api password '${passwords.runner_api}'`,
    `alter role runner_jobs password '${passwords.runner_jobs}'`,
    `alter role runner_admin password '${passwords.runner_admin}'`,
  );
}

async function startEmbedded(config: Config, options: DatabaseOptions): Promise<Database> {
  const { log, print, signal } = options;
  const place = await findPlace(config.dataDir);
  const { passwords, fresh } = databasePasswords(config.dataDir);
  const lastWords: string[] = [];
  const stopping = new AbortController();
  const end = AbortSignal.any([signal, stopping.signal]);
  const start = (port?: number) =>
    startPostgres({
      cluster: place.cluster,
      binaries: place.binaries,
      account: place.account,
      password: passwords.superuser,
      resetPassword: fresh && port === undefined,
      log(line) {
        if (lastWords.push(line) > LAST_WORDS) lastWords.shift();
        log.write(line);
      },
      signal: end,
      ...(port === undefined ? {} : { port }),
    });
  print(clusterExists(place.cluster) ? 'Starting Postgres …' : 'Making a database …');
  let postgres = await start();
  lastWords.length = 0;
  /** Starts a Postgres that ended by itself again, at the same port: the other processes reconnect. */
  async function startAgain(): Promise<void> {
    print(`Postgres ended, restarting it (${log.path})`);
    for (let delay = FIRST_BACKOFF_MS; !end.aborted; delay = Math.min(delay * 2, MAX_BACKOFF_MS)) {
      try {
        postgres = await start(postgres.port);
        print('Postgres is running again');
        return;
      } catch (error) {
        log.write(String(error));
        await sleep(delay, undefined, { signal: end }).catch(() => {});
      }
    }
  }
  async function keepRunning(): Promise<void> {
    while (!end.aborted) {
      await postgres.ended;
      if (!end.aborted) await startAgain();
    }
  }
  try {
    print(MIGRATING);
    await prepare(postgres, passwords, log);
  } catch (error) {
    await postgres.stop();
    throw signal.aborted ? error : preparationError(error, lastWords, place.cluster, log);
  }
  const running = keepRunning();
  return {
    urls: {
      api: urlOf(postgres, 'runner_api', passwords.runner_api),
      jobs: urlOf(postgres, 'runner_jobs', passwords.runner_jobs),
      admin: urlOf(postgres, 'runner_admin', passwords.runner_admin),
    },
    migrateUrl: urlOf(postgres, 'postgres', passwords.superuser),
    summary: `embedded Postgres ${postgres.version} on port ${postgres.port}, in ${place.cluster}`,
    notes: place.notes,
    stop: async (graceMs) => {
      stopping.abort();
      await postgres.stop(graceMs);
      await running;
      // One that came up meanwhile.
      await postgres.stop(graceMs);
    },
  };
}

async function useExisting(url: string, { log, print, signal }: DatabaseOptions): Promise<Database> {
  signal.throwIfAborted();
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
  print(MIGRATING);
  // It may wait long for another process that migrates: Ctrl-C ends the wait.
  await Promise.race([migrate(url, { log: log.write }), aborted]);
  const { host, pathname } = new URL(url);
  return {
    urls: undefined,
    migrateUrl: url,
    summary: `${host}${pathname} (DATABASE_URL)`,
    notes: [],
    stop: async () => {},
  };
}

/** Migrates the database of a start: that of DATABASE_URL, else an embedded one, which is restarted when it ends. */
export function startDatabase(config: Config, options: DatabaseOptions): Promise<Database> {
  // The direct connection: the lock of the migration belongs to a session.
  const url = config.listenDatabaseUrl;
  return url === undefined ? startEmbedded(config, options) : useExisting(url, options);
}
