import { setTimeout as sleep } from 'node:timers/promises';
import { ApiError, type Lease, type WorkerApi } from './api.ts';
import { backoffMs } from './retry.ts';

export type LeaseEnd = 'lost' | 'cancelled' | 'stopped';

/** A lease that is kept alive by heartbeats until it is let go, lost, or the run is cancelled. */
export type HeldLease = Readonly<{
  lease: Lease;
  /** Aborted as soon as the run must stop. */
  signal: AbortSignal;
  /** Why it aborted. */
  ended: () => LeaseEnd | null;
  /** When the server lets the lease expire, on the clock of `performance.now()`. */
  deadline: () => number;
  /** Ends the run from our side. */
  stop: () => void;
  /** Another answer than that of a heartbeat said that the run is cancelled. */
  cancel: () => void;
  /** Stops the heartbeats; the lease itself ends with complete or fail. */
  release: () => Promise<void>;
}>;

/**
 * Sends heartbeats every `heartbeatIntervalMs`. An API that is away is tried again until the lease would be over: a
 * restart of it is nothing that a run notices.
 */
export function holdLease(options: {
  api: WorkerApi;
  lease: Lease;
  /** How long the lease lasts from now, and after each heartbeat. */
  leaseMs: number;
  heartbeatIntervalMs: number;
}): HeldLease {
  const { api, lease, leaseMs } = options;
  const over = new AbortController();
  const released = new AbortController();
  let deadline = performance.now() + leaseMs;
  let ended: LeaseEnd | null = null;
  let failures = 0;

  function end(reason: LeaseEnd): void {
    ended ??= reason;
    over.abort();
  }

  async function beat(): Promise<void> {
    // Counted from before the call: the server renews it later than that, never earlier.
    const sentAt = performance.now();
    const timeoutMs = Math.max(1_000, Math.min(options.heartbeatIntervalMs, deadline - sentAt));
    try {
      const status = await api.heartbeat(lease, { signal: released.signal, timeoutMs });
      failures = 0;
      if (status === 'cancelling' || status === 'cancelled') end('cancelled');
      else deadline = sentAt + leaseMs;
    } catch (error) {
      failures += 1;
      if (error instanceof ApiError && error.status === 409) end('lost');
    }
  }

  async function beats(): Promise<void> {
    while (!released.signal.aborted && ended !== 'lost') {
      const wait = failures === 0 ? options.heartbeatIntervalMs : backoffMs(failures);
      const left = deadline - performance.now();
      await sleep(Math.max(0, Math.min(wait, left)), undefined, { signal: released.signal }).catch(() => {});
      if (released.signal.aborted) return;
      if (performance.now() >= deadline) {
        end('lost');
        return;
      }
      // A cancelled run's lease is renewed no more, so there is nothing left to say.
      if (ended === 'cancelled') return;
      await beat();
    }
  }

  const beating = beats();
  return {
    lease,
    signal: over.signal,
    ended: () => ended,
    deadline: () => deadline,
    stop: () => end('stopped'),
    cancel: () => end('cancelled'),
    async release() {
      released.abort();
      await beating;
    },
  };
}
