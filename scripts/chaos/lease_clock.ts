import { ApiError } from '../worker/api.ts';

// Between the clock that timed us and the clock of Postgres.
const SLACK_MS = 50;

/**
 * When a lease is over for certain, judged from the worker's side of the wire: a response bounds the moment at which the
 * lease was renewed. A renewal that is under way, or whose response was lost, leaves nothing certain.
 */
export type LeaseClock = Readonly<{
  /** Makes a call that renews. */
  renew: (send: () => Promise<unknown>) => Promise<void>;
  /** `performance.now()` from which on the lease is over; infinity: nobody knows. */
  overAt: () => number;
}>;

/** For a start that was confirmed just now. */
export function createLeaseClock(leaseMs: number): LeaseClock {
  let overAt = performance.now() + leaseMs + SLACK_MS;
  let underWay = 0;
  return {
    async renew(send) {
      underWay += 1;
      try {
        await send();
        overAt = Math.max(overAt, performance.now() + leaseMs + SLACK_MS);
      } catch (error) {
        if (!(error instanceof ApiError && error.status === 409)) overAt = Number.POSITIVE_INFINITY;
        throw error;
      } finally {
        underWay -= 1;
      }
    },
    overAt: () => (underWay > 0 ? Number.POSITIVE_INFINITY : overAt),
  };
}
