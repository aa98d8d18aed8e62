import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { migrate } from '../../engine/db/migrate.ts';
import { startPostgres } from '../../engine/postgres/embedded.ts';

export const SERVICE_TOKEN = 'bench-token-of-at-least-32-characters';
export const ADMIN_TOKEN = 'bench-admin-token-of-at-least-32-characters';
const apiScript = fileURLToPath(new URL('../../api/main.ts', import.meta.url));
const jobsScript = fileURLToPath(new URL('../../jobs/main.ts', import.meta.url));

export type BenchServer = Readonly<{
  /** As superuser. */
  url: string;
  version: string;
  folder: string;
  stop: () => Promise<void>;
}>;

/**
 * A Postgres of its own with the settings of `npm start`: it flushes to the disk, as the product's does. In `kept`, a folder
 * that stays, and is used again the next time, or in one that goes with it.
 */
export async function startBenchServer(kept?: string): Promise<BenchServer> {
  if (kept !== undefined) await mkdir(kept, { recursive: true });
  const folder = kept ?? (await mkdtemp(path.join(os.tmpdir(), 'runner-bench-')));
  await chmod(folder, 0o711);
  const postgres = await startPostgres({ cluster: path.join(folder, 'postgres'), password: 'bench' });
  await migrate(postgres.url);
  return {
    url: postgres.url,
    version: postgres.version,
    folder,
    async stop() {
      await postgres.stop();
      if (kept === undefined) await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Connections as superuser. One that is still closing when the server stops is no failure of the measurement. */
export function benchPool(server: Pick<BenchServer, 'url'>): pg.Pool {
  const pool = new pg.Pool({ connectionString: server.url });
  pool.on('error', () => {});
  return pool;
}

export type BenchProcess = Readonly<{ pid: number; stop: () => Promise<void> }>;
export type BenchApi = BenchProcess & Readonly<{ url: string }>;

async function start(
  script: string,
  server: BenchServer,
  execArgv: readonly string[],
  settings: Readonly<Record<string, string>>,
): Promise<BenchProcess & Readonly<{ message: unknown }>> {
  const child: ChildProcess = fork(script, [], {
    execArgv: [...execArgv],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    env: {
      ...process.env,
      DATABASE_URL: server.url,
      LISTEN_DATABASE_URL: server.url,
      DATA_DIR: server.folder,
      LOG_LEVEL: 'warn',
      ...settings,
    },
  });
  const [message] = await once(child, 'message');
  return {
    message,
    pid: child.pid ?? 0,
    async stop() {
      child.kill('SIGTERM');
      await once(child, 'exit');
    },
  };
}

/** An API process as the product runs it, with `execArgv` for Node where more is to be seen of it. */
export async function startBenchApi(
  server: BenchServer,
  poolSize = 16,
  execArgv: readonly string[] = [],
): Promise<BenchApi> {
  const { message, ...api } = await start(apiScript, server, execArgv, {
    DATABASE_POOL_SIZE: String(poolSize),
    PORT: '0',
    OWNER_AUTH: 'open',
    AGENT_SERVICE_TOKENS: SERVICE_TOKEN,
    ADMIN_TOKENS: `bench:${ADMIN_TOKEN}`,
  });
  return { ...api, url: (message as { url: string }).url };
}

/** A job process as the product runs it. */
export function startBenchJobs(server: BenchServer): Promise<BenchProcess> {
  return start(jobsScript, server, [], { DATABASE_POOL_SIZE: '8', CURRENCY_RATES: 'off', INSIGHT_UNITS: '0' });
}
