import { z } from 'zod';
import { call } from '../../db/call.ts';
import type { Database } from '../../db/database.ts';
import { knownAdapters } from '../adapters.ts';
import type { StoredSegment } from '../segments/index.ts';
import type { Merged } from './merge.ts';

/** The files of a month of a source. */
export const partitionSchema = z.object({ organizationId: z.uuid(), sourceId: z.uuid(), month: z.string() });
export type Partition = z.output<typeof partitionSchema>;

/** How much is merged at once, and from how many files on (docs/interface.md, 8). */
export type CompactionLimits = Readonly<{ segments: number; files: number; bytes: number; rows: number }>;

const compactionSchema = z.object({
  id: z.uuid(),
  fence: z.int(),
  isWhole: z.boolean(),
  provider: z.string(),
  dataset: z.string(),
  schemaVersion: z.int(),
  segments: z.array(
    z
      .object({ objectKey: z.string(), rowCount: z.int(), sizeBytes: z.int(), sha256: z.string() })
      .transform(({ objectKey: key, rowCount: rows, sizeBytes: size, sha256 }): StoredSegment => {
        return { key, rows, size, sha256 };
      }),
  ),
});
export type ClaimedCompaction = Partition & z.output<typeof compactionSchema>;

const dueSchema = z.object({ partitions: z.array(partitionSchema), after: z.uuid().nullable() });
const claimSchema = z.object({ claimed: z.boolean(), compaction: compactionSchema.optional() });
const committedSchema = z.object({ committed: z.boolean(), revision: z.int().nullable() });
const endedSchema = z.object({ ended: z.boolean() });

const leaseOf = ({ organizationId, sourceId, month, id, fence }: ClaimedCompaction) => ({
  organizationId,
  sourceId,
  month,
  compactionId: id,
  fence,
});

/** Months with at least so many files, of so many organizations that follow `after`; see insight_compactions_due. */
export function readDue(
  db: Database,
  given: Readonly<{ segments: number; organizations: number; rows: number; after: string | null }>,
) {
  return call(db, 'insight_compactions_due', given, dueSchema);
}

/** @returns null: there is nothing to do, or another process does it */
export async function claimCompaction(
  db: Database,
  partition: Partition,
  given: Readonly<{ limits: CompactionLimits; seconds: number }>,
): Promise<ClaimedCompaction | null> {
  const args = { ...partition, adapters: knownAdapters, ...given };
  const { compaction } = await call(db, 'insight_compaction_claim', args, claimSchema);
  return compaction ? { ...partition, ...compaction } : null;
}

/** @returns the revision; null: its inputs are no longer what they were. @throws Problem once the lease has ended */
export async function commitCompaction(db: Database, claimed: ClaimedCompaction, { removed, segment }: Merged) {
  const { schemaVersion } = claimed;
  const stored = segment && {
    objectKey: segment.key,
    rowCount: segment.rows,
    sizeBytes: segment.size,
    sha256: segment.sha256,
    minAt: new Date(segment.minAt).toISOString(),
    maxAt: new Date(segment.maxAt).toISOString(),
    schemaVersion,
  };
  const given = { ...leaseOf(claimed), result: { removed, segment: stored } };
  return (await call(db, 'insight_compaction_commit', given, committedSchema)).revision;
}

/** `error`: the month waits, the longer the more often; null: another process may go on at once. @throws as `commitCompaction` */
export async function endCompaction(
  db: Database,
  claimed: ClaimedCompaction,
  error: Readonly<{ code: string; message: string }> | null,
): Promise<void> {
  await call(db, 'insight_compaction_end', { ...leaseOf(claimed), error }, endedSchema);
}
