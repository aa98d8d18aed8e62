import { setTimeout as sleep } from 'node:timers/promises';
import { ApiError, type Lease, type WorkerApi } from './api.ts';
import { backoffMs } from './retry.ts';

export type LeaseEnd = 'lost' | 'cancelled' | 'stopped';

/** The longest wait of one heartbeat: proxies cut connections that are silent for half a minute. */
const MAX_WAIT_MS = 20_000;

/** A lease that heartbeats renew until it is released or lost, of a cancelled run until the grace ends. */
export type HeldLease = Readonly<{
  lease: Lease;
  /** Aborted as soon as the run must stop. */
  signal: AbortSignal;
  /** Why `signal` aborted. */
  ended: () => LeaseEnd | null;
  /** When the lease expires on the server, by `performance.now()`. */
  deadline: () => number;
  /** Ends the run from our side. */
  stop: () => void;
  /** Tells that another call than a heartbeat returned a cancelled run. */
  cancel: () => void;
  /** Stops the heartbeats; the lease itself ends with complete or fail. */
  release: () => Promise<void>;
}>;

/**
 * Sends heartbeats every `heartbeatIntervalMs`. Failed ones are retried until the lease would be over: a run does not
 * notice a restart of the API.
 */
export function holdLease(options: {
  api: WorkerApi;
  lease: Lease;
  /** How long the lease lasts from now, and after each heartbeat. */
  leaseMs: number;
  heartbeatIntervalMs: number;
}): HeldLease {
  const { api, lease, leaseMs } = options;
  const stopped = new AbortController();
  const released = new AbortController();
  let deadline = performance.now() + leaseMs;
  let ended: LeaseEnd | null = null;
  let lost = false;
  let failures = 0;

  function end(reason: LeaseEnd): void {
    ended ??= reason;
    lost ||= reason === 'lost';
    stopped.abort();
  }

  async function heartbeat(): Promise<void> {
    // Counted from before the call: the server renews the lease later than that, never earlier.
    const sentAt = performance.now();
    // A heartbeat that waits returns at the cancel; a run that has to stop has nothing more to wait for.
    const waitMs = ended === null ? Math.floor(Math.min(options.heartbeatIntervalMs, MAX_WAIT_MS)) : 0;
    const timeoutMs = waitMs + Math.max(1_000, Math.min(options.heartbeatIntervalMs, deadline - sentAt - waitMs));
    try {
      const status = await api.heartbeat(lease, { signal: released.signal, timeoutMs }, waitMs);
      failures = 0;
      // Of a cancelled run too, for as long as the server gives it to stop and report.
      deadline = sentAt + leaseMs;
      if (status === 'cancelling' || status === 'cancelled') end('cancelled');
    } catch (error) {
      failures += 1;
      if (error instanceof ApiError && error.status === 409) end('lost');
    }
  }

  async function heartbeatLoop(): Promise<void> {
    while (!released.signal.aborted && !lost) {
      const begun = performance.now();
      await heartbeat();
      if (released.signal.aborted) return;
      // One that has waited is followed by the next at once.
      const spent = performance.now() - begun;
      const wait = failures === 0 ? Math.min(options.heartbeatIntervalMs, MAX_WAIT_MS) - spent : backoffMs(failures);
      const left = deadline - performance.now();
      await sleep(Math.max(0, Math.min(wait, left)), undefined, { signal: released.signal }).catch(() => {});
      if (performance.now() >= deadline && !released.signal.aborted) end('lost');
    }
  }

  const loop = heartbeatLoop();
  return {
    lease,
    signal: stopped.signal,
    ended: () => ended,
    deadline: () => deadline,
    stop: () => end('stopped'),
    cancel: () => end('cancelled'),
    async release() {
      released.abort();
      await loop;
    },
  };
}
