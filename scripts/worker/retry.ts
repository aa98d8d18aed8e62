import { setTimeout as sleep } from 'node:timers/promises';

const FIRST_MS = 100;
const LONGEST_MS = 5_000;

/** 100 ms, 200 ms, … 5 s, each with up to a quarter taken off so that many workers do not come back at once. */
export function backoffMs(failures: number): number {
  const full = Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.min(failures, 20));
  return full * (1 - Math.random() / 4);
}

export type RetryOptions = Readonly<{
  /** Whether sending the same call again can help. */
  again: (error: unknown) => boolean;
  /** No further try is begun after this moment (`performance.now()`); asked each time, because a lease is renewed. */
  deadline: () => number;
  signal: AbortSignal;
  onRetry?: (error: unknown, failures: number) => void;
}>;

/** Does `work` until it succeeds, fails for good or its time is over. @throws its last error, or the signal's reason. */
export async function retrying<T>(work: () => Promise<T>, options: RetryOptions): Promise<T> {
  for (let failures = 0; ; failures += 1) {
    options.signal.throwIfAborted();
    try {
      return await work();
    } catch (error) {
      options.signal.throwIfAborted();
      const wait = backoffMs(failures);
      if (!options.again(error) || performance.now() + wait > options.deadline()) throw error;
      options.onRetry?.(error, failures);
      await sleep(wait, undefined, { signal: options.signal }).catch(() => {});
    }
  }
}

/** Why a call failed, for a person; fetch hides it in the cause. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error && error.cause.message !== '' ? error.cause.message : error.message;
}
