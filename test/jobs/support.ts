import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import pg from 'pg';
import { z } from 'zod';
import { type Config, environmentWith, readConfig } from '../../engine/config.ts';
import { createLogger } from '../../engine/log.ts';
import { openStorage, type Storage } from '../../engine/storage/index.ts';
import { crontab } from '../../jobs/crontab.ts';
import { type Jobs, startJobs } from '../../jobs/runner/process.ts';
import type { TearDown } from '../support/database.ts';
import { openFolder } from '../support/folders.ts';
import { until } from '../support/wait.ts';

export type Logged = Record<string, unknown> & { readonly msg: string };

export type TestJobs = Jobs & Readonly<{ logged: Logged[]; storage: Storage; storageUrl: string }>;

/** Parsed lines of a log. */
export function collectLog(): { readonly logged: Logged[]; write: (line: string) => void } {
  const logged: Logged[] = [];
  return { logged, write: (line) => void logged.push(JSON.parse(line)) };
}

export async function jobsConfig(t: TearDown, databaseUrl: string, settings: NodeJS.ProcessEnv = {}): Promise<Config> {
  const folder = await openFolder(t);
  return readConfig({
    DATA_DIR: folder,
    STORAGE_URL: pathToFileURL(path.join(folder, 'files')).href,
    DATABASE_URL: databaseUrl,
    DATABASE_POOL_SIZE: '8',
    RETRY_BACKOFF_SECONDS: '1',
    // Connections are of tests of other things.
    INSIGHT_UNITS: '0',
    LOG_LEVEL: 'debug',
    // Whoever tests it names a server of its own.
    CURRENCY_RATES: 'off',
    ...settings,
  });
}

/** No job is started by the clock from now on: what a test finds in the queue is not left to the minute in which it runs. */
async function stopClock(databaseUrl: string): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    // What was started for a later time is not started again.
    await client.query(
      `insert into graphile_worker._private_known_crontabs (identifier, known_since, last_execution)
       select identifier, now(), '2999-01-01' from unnest($1::text[]) identifier
       on conflict (identifier) do update set last_execution = excluded.last_execution`,
      [crontab.map(({ task }) => task)],
    );
  } finally {
    await client.end();
  }
}

/** A job process's work inside the test's own process, stopped at its end; it does nothing by the clock. */
export async function openJobs(t: TearDown, databaseUrl: string, settings: NodeJS.ProcessEnv = {}): Promise<TestJobs> {
  await stopClock(databaseUrl);
  const config = await jobsConfig(t, databaseUrl, settings);
  const { logged, write } = collectLog();
  const jobs = startJobs(config, createLogger('debug', 'jobs', { destination: { write } }), {
    // On a busy machine jobs take longer to leave off.
    graceMs: 60_000,
  });
  t.teardown(() => jobs.stop());
  await Promise.race([jobs.ready, jobs.failed]);
  return { ...jobs, logged, storage: openStorage(config.storageUrl, config.aws), storageUrl: config.storageUrl };
}

/** The name under which its jobs are locked; another one after its workers were started again. */
export function poolOf({ logged }: Pick<TestJobs, 'logged'>): string {
  return z.string().parse(logged.findLast(({ msg }) => msg === 'jobs are taken')?.['pool']);
}

export type JobsProcess = Readonly<{
  child: ChildProcess;
  /** Everything that it wrote. */
  output: () => string;
  kill: (signal: NodeJS.Signals) => Promise<number | null>;
  /** Fulfilled with its exit status. */
  ended: Promise<number | null>;
}>;

/** A real `node jobs/main.ts`, ready; it does nothing by the clock. */
export async function spawnJobs(
  t: TearDown,
  databaseUrl: string,
  settings: Parameters<typeof environmentWith>[0] = {},
): Promise<JobsProcess> {
  await stopClock(databaseUrl);
  const folder = await openFolder(t);
  const child = fork(path.resolve(import.meta.dirname, '..', '..', 'jobs', 'main.ts'), [], {
    env: environmentWith({
      DATA_DIR: folder,
      DATABASE_URL: databaseUrl,
      DATABASE_POOL_SIZE: '8',
      LOG_LEVEL: 'debug',
      CURRENCY_RATES: 'off',
      // Providers are those of tests of other things.
      INSIGHT_UNITS: '0',
      ...settings,
    }),
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk) => (output += chunk));
  const exit = once(child, 'exit');
  const ended: Promise<number | null> = exit.then(([code]) => code);
  const kill = (signal: NodeJS.Signals): Promise<number | null> => {
    child.kill(signal);
    return ended;
  };
  t.teardown(async () => void (await kill('SIGKILL')));
  const [message] = await Promise.race([once(child, 'message'), exit]);
  if (message?.type !== 'ready') throw new Error(`jobs/main.ts was not ready: ${output}`);
  return { child, output: () => output, kill, ended };
}

/** A connection that outlives nothing: for looking into the queue. */
export async function openClient(t: TearDown, url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => {});
  await client.connect();
  t.teardown(() => client.end());
  return client;
}

type Queries = Readonly<{ query: (text: string, values?: unknown[]) => Promise<{ rows: Record<string, unknown>[] }> }>;

export type QueueRow = Readonly<{
  id: string;
  task_identifier: string;
  key: string | null;
  attempts: number;
  max_attempts: number;
  last_error: string | null;
  locked_by: string | null;
  run_at: Date;
}>;

/** The jobs of one task, oldest first. */
export async function queued(db: Queries, task: string): Promise<QueueRow[]> {
  const { rows } = await db.query('select * from graphile_worker.jobs where task_identifier = $1 order by id', [task]);
  return rows as unknown as QueueRow[];
}

/** The pool whose dispatch has the key, once it runs. */
export function dispatching(db: Queries, by: (pool: string) => boolean = () => true): Promise<string> {
  return until('dispatch runs', async () => {
    const owners = (await queued(db, 'dispatch')).filter((job) => job.key !== null).map((job) => job.locked_by);
    return owners.find((owner): owner is string => owner !== null && by(owner));
  });
}

export async function addJob(db: Queries, task: string, payload: unknown, key: string | null = null): Promise<void> {
  await db.query('select graphile_worker.add_job($1, $2::json, job_key => $3)', [task, JSON.stringify(payload), key]);
}

/** Adds the job, and waits until it has run; one that failed stays in the queue with its error. */
export async function runJob(db: Queries, task: string, payload: unknown = {}): Promise<void> {
  await addJob(db, task, payload, task);
  await until(`${task} has run`, async () => (await queued(db, task)).every((job) => job.last_error !== null));
}
