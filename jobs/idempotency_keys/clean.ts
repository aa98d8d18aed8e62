import { z } from 'zod';
import { call } from '../../engine/db/call.ts';
import type { JobHandler } from '../runner/handler.ts';

const BATCH = 1_000;
const cleanResult = z.object({ removed: z.int() });

/** Removes keys that have had their day, a transaction a batch. */
export const idempotencyKeysClean: JobHandler<'idempotency_keys__clean'> = async (_payload, { db, signal }) => {
  for (;;) {
    // The next hour's run goes on where this one leaves off.
    if (signal.aborted) return 'done';
    const { removed } = await call(db, 'idempotency_keys_clean', { limit: BATCH }, cleanResult);
    if (removed < BATCH) return 'done';
  }
};
