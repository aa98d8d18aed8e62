import type { Logger } from 'pino';
import { acceptanceEvaluator, type EvaluateAcceptance } from '../engine/acceptance/index.ts';
import { type Config, ConfigError } from '../engine/config.ts';
import { CHAT_CHANNEL, markWakes, PULL_CHANNEL, STOP_CHANNEL } from '../engine/db/channels.ts';
import { type Database, openDatabase } from '../engine/db/database.ts';
import type { Connections } from '../engine/db/driver.ts';
import { type Listener, openListener } from '../engine/db/listen.ts';
import { type Notifier, openNotifier } from '../engine/db/notify.ts';
import { openPool, roleUrl } from '../engine/db/pool.ts';
import { type Git, openGit } from '../engine/git/index.ts';
import { type Integrations, openIntegrations } from '../engine/integrations/index.ts';
import { openStorage, type Storage } from '../engine/storage/index.ts';
import { type Admin, openAdmin } from './admin/instance.ts';
import { type ChatStreams, createChatStreams } from './chats/events/hub.ts';
import { createMetrics, type Metrics, watchDatabase } from './http/metrics.ts';
import { createPullBrokers, type PullBrokers } from './run_requests/pull_broker.ts';
import { createRunStops, type RunStops } from './runs/run_stops.ts';

/** All that the API needs from outside a request: made once, handed to every handler. */
export type Services = Readonly<{
  config: Config;
  db: Database;
  storage: Storage;
  evaluateAcceptance: EvaluateAcceptance;
  integrations: Integrations;
  git: Git;
  listener: Listener;
  notifier: Notifier;
  brokers: PullBrokers;
  chatStreams: ChatStreams;
  runStops: RunStops;
  admin: Admin;
  log: Logger;
  metrics: Metrics;
}>;

// Waiting statements a connection: beyond it a stalled Postgres would only fill the memory with requests.
const WAITING_PER_CONNECTION = 64;
// Above the statement time-out, which Postgres itself keeps.
const RESPONSE_TIMEOUT_MS = 40_000;

export type ServicesOptions = Readonly<{
  processMetrics: boolean;
  /** Where the connections of requests come from; as of the driver. */
  connections?: Connections;
}>;

/**
 * Opens what the API needs. Nothing here waits for Postgres, which may come up later.
 * @throws ConfigError without a database URL
 */
export function openServices(config: Config, log: Logger, options: ServicesOptions): Services {
  const { databaseUrl, listenDatabaseUrl } = config;
  if (databaseUrl === undefined) {
    throw new ConfigError('DATABASE_URL: required by node api/main.ts (npm start brings a database of its own)');
  }
  const metrics = createMetrics({ defaults: options.processMetrics });
  const role = { role: 'runner_api', applicationName: 'business-runner api' } as const;
  const direct = roleUrl(listenDatabaseUrl ?? databaseUrl, role);
  const onWakes = (wakes: string) => markWakes(notifier, wakes);
  const db = openDatabase({
    open: () =>
      openPool(databaseUrl, {
        ...role,
        size: config.databasePoolSize,
        prepare: databaseUrl === listenDatabaseUrl,
        ...(options.connections ? { connections: options.connections } : {}),
      }),
    size: config.databasePoolSize,
    maxWaiting: WAITING_PER_CONNECTION * config.databasePoolSize,
    responseTimeoutMs: RESPONSE_TIMEOUT_MS,
    onWakes,
  });
  watchDatabase(metrics, db);
  const listener = openListener({ url: direct, log });
  const sending = openNotifier({ url: direct, log, onSent: (result) => metrics.notifications.inc({ result }) });
  const chatStreams = createChatStreams({ db, listener, notifier: sending, metrics, log });
  const brokers = createPullBrokers({
    db,
    listener,
    notifier: sending,
    metrics,
    log,
    claimSeconds: config.leaseClaimSeconds,
  });
  const runStops = createRunStops({ listener, notifier: sending });
  // Whoever waits on this process is served at once, without the way through Postgres.
  const notifier: Notifier = {
    ...sending,
    mark(channel, payload = '') {
      sending.mark(channel, payload);
      if (channel === CHAT_CHANNEL) chatStreams.changed(payload);
      if (channel === PULL_CHANNEL) brokers.wake(payload);
      if (channel === STOP_CHANNEL) runStops.wake(payload);
    },
  };
  const storage = openStorage(config.storageUrl, config.aws);
  const evaluateAcceptance = acceptanceEvaluator({ storage });
  const integrations = openIntegrations({ config, db, registry: metrics.registry, log });
  const git = openGit({ config, db, storage, log });
  const admin = openAdmin({ config, url: config.adminDatabaseUrl ?? databaseUrl, onWakes, log });
  return {
    config,
    db,
    storage,
    evaluateAcceptance,
    integrations,
    git,
    listener,
    notifier,
    brokers,
    chatStreams,
    runStops,
    admin,
    log,
    metrics,
  };
}

/** Ends what would stay open by itself: waits and event streams. Their clients go elsewhere. */
export async function endWaits(services: Services): Promise<void> {
  services.runStops.close();
  await Promise.all([services.brokers.close(), services.chatStreams.close()]);
}

/** Closes all of it; nothing may be using it any more, save for waits, which end. */
export async function closeServices(services: Services): Promise<void> {
  await endWaits(services);
  await Promise.all([services.notifier.close(), services.listener.close(), services.integrations.close()]);
  await Promise.all([services.db.end(), services.admin.close()]);
}
