import { type ChildProcess, execFile, fork, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { createWriteStream, openSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import pg from 'pg';
import { environmentWith } from '../../engine/config.ts';
import { createRecorder, type Recorder } from './facts.ts';
import { type ChaosPostgres, startChaosPostgres } from './postgres.ts';
import { type WorkerSettings, workerReport } from './protocol.ts';
import { createRandom, type Random } from './random.ts';
import { type Supervised, supervise } from './supervised.ts';

const ROOT = path.resolve(import.meta.dirname, '..', '..');
const READY_WITHIN_MS = 60_000;

export type WorldOptions = Readonly<{
  seed: string;
  /** With fsync, as the product runs. */
  durable: boolean;
  apis: number;
  jobs: number;
  /** Those that send calls twice, forget heartbeats, come late; the reference worker as it is; the same for chats. */
  workers: Readonly<Partial<Record<WorkerSettings['kind'], number>>>;
  signal: AbortSignal;
}>;

/** The whole product in a folder that is thrown away: each part a process that can be killed. */
export type World = Readonly<{
  folder: string;
  random: Random;
  recorder: Recorder;
  postgres: ChaosPostgres;
  leaseMs: number;
  /** As superuser, above row security; connects again by itself. */
  sql: pg.Pool;
  urls: readonly string[];
  apis: readonly Supervised[];
  jobs: readonly Supervised[];
  workers: readonly Supervised[];
  /** Resolves when every API says that it is ready. */
  ready: () => Promise<void>;
  /** A line of the round's own log: what was done when. */
  log: (line: string) => void;
  /** Ends every process. The folder, with the logs, is removed unless it shall be kept. */
  stop: (options?: Readonly<{ keep: boolean }>) => Promise<void>;
}>;

/** Below the ports that systems give to outgoing connections: one of those could take it while its API is down. */
async function freePort(random: Random): Promise<number> {
  for (;;) {
    const port = random.between(15_000, 29_999);
    const server = createServer();
    const free = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false)).listen(port, '127.0.0.1', () => resolve(true));
    });
    await new Promise((resolve) => server.close(resolve));
    if (free) return port;
  }
}

/** Attempts enough that no task ever fails. Whether a message that nobody takes ends is worth a short wait. */
const settings = {
  RETRY_BACKOFF_SECONDS: '1',
  RETRY_BACKOFF_MAX_SECONDS: '2',
  RUN_REQUEST_MAX_ATTEMPTS: '100',
  CHAT_START_SECONDS: '15',
  DATABASE_POOL_SIZE: '8',
  HOST: '127.0.0.1',
  OWNER_AUTH: 'open',
  AGENT_CATALOG: 'builtin',
  VALIDATE_RESPONSES: '1',
  LOG_LEVEL: 'warn',
  CURRENCY_RATES: 'off',
  INSIGHT_UNITS: '0',
  STORAGE_URL: undefined,
} as const;
const LEASE_SECONDS = { shortest: 2, longest: 8 } as const;

/**
 * How long leases last here: short, so that lost ones come back while one watches, but not shorter than an API takes to
 * start on this machine at this moment, or hardly any run would live through its restart. This start also fills the
 * compile cache, from which processes that are killed take and never give.
 */
async function leaseSeconds(environment: NodeJS.ProcessEnv): Promise<number> {
  const startedAt = performance.now();
  await promisify(execFile)(process.execPath, ['api/main.ts', '--help'], { cwd: ROOT, env: environment });
  const seconds = Math.ceil((performance.now() - startedAt) / 1000);
  return Math.max(LEASE_SECONDS.shortest, Math.min(seconds, LEASE_SECONDS.longest));
}

function listen(child: ChildProcess, recorder: Recorder): void {
  if (!child.stdout) return;
  createInterface({ input: child.stdout }).on('line', (line) => {
    const report = workerReport.parse(JSON.parse(line));
    if (report.kind === 'started') recorder.start(report);
    else if (report.kind === 'ended') recorder.end(report);
    else if (report.kind === 'did') recorder.count(report.what);
    else recorder.violation(report.rule, report.what);
  });
}

async function untilReady(url: string, signal: AbortSignal): Promise<void> {
  const deadline = Date.now() + READY_WITHIN_MS;
  for (;;) {
    const response = await fetch(`${url}/readyz`).catch(() => undefined);
    await response?.body?.cancel();
    if (response?.ok) return;
    if (Date.now() > deadline) throw new Error(`${url} is not ready after ${READY_WITHIN_MS / 1000} s`);
    await sleep(50, undefined, { signal });
  }
}

