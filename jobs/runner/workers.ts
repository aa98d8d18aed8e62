import { EventEmitter } from 'node:events';
import {
  type Job,
  parseCronItems,
  type TaskList as QueueTaskList,
  type Runner,
  run as runQueue,
  type WorkerEvents,
} from 'graphile-worker';
import type pg from 'pg';
import { actionsClean } from '../actions/clean.ts';
import { actionFilesClean } from '../actions/clean_files.ts';
import { actionsExecute } from '../actions/execute.ts';
import { catalog, isJobName, type JobName, parsePayload } from '../catalog.ts';
import { chatsClean } from '../chats/clean.ts';
import { contextHealthAssess } from '../context/assess_health.ts';
import { contextFilesClean } from '../context/clean_files.ts';
import { contextSourcesIngest } from '../context/ingest_sources.ts';
import { contextHealthSchedule } from '../context/schedule_health.ts';
import { COLLECT, crontab, DISPATCH } from '../crontab.ts';
import { currencyRatesCollect } from '../currency_rates/collect.ts';
import { dispatch } from '../dispatch/dispatch.ts';
import { idempotencyKeysClean } from '../idempotency_keys/clean.ts';
import { insightsClean } from '../insights/clean.ts';
import { insightFilesClean } from '../insights/clean_files.ts';
import { insightUnitsClean } from '../insights/clean_units.ts';
import { insightsCollect } from '../insights/collect.ts';
import { insightsCompact } from '../insights/compact.ts';
import { integrationsCheck } from '../integrations/check.ts';
import { integrationsClean } from '../integrations/clean.ts';
import { integrationsRefresh } from '../integrations/refresh.ts';
import { messagesIndexChunks } from '../messages/index_chunks.ts';
import { onboardingsResearch } from '../onboardings/research.ts';
import { organizationsDelete } from '../organizations/delete.ts';
import { rateLimitsClean } from '../rate_limits/clean.ts';
import { storageClean } from '../storage/clean.ts';
import { jobsCheck } from './check.ts';
import { firstLook } from './first_poll.ts';
import type { AddJob, JobHandler } from './handler.ts';
import { logJobs, queueLogger } from './log.ts';
import { countJobs } from './metrics.ts';
import { type LivenessLock, openLivenessLock } from './recovery.ts';
import { watchRevision } from './revision.ts';
import type { OpenServices } from './services.ts';
import { startTicks } from './ticks.ts';

const tasks: Readonly<{ [N in JobName]: JobHandler<N> }> = {
  dispatch,
  actions__execute: actionsExecute,
  organizations__delete: organizationsDelete,
  actions__clean: actionsClean,
  actions__clean_files: actionFilesClean,
  chats__clean: chatsClean,
  messages__index_chunks: messagesIndexChunks,
  idempotency_keys__clean: idempotencyKeysClean,
  integrations__check: integrationsCheck,
  integrations__refresh: integrationsRefresh,
  integrations__clean: integrationsClean,
  insights__collect: insightsCollect,
  rate_limits__clean: rateLimitsClean,
  currency_rates__collect: currencyRatesCollect,
  storage__clean: storageClean,
  runner__check: jobsCheck,
  onboardings__research: onboardingsResearch,
  context__ingest_sources: contextSourcesIngest,
  context__assess_health: contextHealthAssess,
  context__schedule_health: contextHealthSchedule,
  context__clean_files: contextFilesClean,
  insights__compact: insightsCompact,
  insights__clean: insightsClean,
  insights__clean_units: insightUnitsClean,
  insights__clean_files: insightFilesClean,
};

/** Adds a job; one with the same key that waits is replaced, one that runs is left to end. */
export function jobAdder(pool: pg.Pool): AddJob {
  return (name, payload, { key, priority, runAt }) =>
    pool.query('select graphile_worker.add_job($1, payload => $2::json, job_key => $3, priority => $4, run_at => $5)', [
      name,
      JSON.stringify(payload),
      key,
      priority ?? null,
      runAt ?? null,
    ]);
}

/**
 * Adds a job that left off again, for another process or the next start. Not where it was replaced while it ran (then it has lost
 * its key): the old payload would take the place of the new one.
 */
