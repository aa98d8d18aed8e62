import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { z } from 'zod';
import { call } from '../../engine/db/call.ts';
import type { Database } from '../../engine/db/database.ts';
import { cachedRead } from '../../engine/monitoring/cached_read.ts';

export type Metrics = Readonly<{
  registry: Registry;
  httpDuration: Histogram<'method' | 'route' | 'status'>;
  runsEnded: Counter<'call' | 'outcome'>;
  pullWaiters: Gauge;
  pullClaims: Counter;
  pullReleases: Counter;
  notifications: Counter<'result'>;
  chatStreams: Gauge;
  chatRevisions: Counter<'result'>;
  chatStreamsCut: Counter;
}>;

const totalsSchema = z.record(z.string(), z.object({ ready: z.int(), held: z.int(), oldestSeconds: z.number() }));
const openCountsSchema = z.record(z.string(), z.int());

/** Shows how busy the database pool is, how much work waits and is held, and what people are asked. */
export function watchDatabase(metrics: Metrics, db: Database): void {
  const registers = [metrics.registry];
  const totals = cachedRead(() => call(db, 'dispatch_totals', {}, totalsSchema), {});
  const openCounts = cachedRead(() => call(db, 'human_inbox_open_counts', {}, openCountsSchema), {});
  const requests: Gauge<'kind' | 'state'> = new Gauge({
    name: 'runner_run_requests',
    help: 'Run requests that wait to be pulled (ready) and are leased by workers (held), over all organizations.',
    labelNames: ['kind', 'state'],
    registers,
    async collect() {
      requests.reset();
      for (const [kind, { ready, held }] of Object.entries(await totals())) {
        requests.set({ kind, state: 'ready' }, ready);
        requests.set({ kind, state: 'held' }, held);
      }
    },
  });
  const oldest: Gauge<'kind'> = new Gauge({
    name: 'runner_run_requests_oldest_seconds',
    help: 'How long the oldest run request that workers may pull has waited, over all organizations that are not suspended; 0 where none waits.',
    labelNames: ['kind'],
    registers,
    async collect() {
      oldest.reset();
      for (const [kind, { oldestSeconds }] of Object.entries(await totals())) oldest.set({ kind }, oldestSeconds);
    },
  });
  const inbox: Gauge<'kind'> = new Gauge({
    name: 'runner_inbox_items_open',
    help: 'Open inbox items, over all organizations; 10000 stands for more.',
    labelNames: ['kind'],
    registers,
    async collect() {
      inbox.reset();
      for (const [kind, count] of Object.entries(await openCounts())) inbox.set({ kind }, count);
    },
  });
  const gauge: Gauge<'state'> = new Gauge({
    name: 'runner_database_statements',
    help: 'Statements and transactions that run, and that wait for a connection.',
    labelNames: ['state'],
    registers,
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
    runsEnded: new Counter({
      name: 'runner_runs_ended_total',
      help: 'Runs that workers ended by complete or fail, by the status that the run has then; one that was sent twice counts twice. Leases that end are runner_lease_expiries_total of the jobs.',
      labelNames: ['call', 'outcome'],
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
