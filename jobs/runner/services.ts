import type pg from 'pg';
import type { Logger } from 'pino';
import { type Config, ConfigError } from '../../engine/config.ts';
import { markWakes } from '../../engine/db/channels.ts';
import { openDatabase } from '../../engine/db/database.ts';
import { openNotifier } from '../../engine/db/notify.ts';
import { openPlainPool } from '../../engine/db/plain_pool.ts';
import { openPool, roleUrl } from '../../engine/db/pool.ts';
import { openGit } from '../../engine/git/index.ts';
import { openIntegrations } from '../../engine/integrations/index.ts';
import { createThrottle, logThrottled } from '../../engine/log.ts';
import { openStorage } from '../../engine/storage/index.ts';
import { watchCurrencyRates } from '../currency_rates/metrics.ts';
import { DISPATCH_SLOTS } from '../dispatch/turns.ts';
import { watchInsights } from '../insights/metrics.ts';
import type { JobServices } from './handler.ts';
import { createJobMetrics, watchQueue } from './metrics.ts';

const WAITING_PER_CONNECTION = 64;
// Above the statement time-outs, which Postgres itself keeps: for a connection whose other end is gone without a word.
const RESPONSE_TIMEOUT_MS = 40_000;
/** Due work must not wait long for one row that somebody holds: it comes up again in the next round. */
const DISPATCH = { lockTimeoutMs: 1_000, statementTimeoutMs: 10_000, responseTimeoutMs: 12_000 } as const;

export type OpenServices = JobServices &
  Readonly<{
    /** The queue's own connections. */
    queuePool: pg.Pool;
    /** Of one session each, as locks and LISTEN need it. */
    directUrl: string;
    close(): Promise<void>;
  }>;

/**
 * Opens what jobs need. Nothing here waits for Postgres, which may come up later.
 * @throws ConfigError without a database URL
 */
export function openServices(config: Config, log: Logger, options = { processMetrics: false }): OpenServices {
  const { databaseUrl, listenDatabaseUrl, databasePoolSize } = config;
  if (databaseUrl === undefined) {
    throw new ConfigError('DATABASE_URL: required by node jobs/main.ts (npm start brings a database of its own)');
  }
  const role = { role: 'runner_jobs', applicationName: 'business-runner jobs' } as const;
  const directUrl = roleUrl(listenDatabaseUrl ?? databaseUrl, role);
  const notifier = openNotifier({ url: directUrl, log });

  function database(size: number, limits: Partial<typeof DISPATCH>) {
    const { responseTimeoutMs = RESPONSE_TIMEOUT_MS, ...timeouts } = limits;
    return openDatabase({
      open: () =>
        openPool(databaseUrl ?? '', { ...role, ...timeouts, size, prepare: databaseUrl === listenDatabaseUrl }),
      size,
      maxWaiting: WAITING_PER_CONNECTION * size,
      responseTimeoutMs,
      onWakes: (wakes) => markWakes(notifier, wakes),
    });
  }

  // Beside those of dispatch: a half for the queue (one of them listens), a quarter for the work of the jobs.
  const dispatchDb = database(DISPATCH_SLOTS + 1, DISPATCH);
  const db = database(Math.max(1, Math.floor(databasePoolSize / 4)), {});
  const metrics = createJobMetrics({ defaults: options.processMetrics });
  watchQueue(metrics, db);
  watchInsights(metrics.registry, db);
  if (config.currencyRates !== 'off') watchCurrencyRates(metrics.registry, db);
  const throttle = createThrottle();
  const queuePool = openPlainPool({
    url: directUrl,
    size: Math.max(2, Math.floor(databasePoolSize / 2)),
    responseTimeoutMs: RESPONSE_TIMEOUT_MS,
    lost: (error) => logThrottled(log, throttle, 'a connection of the queue is lost', error),
  });
  const storage = openStorage(config.storageUrl, config.aws);
  const integrations = openIntegrations({ config, db, registry: metrics.registry, log });
  return {
    config,
    db,
    dispatchDb,
    integrations,
    storage,
    git: openGit({ config, db, storage, log }),
    log,
    metrics,
    queuePool,
    directUrl,
    async close() {
      await integrations.close();
      await Promise.all([notifier.close(), db.end(), dispatchDb.end(), queuePool.end()]);
    },
  };
}
