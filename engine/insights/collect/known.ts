import { z } from 'zod';
import { call } from '../../db/call.ts';
import type { Database } from '../../db/database.ts';
import type { Columns } from '../../providers/dataset.ts';
import type { Storage } from '../../storage/index.ts';
import type { StoredFact } from '../facts.ts';
import { readMonth, SegmentTooLargeError } from '../segments/index.ts';
import type { CollectUnit } from './claim.ts';

/** What is recorded of files with facts, as `readMonth` takes them. */
export const segmentsSchema = z.object({
  segments: z.array(
    z
      .object({
        month: z.string(),
        objectKey: z.string(),
        sizeBytes: z.int(),
        rowCount: z.int(),
        sha256: z.string(),
      })
      .transform(({ month, objectKey: key, sizeBytes: size, rowCount: rows, sha256 }) => {
        return { month, key, size, rows, sha256 };
      }),
  ),
});
export type MonthSegment = z.output<typeof segmentsSchema>['segments'][number];

/** What is published of the source of a unit, in the months from `from` to `to`. */
export async function publishedSegments(
  db: Database,
  { organizationId, source }: CollectUnit,
  { from = null, to = null }: Readonly<{ from?: string | null | undefined; to?: string | null | undefined }> = {},
): Promise<readonly MonthSegment[]> {
  const args = { organizationId, sourceId: source.id, from, to, revision: null };
  return (await call(db.of(organizationId), 'insight_segments_read', args, segmentsSchema)).segments;
}

export type Kept = Readonly<{ db: Database; storage: Storage }>;

/** The newest fact of each key of a month; undefined: there are more than fit into memory, until compaction has merged them. */
export async function factsOfMonth(
  { storage }: Pick<Kept, 'storage'>,
  segments: readonly MonthSegment[],
  month: string,
  columns: Columns,
): Promise<ReadonlyMap<string, StoredFact> | undefined> {
  const ofMonth = segments.filter((segment) => segment.month === month);
  try {
    return await readMonth(storage, ofMonth, columns);
  } catch (error) {
    if (error instanceof SegmentTooLargeError) return undefined;
    throw error;
  }
}