async function addAgain(pool: pg.Pool, job: Pick<Job, 'id' | 'priority'>, name: JobName, payload: unknown) {
  await pool.query(
    `with own as materialized (
       select key from graphile_worker._private_jobs where id = $1 and key is not null for update)
     select graphile_worker.add_job($2, payload => $3::json, job_key => own.key, priority => $4) from own`,
    [job.id, name, JSON.stringify(payload), job.priority],
  );
}

/** The tasks as the queue calls them: payload checked, context added, what is unfinished added again. */
function taskList(services: OpenServices, signal: AbortSignal): QueueTaskList {
  const addJob = jobAdder(services.queuePool);
  function register<N extends JobName>(name: N): QueueTaskList[string] {
    return async (given, { job }) => {
      const payload = parsePayload(name, given);
      const task: JobHandler<N> = tasks[name];
      const outcome = await task(payload, {
        ...services,
        jobId: String(job.id),
        attempt: job.attempts,
        addJob,
        signal,
      });
      if (outcome === 'unfinished') await addAgain(services.queuePool, job, name, payload);
    };
  }
  return Object.fromEntries(
    Object.keys(catalog)
      .filter(isJobName)
      .map((name) => [name, register(name)]),
  );
}

export type Workers = Readonly<{
  /** Fulfilled when they have ended, for whatever reason; what it was is in the log. */
  ended: Promise<void>;
  /** Takes no new jobs and lets the running ones leave off. */
  stop(): Promise<void>;
}>;

/**
 * Starts one pool of workers, and dispatch with it.
 * @throws what keeps the queue from starting
 */
export async function startWorkers(services: OpenServices): Promise<Workers> {
  const { config, queuePool, directUrl, log, metrics } = services;
  const addJob = jobAdder(queuePool);
  const leaveOff = new AbortController();
  const events: WorkerEvents = new EventEmitter();
  let livenessLock: LivenessLock | undefined;
  logJobs(events, log);
  countJobs(metrics, events);
  events.on('pool:create', ({ workerPool }) => {
    livenessLock = openLivenessLock({ url: directUrl, poolId: workerPool.id, log });
    // The name under which its jobs are locked.
    log.info({ pool: workerPool.id }, 'jobs are taken');
  });
  // Also when the queue gives up by itself: it waits for its jobs, and dispatch has no end of its own.
  events.on('pool:gracefulShutdown', () => leaveOff.abort());

  const begun = Promise.withResolvers<Runner>();
  // It refuses when it is ending by itself already.
  const stopRunner = async () => (await begun.promise).stop().catch(() => undefined);
  await watchRevision({ events, pool: queuePool, stop: stopRunner, log });
  const looked = firstLook(events);
  // Awaited below, and may fail before.
  looked.catch(() => undefined);

  await addJob('dispatch', {}, DISPATCH);
  // What was due while no process ran.
  if (config.currencyRates !== 'off') await addJob('currency_rates__collect', {}, COLLECT);
  const runner = await runQueue({
    pgPool: queuePool,
    // Each worker takes one job when it is free. A local queue would be faster with thousands of jobs a second, and
    // would lock jobs for a busy process while another has nothing to do: dispatch could wait behind a deletion.
    concurrency: queuePool.options.max,
    noHandleSignals: true,
    events,
    logger: queueLogger(log),
    taskList: taskList(services, leaveOff.signal),
    parsedCronItems: parseCronItems([...crontab]),
    // Batched, a completion is waited for at the stop, and its failure ends the pool instead of the process.
    preset: { worker: { completeJobBatchDelay: 0, failJobBatchDelay: 0, gracefulShutdownAbortTimeout: 5_000 } },
  });

  begun.resolve(runner);
  const ended = runner.promise.then(
    () => undefined,
    () => undefined,
  );
  try {
    // One that ends by itself before it has looked is no failure of its own.
    await Promise.race([looked, ended]);
  } catch (error) {
    await stopRunner().then(() => ended);
    await livenessLock?.close();
    throw error;
  }

  const ticks = startTicks(config, addJob, log);
  let stopping: Promise<void> | undefined;
  return {
    ended: ended.then(() => {
      ticks.stop();
      return livenessLock?.close();
    }),
    stop() {
      leaveOff.abort();
      ticks.stop();
      stopping ??= stopRunner().then(() => ended);
      return stopping;
    },
  };
}
