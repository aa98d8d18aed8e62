import { z } from 'zod';
import { call } from '../../engine/db/call.ts';
import type { JobHandler } from '../runner/handler.ts';

const ROWS = 1000;
const removedSchema = z.object({ removed: z.int() });

/** Removes budgets of outgoing requests that say no more than none would, a transaction a batch. */
export const rateLimitsClean: JobHandler<'rate_limits__clean'> = async (_payload, { db, signal }) => {
  for (;;) {
    // The next hour's run goes on where this one leaves off.
    if (signal.aborted) return 'done';
    const { removed } = await call(db, 'rate_limit_buckets_clean', { rows: ROWS }, removedSchema);
    if (removed === 0) return 'done';
  }
};
