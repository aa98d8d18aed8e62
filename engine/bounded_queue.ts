import PQueue from 'p-queue';

/** The work has not started: the queue was full, or the wait too long. */
export class QueueRefusedError extends Error {
  override name = 'QueueRefusedError';
}

export type BoundedQueue = Readonly<{
  /** Starts in the order of the calls. @throws QueueRefusedError, and whatever the work throws */
  run<T>(work: () => Promise<T>): Promise<T>;
  waiting(): number;
  running(): number;
}>;

export type BoundedQueueOptions = Readonly<{
  /** How many run at a time. */
  concurrency: number;
  /** How many may wait; further ones are refused at once. */
  maxWaiting: number;
  waitTimeoutMs: number;
}>;

/** A semaphore whose line is bounded in length and time. */
export function createBoundedQueue({ concurrency, maxWaiting, waitTimeoutMs }: BoundedQueueOptions): BoundedQueue {
  const queue = new PQueue({ concurrency });
  return {
    waiting: () => queue.size,
    running: () => queue.pending,
    async run(work) {
      if (queue.pending < concurrency) return queue.add(work);
      if (queue.size >= maxWaiting) throw new QueueRefusedError('the queue is full');
      const wait = new AbortController();
      const timer = setTimeout(
        () => wait.abort(new QueueRefusedError(`waited ${waitTimeoutMs} ms in vain`)),
        waitTimeoutMs,
      );
      return queue.add(
        () => {
          clearTimeout(timer);
          return work();
        },
        { signal: wait.signal },
      );
    },
  };
}

export type Shares = Readonly<{
  /** Starts in the order of the calls of this owner. @throws QueueRefusedError, and whatever the work throws */
  run<T>(owner: string, work: () => Promise<T>): Promise<T>;
  /** Of all owners. */
  waiting(): number;
}>;

/** A bounded queue for each owner, for as long as it has work. */
export function createShares(options: BoundedQueueOptions): Shares {
  const owners = new Map<string, { queue: BoundedQueue; calls: number }>();
  return {
    waiting: () => [...owners.values()].reduce((sum, { queue }) => sum + queue.waiting(), 0),
    async run(owner, work) {
      const share = owners.get(owner) ?? { queue: createBoundedQueue(options), calls: 0 };
      owners.set(owner, share);
      share.calls += 1;
      try {
        return await share.queue.run(work);
      } finally {
        share.calls -= 1;
        if (share.calls === 0) owners.delete(owner);
      }
    },
  };
}
