import type { WorkerEvents } from 'graphile-worker';
import type { Logger } from 'pino';

/**
 * Calls `stop`, once, when the first look for a job fails. With that look the queue asks for the ids of its tasks and keeps the
 * answer for as long as it runs, also where it is an error (the connection was lost): then no worker ever gets a job, and
 * nobody is told. What fails later is asked again by the queue itself.
 */
export function watchFirstLook(options: Readonly<{ events: WorkerEvents; stop: () => void; log: Logger }>): void {
  const { events, stop, log } = options;
  const seen = () => {
    events.off('worker:getJob:error', failed);
    events.off('worker:getJob:empty', seen);
    events.off('job:start', seen);
  };
  function failed({ error }: Readonly<{ error: unknown }>): void {
    seen();
    log.warn({ err: error }, 'the queue could not begin, and is started again');
    // Not inside of the worker's own error handling, which would take it for an error of the stop.
    setImmediate(stop);
  }
  events.on('worker:getJob:error', failed);
  events.on('worker:getJob:empty', seen);
  events.on('job:start', seen);
}
