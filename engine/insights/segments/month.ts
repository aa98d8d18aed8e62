import type { Columns } from '../../providers/dataset.ts';
import { type RecordedBytes, readVerified, type Storage } from '../../storage/index.ts';
import { keepNewest, type StoredFact } from '../facts.ts';
import { demandSize, READ_LIMITS, type ReadLimits, SegmentDamagedError } from './limits.ts';
import { factsOf } from './read.ts';

/** What is recorded of a stored segment. */
export type StoredSegment = RecordedBytes & Readonly<{ rows: number }>;

/**
 * The newest fact of each key out of several segments, also where that is gone. The limits hold for all of them together, and one file
 * at a time is in memory.
 * @throws SegmentTooLargeError before anything is read, StorageBrokenError where a file is not what was recorded,
 * SegmentDamagedError where it is no segment of the dataset, StorageUnavailableError, or the signal's reason
 */
export async function readMonth(
  storage: Pick<Storage, 'get'>,
  segments: readonly StoredSegment[],
  columns: Columns,
  options: Readonly<{ limits?: ReadLimits; signal?: AbortSignal | undefined }> = {},
): Promise<Map<string, StoredFact>> {
  const { limits = READ_LIMITS, signal } = options;
  const all = (of: (segment: StoredSegment) => number) => segments.reduce((sum, segment) => sum + of(segment), 0);
  demandSize({ bytes: all(({ size }) => size), rows: all(({ rows }) => rows) }, limits);
  const newest = new Map<string, StoredFact>();
  for (const segment of segments) {
    const bytes = await readVerified(storage, segment, signal);
    let rows = 0;
    for await (const facts of factsOf(bytes, columns, { limits, signal })) {
      rows += facts.length;
      for (const fact of facts) keepNewest(newest, fact);
    }
    if (rows !== segment.rows) {
      throw new SegmentDamagedError('unreadable', `the segment has ${rows} rows where ${segment.rows} are recorded`);
    }
  }
  return newest;
}
