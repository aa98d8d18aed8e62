import { Readable } from 'node:stream';
import type { Columns } from '../../providers/dataset.ts';
import { insightSegmentKey, type Storage } from '../../storage/index.ts';
import { contentMonth, type StoredFact } from '../facts.ts';
import { writeSegment } from '../segments/index.ts';
import type { CollectUnit } from './claim.ts';

/** A file that is stored, as `insight_unit_commit` takes it. */
export type NewSegment = Readonly<{
  month: string;
  objectKey: string;
  rowCount: number;
  sizeBytes: number;
  sha256: string;
  minAt: string;
  maxAt: string;
  /** It is not published with this unit. */
  staged: boolean;
}>;

/** Stores facts, a file a month. Until they are committed no row names them: a crash leaves them to the clean-up. */
export async function storeSegments(
  storage: Storage,
  { organizationId, id, fence, source }: CollectUnit,
  columns: Columns,
  facts: readonly StoredFact[],
  options: Readonly<{ staged: boolean; isSeen?: boolean }>,
): Promise<readonly NewSegment[]> {
  const stored: NewSegment[] = [];
  for (const [month, ofMonth] of Map.groupBy(facts, ({ contentAt }) => contentMonth(contentAt))) {
    const { bytes, sha256, rows, minAt, maxAt } = await writeSegment(columns, ofMonth);
    const objectKey = insightSegmentKey(organizationId, {
      sourceId: source.id,
      unitId: id,
      fence,
      month,
      ...(options.isSeen ? { isSeen: true } : {}),
    });
    await storage.put(objectKey, Readable.from([bytes]));
    stored.push({
      month,
      objectKey,
      rowCount: rows,
      sizeBytes: bytes.length,
      sha256,
      minAt: new Date(minAt).toISOString(),
      maxAt: new Date(maxAt).toISOString(),
      staged: options.staged,
    });
  }
  return stored;
}
