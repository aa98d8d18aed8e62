import type { WorkerEvents } from 'graphile-worker';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { sql } from 'slonik';
import { z } from 'zod';
import type { Database } from '../../engine/db/database.ts';
import { cachedRead } from '../../engine/monitoring/cached_read.ts';
import { isJobName } from '../catalog.ts';

export type JobMetrics = Readonly<{
  registry: Registry;
  jobsEnded: Counter<'task' | 'outcome'>;
  jobDelay: Histogram<'task'>;
  leaseExpiries: Counter<'outcome'>;
  insightUnits: Counter<'dataset' | 'mode' | 'outcome'>;
  insightFacts: Counter<'dataset' | 'mode'>;
  insightCompactions: Counter<'outcome'>;
}>;

/** All metrics of the process, in a registry of their own so that tests can have several. */
export function createJobMetrics(options: { defaults: boolean }): JobMetrics {
  const registry = new Registry();
  if (options.defaults) collectDefaultMetrics({ register: registry });
  const registers = [registry];
  return {
    registry,
    jobsEnded: new Counter({
      name: 'runner_jobs_ended_total',
      help: 'Jobs that ended in this process: done, failed (and run again later), or given_up.',
      labelNames: ['task', 'outcome'],
      registers,
    }),
    jobDelay: new Histogram({
      name: 'runner_job_delay_seconds',
      help: 'Time from when a job was due to its start, of the jobs of this process.',
      labelNames: ['task'],
      buckets: [0.01, 0.1, 1, 5, 15, 60, 300, 1_800],
      registers,
    }),
    leaseExpiries: new Counter({
      name: 'runner_lease_expiries_total',
      help: 'Leases that ended without a heartbeat, found by this process, by what became of the run request.',
      labelNames: ['outcome'],
      registers,
    }),
    insightUnits: new Counter({
      name: 'runner_insight_units_total',
      help: 'Units of collecting of this process, by how they ended: committed, discarded, failed, released or late.',
      labelNames: ['dataset', 'mode', 'outcome'],
      registers,
    }),
    insightFacts: new Counter({
      name: 'runner_insight_facts_total',
      help: 'Facts that were new or changed, collected by this process.',
      labelNames: ['dataset', 'mode'],
      registers,
    }),
    insightCompactions: new Counter({
      name: 'runner_insight_compactions_total',
      help: 'Months whose files of facts this process went to merge, by what came of it: merged, overtaken, late, or why not.',
      labelNames: ['outcome'],
      registers,
    }),
  };
}

/** A job of another version counts as one of no name: labels stay few. */
const labelOf = (task: string): string => (isJobName(task) ? task : 'other');

/** Counts the jobs that this process takes. */
export function countJobs({ jobsEnded, jobDelay }: JobMetrics, events: WorkerEvents): void {
  events.on('job:start', ({ job }) => {
    const delayMs = Math.max(0, Date.now() - job.run_at.getTime());
    jobDelay.observe({ task: labelOf(job.task_identifier) }, delayMs / 1_000);
  });
  events.on('job:success', ({ job }) => jobsEnded.inc({ task: labelOf(job.task_identifier), outcome: 'done' }));
  events.on('job:error', ({ job }) => {
    const outcome = job.attempts >= job.max_attempts ? 'given_up' : 'failed';
    jobsEnded.inc({ task: labelOf(job.task_identifier), outcome });
  });
}

const waitingSchema = z.object({ task: z.string(), waiting: z.int(), oldest: z.number(), given_up: z.int() });

/** Shows what waits in the queue; asked for when the metrics are. */
export function watchQueue({ registry }: JobMetrics, db: Database): void {
  const read = cachedRead(
    () =>
      db.any(sql.type(waitingSchema)`
        select task_identifier as task,
          count(*) filter (where is_due)::int as waiting,
          coalesce(extract(epoch from now() - min(run_at) filter (where is_due)), 0)::float8 as oldest,
          count(*) filter (where is_over)::int as given_up
        from (
          select task_identifier, run_at, attempts >= max_attempts as is_over,
            attempts < max_attempts and run_at <= now() and locked_at is null as is_due
          from graphile_worker.jobs limit 10000) j
        group by task_identifier`),
    [],
  );
  const gauge = (name: string, help: string, value: (row: z.output<typeof waitingSchema>) => number) => {
    const metric: Gauge<'task'> = new Gauge({
      name,
      help: `${help} In the whole queue, of whose jobs 10,000 are looked at.`,
      labelNames: ['task'],
      registers: [registry],
      async collect() {
        metric.reset();
        for (const row of await read()) metric.inc({ task: labelOf(row.task) }, value(row));
      },
    });
  };
  gauge('runner_jobs_waiting', 'Jobs that are due and not taken.', (row) => row.waiting);
  gauge('runner_jobs_oldest_seconds', 'How long the oldest job that is due has waited.', (row) => row.oldest);
  gauge('runner_jobs_given_up', 'Jobs that failed for good and stay until somebody looks.', (row) => row.given_up);
}
