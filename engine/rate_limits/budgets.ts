import { createHash } from 'node:crypto';
import { z } from 'zod';
import { call, ignored, type Queries } from '../db/call.ts';
import type { Budgets } from '../providers/outgoing/index.ts';

const takenSchema = z.object({ granted: z.boolean(), retryAfterMs: z.int() });

/** An account is shown to nobody. */
function stored(key: string): string {
  return createHash('sha256').update(key).digest('hex');
}

/** Token buckets in Postgres, which all processes share. What a provider said about its limits is kept with them. */
export function sharedBudgets(db: Queries): Budgets {
  return {
    async take(buckets) {
      if (buckets.length === 0) return undefined;
      const named = buckets.map((bucket) => ({ ...bucket, key: stored(bucket.key) }));
      const { granted, retryAfterMs } = await call(db, 'rate_limit_take', { buckets: named }, takenSchema);
      return granted ? undefined : new Date(Date.now() + retryAfterMs);
    },
    async postpone(buckets, until) {
      if (buckets.length === 0) return;
      const keys = buckets.map(({ key }) => stored(key));
      await call(db, 'rate_limit_hold', { keys, until: until.toISOString() }, ignored);
    },
  };
}
