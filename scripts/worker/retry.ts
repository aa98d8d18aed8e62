import { setTimeout as sleep } from 'node:timers/promises';

const FIRST_BACKOFF_MS = 100;
const MAX_BACKOFF_MS = 5_000;

/** 100 ms, 200 ms, … 5 s, each less up to a quarter at random: many workers do not come back at the same moment. */
export function backoffMs(failures: number): number {
  const full = Math.min(MAX_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** Math.min(failures, 20));
  return full * (1 - Math.random() / 4);
}

export type RetryOptions = Readonly<{
  /** Whether the same call may succeed when it is repeated. */
  isRetryable: (error: unknown) => boolean;
  /** No attempt starts after this moment (`performance.now()`). A function, because leases are renewed. */
  deadline: () => number;
  signal: AbortSignal;
  onRetry?: (error: unknown, failures: number) => void;
}>;

/** Repeats `work` until it succeeds, fails for good or reaches the deadline. @throws its last error, or the signal's reason. */
export async function retry<T>(work: () => Promise<T>, options: RetryOptions): Promise<T> {
  for (let failures = 0; ; failures += 1) {
    options.signal.throwIfAborted();
    try {
      return await work();
    } catch (error) {
      options.signal.throwIfAborted();
      const wait = backoffMs(failures);
      if (!options.isRetryable(error) || performance.now() + wait > options.deadline()) throw error;
      options.onRetry?.(error, failures);
      await sleep(wait, undefined, { signal: options.signal }).catch(() => {});
    }
  }
}

/** Why a call failed, for a person: fetch hides it in the cause. */
export function errorText(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error && error.cause.message !== '' ? error.cause.message : error.message;
}
