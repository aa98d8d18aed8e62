import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import type { Config } from '../../engine/config.ts';
import { isUnavailable } from '../../engine/db/errors.ts';
import { isMissing, NotMigratedError, requireMigrated } from '../../engine/db/migrated.ts';
import { databaseVersion } from '../../engine/db/schema/version.ts';
import { createThrottle, logThrottled } from '../../engine/log.ts';
import { openServices } from './services.ts';
import { startWorkers, type Workers } from './workers.ts';

const AGAIN_MS = 500;
/** Of a probe, which does not wait for a stalled database. */
const PROBE_MS = 2_000;
/** Of the stop: what has not left off by then runs again elsewhere, as after a crash. */
const GRACE_MS = 4_000;

export type Jobs = Readonly<{
  /** Fulfilled when jobs are taken for the first time. */
  ready: Promise<void>;
  /** Why no jobs are taken now; undefined: they are, and the database responds. */
  notReady(): Promise<string | undefined>;
  registry: Registry;
  /** Rejects with what no waiting mends. */
  failed: Promise<never>;
  /** Within five seconds, by default. */
  stop(): Promise<void>;
}>;

export type JobsOptions = Readonly<{
  /** Also those of Node, of which a process has one set. */
  processMetrics?: boolean;
  /** How long running jobs have to leave off at a stop. */
  graceMs?: number;
}>;

/**
 * Runs jobs until it is stopped. A database that is away is waited for, here instead of in the supervisor: a process that
 * is there goes on half a second after Postgres is. So is the end of a migration under way, whose last steps are the
 * queue's rights, and the functions. A database that was never ready for this code is a fault (NotMigratedError).
 */
export function startJobs(config: Config, log: Logger, options: JobsOptions = {}): Jobs {
  const { processMetrics = false, graceMs = GRACE_MS } = options;
  const services = openServices(config, log, { processMetrics });
  const throttle = createThrottle();
  const stopping = new AbortController();
  const first = Promise.withResolvers<void>();
  let workers: Workers | undefined;
  let hasRun = false;
  let isTaking = false;

  async function runOnce(): Promise<void> {
    try {
      await requireMigrated(services.db);
      workers = await startWorkers(services);
    } catch (error) {
      if (error instanceof NotMigratedError && !hasRun) throw error;
      const migrated = !isMissing(error) && !(error instanceof NotMigratedError);
      if (migrated && !isUnavailable(error)) throw error;
      const reason = migrated ? 'the database is away' : 'the database is not migrated (npm run migrate)';
      logThrottled(log, throttle, `jobs cannot be taken yet: ${reason}`, error);
      return;
    }
    hasRun = true;
    first.resolve();
    isTaking = true;
    if (stopping.signal.aborted) await workers.stop();
    await workers.ended;
    isTaking = false;
    if (!stopping.signal.aborted) log.error('the workers ended by themselves and are started again');
  }

  async function runUntilStopped(): Promise<void> {
    while (!stopping.signal.aborted) {
      await runOnce();
      await delay(AGAIN_MS, undefined, { signal: stopping.signal }).catch(() => undefined);
    }
  }

  const running = runUntilStopped();
  const failed = Promise.withResolvers<never>();
  running.catch(failed.reject);
  failed.promise.catch(() => undefined);
  let stopped: Promise<void> | undefined;
  async function stop(): Promise<void> {
    stopping.abort();
    const done = new AbortController();
    const late = delay(graceMs, undefined, { signal: done.signal }).catch(() => undefined);
    const left = Promise.all([workers?.stop(), running]).catch(() => undefined);
    await Promise.race([left, late]);
    done.abort();
    await services.close();
  }

  async function notReady(): Promise<string | undefined> {
    if (!isTaking || stopping.signal.aborted) return 'No jobs are taken: the log says why.';
    const responds = databaseVersion(services.dispatchDb).then(
      () => true,
      () => false,
    );
    const late = new AbortController();
    const inTime = await Promise.race([responds, delay(PROBE_MS, false, { signal: late.signal }).catch(() => false)]);
    late.abort();
    return inTime ? undefined : 'The database does not respond.';
  }

  return {
    ready: first.promise,
    notReady,
    registry: services.metrics.registry,
    failed: failed.promise,
    stop: () => (stopped ??= stop()),
  };
}
