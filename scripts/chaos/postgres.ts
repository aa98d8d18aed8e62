import { randomBytes } from 'node:crypto';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { migrate } from '../../engine/db/migrate.ts';
import { type PostgresOptions, type RunningPostgres, startPostgres } from '../../engine/postgres/embedded.ts';

const NAME = 'business_runner';
const RESTART_WITHIN_MS = 30_000;

/** Fast: transactions are rolled back, everything is flushed. The others end it without a word: the next start recovers. */
const signals = { fast: 'SIGINT', immediate: 'SIGQUIT', kill: 'SIGKILL' } as const;
export type Ending = keyof typeof signals;

export type ChaosPostgres = Readonly<{
  /** As superuser. */
  url: string;
  apiUrl: string;
  jobsUrl: string;
  /** Ends it in that way, waits for `downMs`, starts it again at the same port. */
  restart: (ending: Ending, downMs: number) => Promise<void>;
  stop: () => Promise<void>;
}>;

/**
 * What a process that dies can lose is not what a machine without power can lose: the short form may leave out fsync,
 * which only the latter needs, but no more than that.
 */
const withoutPowerCuts = { fsync: 'off', max_connections: '200', shared_buffers: '64MB' } as const;

export type ChaosPostgresOptions = Readonly<{
  folder: string;
  durable: boolean;
  log: (line: string) => void;
  /** It ended, and it was not our doing. */
  onCrash: (how: string) => void;
  signal: AbortSignal;
}>;

/** A migrated database of its own in `folder`, with the logins that the processes of the product use. */
export async function startChaosPostgres(options: ChaosPostgresOptions): Promise<ChaosPostgres> {
  const { folder, durable, log, onCrash, signal } = options;
  const password = randomBytes(16).toString('hex');
  const settings: PostgresOptions = {
    cluster: path.join(folder, 'postgres'),
    password,
    log,
    signal,
    ...(durable ? {} : { settings: withoutPowerCuts }),
  };
  let running: RunningPostgres = await startPostgres(settings);
  let expected = false;
  let recovered: Promise<void> = Promise.resolve();

  /** One that ends by itself is a failure, and comes back nevertheless: what it left has to be judged. */
  function watch(postgres: RunningPostgres): void {
    void postgres.ended.then(() => {
      if (expected) return;
      onCrash('Postgres ended by itself');
      recovered = begin().catch((error: unknown) => onCrash(`Postgres does not come back: ${error}`));
    });
  }

  async function begin(): Promise<void> {
    running = await again();
    expected = false;
    watch(running);
  }

  function urlOf(user: string): string {
    return `postgres://${user}:${password}@127.0.0.1:${running.port}/${NAME}`;
  }

  async function again(): Promise<RunningPostgres> {
    const deadline = Date.now() + RESTART_WITHIN_MS;
    for (;;) {
      try {
        return await startPostgres({ ...settings, port: running.port });
      } catch (error) {
        if (signal.aborted || Date.now() > deadline) throw error;
        log(String(error));
        await sleep(100);
      }
    }
  }

  watch(running);
  try {
    await prepare(running.url, urlOf('postgres'), password);
  } catch (error) {
    expected = true;
    await running.stop();
    throw error;
  }
  return {
    url: urlOf('postgres'),
    apiUrl: urlOf('runner_api'),
    jobsUrl: urlOf('runner_jobs'),
    async restart(ending, downMs) {
      await recovered;
      expected = true;
      process.kill(running.pid, signals[ending]);
      await running.ended;
      await sleep(downMs, undefined, { signal });
      await begin();
    },
    async stop() {
      await recovered;
      expected = true;
      await running.stop(2_000);
    },
  };
}

async function prepare(serverUrl: string, url: string, password: string): Promise<void> {
  await query(serverUrl, `create database ${NAME}`);
  await migrate(url);
  await query(url, `alter role runner_api password '${password}'`, `alter role runner_jobs password '${password}'`);
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
