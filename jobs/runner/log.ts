import { type LogFunctionFactory, Logger as QueueLogger, type WorkerEvents } from 'graphile-worker';
import type { Logger } from 'pino';
import { createThrottle } from '../../engine/log.ts';

/** The queue's own words in our log: its successes are noise, and `logJobs` reports failed jobs. */
export function queueLogger(log: Logger): QueueLogger {
  const throttle = createThrottle();
  const factory: LogFunctionFactory = () => (level, message, meta) => {
    if (meta && 'failure' in meta) return;
    if (level !== 'error' && level !== 'warning') {
      log.debug(message);
      return;
    }
    // While Postgres is away each worker complains every two seconds.
    const { log: now, leftOut } = throttle(message.replace(/\d+/g, 'N'));
    if (now) log.warn({ ...(leftOut ? { leftOut } : {}) }, `queue: ${message}`);
  };
  return new QueueLogger(factory);
}

/** Logs each failure of a job, with the job's id. */
export function logJobs(events: WorkerEvents, log: Logger): void {
  events.on('job:error', ({ job, error }) => {
    const { id: jobId, task_identifier: task, attempts: attempt, max_attempts: maxAttempts } = job;
    const forGood = attempt >= maxAttempts;
    log.error(
      { jobId, task, attempt, maxAttempts, err: error },
      forGood ? 'a job failed and is given up' : 'a job failed and will run again',
    );
  });
  events.on('job:success', ({ job }) => log.debug({ jobId: job.id, task: job.task_identifier }, 'a job is done'));
}
