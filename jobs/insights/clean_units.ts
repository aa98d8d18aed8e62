import { z } from 'zod';
import { call } from '../../engine/db/call.ts';
import type { JobHandler } from '../runner/handler.ts';

/** Units in a transaction. */
const ROWS = 500;
const removedSchema = z.object({ removed: z.int() });

/** Removes units of collecting that ended 30 days ago, a transaction a batch. */
export const insightUnitsClean: JobHandler<'insights__clean_units'> = async (_payload, { db, signal }) => {
  for (;;) {
    // The next hour's run goes on where this one leaves off.
    if (signal.aborted) return 'done';
    const { removed } = await call(db, 'insight_units_clean', { rows: ROWS }, removedSchema);
    if (removed === 0) return 'done';
  }
};