export async function startWorld(options: WorldOptions): Promise<World> {
  const { seed, signal } = options;
  const random = createRandom(seed);
  const recorder = createRecorder();
  const folder = await mkdtemp(path.join(os.tmpdir(), 'runner-chaos-'));
  await chmod(folder, 0o711); // Postgres passes through it as another account
  const logFile = createWriteStream(path.join(folder, 'chaos.log'));
  const startedAt = performance.now();
  const log = (line: string) =>
    void logFile.write(`${((performance.now() - startedAt) / 1000).toFixed(3).padStart(8)}  ${line}\n`);
  const onCrash = (how: string) => {
    log(how);
    recorder.violation('no process ends by itself', { how, logs: folder });
  };
  const parts = new AsyncDisposableStack();
  let keepFolder = false;
  parts.defer(async () => {
    logFile.end();
    if (!keepFolder) await rm(folder, { recursive: true, force: true });
  });

  try {
    const postgresLog = createWriteStream(path.join(folder, 'postgres.log'));
    parts.defer(() => void postgresLog.end());
    const postgres = await startChaosPostgres({
      folder,
      durable: options.durable,
      log: (line) => void postgresLog.write(`${line}\n`),
      onCrash,
      signal,
    });
    parts.defer(() => postgres.stop());
    const sql = new pg.Pool({ connectionString: postgres.url, max: 3, connectionTimeoutMillis: 5_000 });
    sql.on('error', () => {}); // the next query takes a new connection
    parts.defer(() => sql.end());

    const token = randomBytes(24).toString('hex');
    const downtime = random.fork('downtime');
    const cache = { NODE_COMPILE_CACHE: path.join(folder, 'compile-cache') };
    const lease = String(await leaseSeconds({ ...environmentWith(settings), ...cache }));
    const environment = {
      ...settings,
      ...{ LEASE_SECONDS: lease, LEASE_CLAIM_SECONDS: lease, DATA_DIR: path.join(folder, 'data') },
      AGENT_SERVICE_TOKENS: token,
    };
    log(`leases of ${lease} s`);
    const descriptorOf = (name: string) => openSync(path.join(folder, `${name}.log`), 'a');

    function service(name: string, script: string, databaseUrl: string, port?: number): Supervised {
      const descriptor = descriptorOf(name);
      const PORT = port === undefined ? undefined : String(port);
      const urls = { DATABASE_URL: databaseUrl, LISTEN_DATABASE_URL: undefined };
      const env = { ...environmentWith({ ...environment, ...urls, PORT }), ...cache };
      const launch = () =>
        fork(path.join(ROOT, script), [], { env, stdio: ['ignore', descriptor, descriptor, 'ipc'], cwd: ROOT });
      return adopt(supervise({ name, launch, downMs: () => downtime.between(20, 600), onCrash }));
    }

    function adopt(supervised: Supervised): Supervised {
      parts.defer(() => supervised.end());
      return supervised;
    }

    // Not by the seed: rounds of the same seed may run side by side.
    const anyPort = createRandom(token);
    const ports: number[] = [];
    while (ports.length < options.apis) {
      const port = await freePort(anyPort);
      if (!ports.includes(port)) ports.push(port);
    }
    const urls = ports.map((port) => `http://127.0.0.1:${port}`);
    const apis = ports.map((port, index) => service(`api-${index + 1}`, 'api/main.ts', postgres.apiUrl, port));
    const jobs = Array.from({ length: options.jobs }, (_, index) =>
      service(`jobs-${index + 1}`, 'jobs/main.ts', postgres.jobsUrl),
    );
    const ready = async () => void (await Promise.all(urls.map((url) => untilReady(url, signal))));
    await ready();

    async function worker(kind: WorkerSettings['kind'], index: number): Promise<Supervised> {
      const name = `${kind}-${index + 1}`;
      const scratch = path.join(folder, name);
      await mkdir(scratch);
      const descriptor = descriptorOf(name);
      const launch = (generation: number) => {
        const workerId = `${name}.${generation}`;
        // The reference worker knows one API; half of them the one, half the other.
        const known = kind === 'chaotic' ? urls : urls.slice(index % urls.length).slice(0, 1);
        const given: WorkerSettings = { kind, workerId, urls: [...known], token, scratch, seed: `${seed}/${workerId}` };
        const argv = [path.join(import.meta.dirname, 'worker.ts'), JSON.stringify(given)];
        const env = { ...environmentWith({}), ...cache };
        const child = spawn(process.execPath, argv, { env, stdio: ['pipe', 'pipe', descriptor], cwd: ROOT });
        child.stdin?.on('error', () => {}); // it is gone
        listen(child, recorder);
        return child;
      };
      return adopt(supervise({ name, launch, downMs: () => downtime.between(20, 400), onCrash }));
    }
    const workers: Supervised[] = [];
    for (const kind of ['chaotic', 'reference', 'chat'] as const) {
      const count = options.workers[kind] ?? 0;
      for (let index = 0; index < count; index += 1) workers.push(await worker(kind, index));
    }
    return {
      ...{
        folder,
        random,
        recorder,
        postgres,
        leaseMs: Number(lease) * 1000,
        sql,
        urls,
        apis,
        jobs,
        workers,
        ready,
        log,
      },
      async stop({ keep } = { keep: false }) {
        keepFolder = keep;
        await parts.disposeAsync();
      },
    };
  } catch (error) {
    await parts.disposeAsync();
    throw error;
  }
}
