import { type Config, ConfigError, readConfig, settingsHelp } from '../engine/config.ts';
import { openDatabase } from '../engine/db/database.ts';
import { openListener } from '../engine/db/listen.ts';
import { openNotifier } from '../engine/db/notify.ts';
import { openPool, roleUrl } from '../engine/db/pool.ts';
import { createLogger } from '../engine/log.ts';
import { openStorage } from '../engine/storage/index.ts';
import { createApp } from './app.ts';
import { createMetrics } from './http/metrics.ts';
import { createPullBrokers } from './pull_broker.ts';
import { closeServer, createHttpServer, listen } from './server.ts';
import type { Services } from './services.ts';

const GRACE_MS = 5_000;
const EX_CONFIG = 78;

function required(url: string | undefined): string {
  if (url === undefined)
    throw new ConfigError('DATABASE_URL: required by node api/main.ts (npm start brings a database)');
  return url;
}

/** Opens what the API needs; nothing here waits for Postgres, which may come up later. */
export function openServices(config: Config): Services {
  const log = createLogger(config.logLevel, 'api');
  const metrics = createMetrics({ defaults: true });
  const role = { role: 'runner_api', applicationName: 'business-runner api' } as const;
  const url = required(config.databaseUrl);
  const direct = roleUrl(required(config.listenDatabaseUrl), role);
  const db = openDatabase({
    open: () => openPool(url, { ...role, size: config.databasePoolSize }),
    maxWaiting: 64 * config.databasePoolSize,
    answerTimeoutMs: 40_000,
  });
  const listener = openListener({ url: direct, log });
  const notifier = openNotifier({ url: direct, log, onSent: (result) => metrics.notifications.inc({ result }) });
  const storage = openStorage(config.storageUrl);
  const brokers = createPullBrokers({ db, listener, notifier, metrics, log, claimSeconds: config.leaseClaimSeconds });
  return { config, db, storage, listener, notifier, brokers, log, metrics };
}

/** Waiters are answered first, so that their connections can end with the others. */
export async function closeServices(services: Services): Promise<void> {
  await services.brokers.close();
  await services.notifier.close();
  await services.listener.close();
  await services.db.end();
}

async function main(): Promise<void> {
  const config = readConfig();
  const services = openServices(config);
  const { log } = services;
  const server = createHttpServer(createApp(services));

  let stopping = false;
  async function stop(reason: string): Promise<void> {
    if (stopping) return;
    stopping = true;
    log.info({ reason }, 'stopping');
    await Promise.all([closeServer(server, GRACE_MS), services.brokers.close()]);
    await closeServices(services);
    process.exit(0);
  }
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void stop(signal));
  // The parent that supervises this process died: nobody else would stop it.
  process.on('disconnect', () => void stop('the parent process is gone'));

  const url = await listen(server, config.host, config.port);
  log.info({ url, ownerAuth: config.ownerAuth.mode }, 'the API listens');
  process.send?.({ type: 'ready', url });
}

if (import.meta.main) {
  if (process.argv.includes('--help')) {
    process.stdout.write(`node api/main.ts\n\n${settingsHelp()}`);
  } else {
    main().catch((error: unknown) => {
      const known = error instanceof ConfigError;
      const inUse = error instanceof Error && 'code' in error && error.code === 'EADDRINUSE';
      process.stderr.write(`${known || inUse ? error.message : error instanceof Error ? error.stack : error}\n`);
      process.exit(known ? EX_CONFIG : 1);
    });
  }
}
