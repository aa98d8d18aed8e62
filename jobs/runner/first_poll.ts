import type { WorkerEvents } from 'graphile-worker';

/**
 * The first look for a job. With it the queue asks for the ids of its tasks and keeps the result for as long as it runs, also
 * where it is an error (the connection was lost): then no worker ever gets a job, and nothing reports it. What fails later is asked
 * again by the queue itself.
 * @throws what kept the queue from looking
 */
export function firstLook(events: WorkerEvents): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const failed = ({ error }: Readonly<{ error: unknown }>) => reject(error);
  const seen = () => resolve();
  events.on('worker:getJob:error', failed);
  events.on('worker:getJob:empty', seen);
  events.on('job:start', seen);
  return promise.finally(() => {
    events.off('worker:getJob:error', failed);
    events.off('worker:getJob:empty', seen);
    events.off('job:start', seen);
  });
}
