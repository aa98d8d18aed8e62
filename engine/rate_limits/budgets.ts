import { createHash } from 'node:crypto';
import { z } from 'zod';
import { call, ignored, type Queries } from '../db/call.ts';

/** A token bucket: calls of one provider account, or of this deployment's client. */
export type SharedBucket = Readonly<{
  /** Names it for all processes. It is stored as a digest: an account is shown to nobody. */
  key: string;
  /** Calls at once after a pause. */
  capacity: number;
  /** How fast it fills again. */
  perSecond: number;
}>;

const takenSchema = z.object({ granted: z.boolean(), retryAfterMs: z.int() });

function stored(key: string): string {
  return createHash('sha256').update(key).digest('hex');
}

/** Token buckets in Postgres, which all processes share. What a provider said about its limits is kept with them. */
export function sharedBudgets(db: Queries) {
  return {
    /**
     * Takes one call out of all buckets, or out of none.
     * @returns undefined when it may be sent now, else when it may be tried again
     */
    async take(buckets: readonly SharedBucket[]): Promise<Date | undefined> {
      if (buckets.length === 0) return undefined;
      const named = buckets.map((bucket) => ({ ...bucket, key: stored(bucket.key) }));
      const { granted, retryAfterMs } = await call(db, 'rate_limit_take', { buckets: named }, takenSchema);
      return granted ? undefined : new Date(Date.now() + retryAfterMs);
    },
    /** The provider limits calls of these buckets until then. A time that lies before the known one changes nothing. */
    async postpone(buckets: readonly SharedBucket[], until: Date): Promise<void> {
      if (buckets.length === 0) return;
      const keys = buckets.map(({ key }) => stored(key));
      await call(db, 'rate_limit_hold', { keys, until: until.toISOString() }, ignored);
    },
  };
}
