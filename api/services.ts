import type { Logger } from 'pino';
import type { Config } from '../engine/config.ts';
import type { Database } from '../engine/db/database.ts';
import type { Listener } from '../engine/db/listen.ts';
import type { Notifier } from '../engine/db/notify.ts';
import type { Storage } from '../engine/storage/index.ts';
import type { Metrics } from './http/metrics.ts';
import type { PullBrokers } from './pull_broker.ts';

/** All that the API needs from outside a request: made once in main.ts, handed to every handler. */
export type Services = Readonly<{
  config: Config;
  db: Database;
  storage: Storage;
  listener: Listener;
  notifier: Notifier;
  brokers: PullBrokers;
  log: Logger;
  metrics: Metrics;
}>;
