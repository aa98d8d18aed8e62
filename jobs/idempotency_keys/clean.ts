import { z } from 'zod';
import { call } from '../../engine/db/call.ts';
import type { JobHandler } from '../runner/handler.ts';

const ORGANIZATIONS = 20;
const ROWS = 200;
const answer = z.object({ removed: z.int(), after: z.uuid().nullable() });

/** Removes keys that have had their day, a transaction a batch, organizations in turns: round after round until one removes none. */
export const idempotencyKeysClean: JobHandler<'idempotency_keys__clean'> = async (_payload, { db, signal }) => {
  let after: string | null = null;
  let found = false;
  for (;;) {
    // The next hour's run goes on where this one leaves off.
    if (signal.aborted) return 'done';
    const args: { organizations: number; rows: number; after: string | null } = {
      organizations: ORGANIZATIONS,
      rows: ROWS,
      after,
    };
    const batch = await call(db, 'idempotency_keys_clean', args, answer);
    found ||= batch.removed > 0;
    after = batch.after;
    if (after !== null) continue;
    if (!found) return 'done';
    found = false;
  }
};
