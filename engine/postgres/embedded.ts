import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer, Socket } from 'node:net';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { forgetLibpq } from '../config.ts';
import { acquireLock } from '../process/lock.ts';
import { type Account, isRoot, serviceAccount } from './account.ts';
import { type Binaries, binariesFor, bundledBinaries } from './binaries.ts';
import { asAccount, checkCluster, clusterExists, makeCluster, SUPERUSER, setPassword } from './cluster.ts';
import { fullDisk, PostgresError } from './error.ts';
import { stopOrphan } from './orphan.ts';

/** Recovery after a crash may have much to read. */
const READY_WITHIN_MS = 300_000;
/** How long what a killed Postgres left behind (shared memory, pid file, port) may stand in the way. */
const LEFTOVERS_GO_WITHIN_MS = 5_000;
/** At least so many tries, also where the machine was held up for that long. */
const LEFTOVERS_TRIES = 10;
const LEFTOVERS = /pre-existing shared memory block|lock file ".*" already exists|could not bind/;
const HOST = '127.0.0.1';

/** For a laptop or a small server: everything else is Postgres's own default. */
const defaults = {
  max_connections: '200',
  shared_buffers: '256MB',
  effective_cache_size: '1GB',
  work_mem: '8MB',
  maintenance_work_mem: '128MB',
  max_wal_size: '2GB',
  random_page_cost: '1.1',
  // The statements are short: compiling one takes longer than running it.
  jit: 'off',
  autovacuum_naptime: '15s',
  log_checkpoints: 'off',
  // Refused statements (they rank below LOG) belong to the log of whoever sent them.
  log_min_messages: 'log',
  timezone: 'UTC',
};

/** For a database that is thrown away: nothing has to survive a crash of the machine. */
export const throwAway = {
  fsync: 'off',
  synchronous_commit: 'off',
  full_page_writes: 'off',
  wal_level: 'minimal',
  max_wal_senders: '0',
  shared_buffers: '128MB',
  max_connections: '300',
  // Statistics that change by themselves would change plans, and which databases a next file may take.
  autovacuum: 'off',
} as const;

export type PostgresOptions = Readonly<{
  /** The folder of the cluster, absolute; made when it is not there. Its parent must exist. */
  cluster: string;
  /** The superuser's password, set when the cluster is made. */
  password: string;
  /** Sets the password of an existing cluster too: the one it had is lost. */
  resetPassword?: boolean;
  /** Default: those that npm installed. */
  binaries?: Binaries;
  /** Whom to run as when we are root; default: postgres, else nobody. */
  account?: Account | undefined;
  /** Default: the one that this cluster had last, or else a free one. */
  port?: number;
  settings?: Readonly<Record<string, string>>;
  /** Gets every line that Postgres logs. */
  log?: (line: string) => void;
  /** Aborted: a start that is under way is stopped. */
  signal?: AbortSignal;
}>;

export type RunningPostgres = Readonly<{
  /** Of the superuser and the database `postgres`. */
  url: string;
  port: number;
  pid: number;
  version: string;
  /** Fulfilled when Postgres has ended, for whatever reason. */
  ended: Promise<void>;
  /** Ends it: open transactions are rolled back, everything is flushed; after `graceMs` (8000) without. Again: harmless. */
  stop: (graceMs?: number) => Promise<void>;
  /** Lets our process end while Postgres runs; it is stopped then. */
  unref: () => void;
}>;

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    await once(server.listen(port, HOST), 'listening');
    return true;
  } catch {
    return false;
  } finally {
    server.close();
  }
}

/**
 * Below the ports that systems give to outgoing connections: one of those could take ours while Postgres restarts,
 * our own reconnecting clients first of all.
 */
async function freePort(): Promise<number> {
  for (;;) {
    const port = 15_000 + Math.floor(Math.random() * 15_000);
    if (await isFree(port)) return port;
  }
}

/**
 * The port that this cluster had last, which people wrote down, unless it is in use: Postgres keeps the words it was started with.
 */
async function lastPort(cluster: string): Promise<number | undefined> {
  const words = await readFile(path.join(cluster, 'postmaster.opts'), 'utf8').catch(() => '');
  const port = Number(/"port=(\d+)"/.exec(words)?.[1]);
  return port > 0 && (await isFree(port)) ? port : undefined;
}

/**
 * Stops Postgres when we die without stopping it: the pipe closes, however we died. Undefined where the system has no process
 * to spare: a Postgres that we leave behind then is ended by our next start.
 */
function guard(pid: number): ChildProcess | undefined {
  try {
    const child = spawn('/bin/sh', ['-c', 'read -r _; kill -INT "$0"', String(pid)], {
      stdio: ['pipe', 'ignore', 'ignore'],
      detached: true,
      cwd: '/',
    });
    child.on('error', () => {});
    child.unref();
    if (child.stdin instanceof Socket) child.stdin.on('error', () => {}).unref();
    return child;
  } catch {
    return undefined;
  }
}

class LaunchError extends PostgresError {
  override name = 'LaunchError';
}

type Launch = Readonly<{ child: ChildProcess; ended: Promise<void> }>;

