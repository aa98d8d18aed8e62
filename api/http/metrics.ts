import { setTimeout as delay } from 'node:timers/promises';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { z } from 'zod';
import { call } from '../../engine/db/call.ts';
import type { Database } from '../../engine/db/database.ts';

export type Metrics = Readonly<{
  registry: Registry;
  httpDuration: Histogram<'method' | 'route' | 'status'>;
  pullWaiters: Gauge;
  pullClaims: Counter;
  pullReleases: Counter;
  notifications: Counter<'result'>;
  chatStreams: Gauge;
  chatRevisions: Counter<'result'>;
  chatStreamsCut: Counter;
}>;

const totalsSchema = z.record(z.string(), z.object({ ready: z.int(), held: z.int() }));
/** A scrape does not wait for a stalled database. */
const TOTALS_TIMEOUT_MS = 2_000;

/** Shows how busy the database pool is, and how much work waits and is held; asked for when the metrics are. */
export function watchDatabase(metrics: Metrics, db: Database): void {
  const requests: Gauge<'kind' | 'state'> = new Gauge({
    name: 'runner_run_requests',
    help: 'Run requests that wait to be pulled (ready) and are leased by workers (held), over all organizations.',
    labelNames: ['kind', 'state'],
    registers: [metrics.registry],
    async collect() {
      requests.reset();
      const totals = await Promise.race([
        call(db, 'dispatch_totals', {}, totalsSchema).catch(() => ({})),
        delay(TOTALS_TIMEOUT_MS, {}, { ref: false }),
      ]);
      for (const [kind, { ready, held }] of Object.entries(totals)) {
        requests.set({ kind, state: 'ready' }, ready);
        requests.set({ kind, state: 'held' }, held);
      }
    },
  });
  const gauge: Gauge<'state'> = new Gauge({
    name: 'runner_database_statements',
    help: 'Statements and transactions that run, and that wait for a connection.',
    labelNames: ['state'],
    registers: [metrics.registry],
    collect() {
      for (const [state, count] of Object.entries(db.load())) gauge.set({ state }, count);
    },
  });
}

/** All metrics of the process, in a registry of their own so that tests can have several. */
export function createMetrics(options: { defaults: boolean }): Metrics {
  const registry = new Registry();
  if (options.defaults) collectDefaultMetrics({ register: registry });
  const registers = [registry];
  return {
    registry,
    httpDuration: new Histogram({
      name: 'http_request_duration_seconds',
      help: 'Time from the request line to the end of the response, by route template.',
      labelNames: ['method', 'route', 'status'],
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
      registers,
    }),
    pullWaiters: new Gauge({
      name: 'runner_pull_waiters',
      help: 'Workers that wait for a run request in this process.',
      registers,
    }),
    pullClaims: new Counter({
      name: 'runner_pull_claims_total',
      help: 'Run requests handed to workers by this process.',
      registers,
    }),
    pullReleases: new Counter({
      name: 'runner_pull_releases_total',
      help: 'Claims given back because their worker had gone.',
      registers,
    }),
    notifications: new Counter({
      name: 'runner_notifications_total',
      help: 'Notification batches after commits.',
      labelNames: ['result'],
      registers,
    }),
    chatStreams: new Gauge({
      name: 'runner_chat_streams',
      help: 'Open event streams of chats in this process.',
      registers,
    }),
    chatRevisions: new Counter({
      name: 'runner_chat_stream_revisions_total',
      help: 'Revisions sent to event streams, and skipped because a later one stood in for them.',
      labelNames: ['result'],
      registers,
    }),
    chatStreamsCut: new Counter({
      name: 'runner_chat_streams_cut_total',
      help: 'Event streams cut off because their client did not read.',
      registers,
    }),
  };
}
