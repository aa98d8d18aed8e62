import { z } from 'zod';
import { call } from '../../engine/db/call.ts';
import type { JobHandler } from '../runner/handler.ts';

/** Of flows, and of capabilities, in a transaction. */
const ROWS = 500;
const removedSchema = z.object({ removed: z.int() });

/** Removes authorizations and gateway capabilities that ended an hour ago, a transaction a batch. */
export const integrationsClean: JobHandler<'integrations__clean'> = async (_payload, { db, signal }) => {
  for (;;) {
    // The next hour's run goes on where this one leaves off.
    if (signal.aborted) return 'done';
    const { removed } = await call(db, 'integration_flows_clean', { rows: ROWS }, removedSchema);
    if (removed === 0) return 'done';
  }
};