/** One try: resolves when Postgres accepts connections. */
async function launch(options: PostgresOptions, binaries: Binaries, port: number): Promise<Launch> {
  const settings = {
    ...defaults,
    ...options.settings,
    listen_addresses: HOST,
    unix_socket_directories: '',
    port: String(port),
  };
  const child = spawn(
    path.join(binaries.bin, 'postgres'),
    ['-D', options.cluster, ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])],
    // A group of its own: Ctrl-C must not reach it before the API has let go.
    { ...asAccount(options.account), stdio: ['ignore', 'ignore', 'pipe'], detached: true },
  );
  const watcher = child.pid === undefined ? undefined : guard(child.pid);
  const lastLines: string[] = [];
  const ended = new Promise<void>((resolve) => {
    child.on('error', (error) => {
      lastLines.push(error.message);
      // It is also told of a signal that could not be sent.
      if (child.pid === undefined) resolve();
    });
    child.once('exit', () => resolve());
  }).then(() => {
    watcher?.kill('SIGKILL');
  });
  const abort = () => child.kill('SIGINT');
  options.signal?.addEventListener('abort', abort, { once: true });
  try {
    await new Promise<void>((resolve, reject) => {
      const late = setTimeout(() => {
        child.kill('SIGINT');
        lastLines.push(`not ready after ${READY_WITHIN_MS / 1000} s`);
      }, READY_WITHIN_MS);
      // A process that could not be made has no streams.
      if (child.pid !== undefined) {
        const lines = createInterface({ input: child.stderr });
        lines.on('error', () => {});
        lines.on('line', (line) => {
          options.log?.(line);
          if (lastLines.push(line) > 20) lastLines.shift();
          if (line.includes('ready to accept connections')) {
            clearTimeout(late);
            resolve();
          }
        });
      }
      ended.then(() => {
        clearTimeout(late);
        // What it wrote last may still be on its way.
        setImmediate(() => {
          const last = lastLines.slice(-5);
          reject(new LaunchError(`Postgres did not start: ${fullDisk(last) ?? last.join(' | ')}`));
        });
      });
    });
  } finally {
    options.signal?.removeEventListener('abort', abort);
  }
  return { child, ended };
}

async function launchUntilReady(options: PostgresOptions, binaries: Binaries): Promise<Launch & { port: number }> {
  const deadline = Date.now() + LEFTOVERS_GO_WITHIN_MS;
  for (let tries = 1; ; tries += 1) {
    options.signal?.throwIfAborted();
    const port = options.port ?? (await lastPort(options.cluster)) ?? (await freePort());
    try {
      return { ...(await launch(options, binaries, port)), port };
    } catch (error) {
      if (!(error instanceof LaunchError) || !LEFTOVERS.test(error.message)) throw error;
      if (tries >= LEFTOVERS_TRIES && Date.now() > deadline) throw error;
      await sleep(100);
    }
  }
}

async function endChild(child: ChildProcess, ended: Promise<void>, graceMs: number): Promise<void> {
  // Fast shutdown, then without a checkpoint, then none at all: the next start recovers.
  for (const signal of ['SIGINT', 'SIGQUIT', 'SIGKILL'] as const) {
    child.kill(signal);
    const waiting = new AbortController();
    await Promise.race([
      ended,
      sleep(signal === 'SIGINT' ? graceMs : 2_000, undefined, { signal: waiting.signal }).catch(() => {}),
    ]);
    waiting.abort();
    if (child.exitCode !== null || child.signalCode !== null) return;
  }
}

/**
 * Starts Postgres on the cluster, which is made when it is not there; on loopback, with password authentication and no
 * socket. A Postgres that an earlier, killed process left running on it is ended first. What libpq's environment says is
 * meant for other databases, and is taken out of ours.
 * @throws LockedError when a live process runs this cluster.
 */
export async function startPostgres(options: PostgresOptions): Promise<RunningPostgres> {
  const { cluster, password } = options;
  forgetLibpq();
  const account = options.account ?? (isRoot() ? serviceAccount() : undefined);
  const binaries = options.binaries ?? (await binariesFor(account, await bundledBinaries()));
  const release = acquireLock(`${cluster}.lock`);
  try {
    await stopOrphan(cluster);
    const existed = clusterExists(cluster);
    if (!existed) {
      await makeCluster({ binaries, cluster, password, account, durable: options.settings?.['fsync'] !== 'off' });
    }
    await checkCluster(cluster, binaries);
    if (existed && options.resetPassword) await setPassword(binaries, cluster, account, password);
    const { child, ended, port } = await launchUntilReady({ ...options, account }, binaries);
    const released = ended.then(release);
    return {
      url: `postgres://${SUPERUSER}:${encodeURIComponent(password)}@${HOST}:${port}/postgres`,
      port,
      pid: child.pid ?? 0,
      version: binaries.version,
      ended: released,
      stop: async (graceMs = 8_000) => {
        await endChild(child, released, graceMs);
        await released;
      },
      unref: () => {
        child.unref();
        if (child.stderr instanceof Socket) child.stderr.unref();
      },
    };
  } catch (error) {
    release();
    throw error;
  }
}
