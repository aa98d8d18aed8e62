import { randomUUID } from 'node:crypto';
import { findPostgresError, raisedProblem } from '../../engine/db/errors.ts';
import { adapterOf } from '../../engine/insights/adapters.ts';
import {
  type ClaimedCompaction,
  CompactionDiffersError,
  claimCompaction,
  commitCompaction,
  endCompaction,
  type Merged,
  mergePartition,
  type Partition,
  readDue,
} from '../../engine/insights/compaction/index.ts';
import { SegmentDamagedError } from '../../engine/insights/segments/index.ts';
import { insightSegmentKey, StorageBrokenError, StorageUnavailableError } from '../../engine/storage/index.ts';
import type { JobContext, JobHandler } from '../runner/handler.ts';

/** Files of a month, from which on it is worth it to merge them. */
const SEGMENTS = 16;
const ORGANIZATIONS = 100;
/** Months of each of them, in a read. */
const ROWS = 4;
/** Then the jobs that wait come first. */
const LONGEST_MS = 60_000;
/** For the commit, after the time in which files are read and written. */
const COMMIT_SECONDS = 30;

const FAILURES = {
  damaged: 'A file is not what was recorded, or cannot be read',
  too_slow: 'It took too long',
  differs: 'The merged file says something else',
  failed: 'The files could not be merged',
} as const;

function failureOf(error: unknown): keyof typeof FAILURES {
  if (error instanceof StorageBrokenError || error instanceof SegmentDamagedError) return 'damaged';
  if (error instanceof DOMException && error.name === 'TimeoutError') return 'too_slow';
  return error instanceof CompactionDiffersError ? 'differs' : 'failed';
}

/** merged: what there was became one file. overtaken: files came or went meanwhile. late: another process had claimed it. */
type Outcome = 'merged' | 'overtaken' | 'late' | 'left' | 'stopped' | keyof typeof FAILURES;

/** `late` where the lease has ended. */
async function unlessLate<T>(work: Promise<T>): Promise<T | 'late'> {
  try {
    return await work;
  } catch (error) {
    const raised = findPostgresError(error);
    if (raised && raisedProblem(raised)?.code === 'state_conflict') return 'late';
    throw error;
  }
}

function merge({ config, storage, signal }: JobContext, claimed: ClaimedCompaction): Promise<Merged> {
  const { organizationId, sourceId, id, fence, segments, isWhole, provider, dataset } = claimed;
  const { bytes, rows, seconds } = config.insightCompaction;
  const inputs = {
    segments,
    isWhole,
    columns: adapterOf(provider, dataset)?.columns ?? {},
    key: (month: string) => insightSegmentKey(organizationId, { sourceId, unitId: id, fence, month }),
  };
  const limit = AbortSignal.timeout(seconds * 1_000);
  return mergePartition(storage, inputs, { limits: { bytes, rows }, signal: AbortSignal.any([signal, limit]) });
}

async function compact(context: JobContext, partition: Partition): Promise<Outcome> {
  const { config, db, log, signal } = context;
  const { files, bytes, rows, seconds } = config.insightCompaction;
  const claimed = await claimCompaction(db, partition, {
    limits: { segments: SEGMENTS, files, bytes, rows },
    seconds: seconds + COMMIT_SECONDS,
  });
  if (claimed === null) return 'left';
  let merged: Merged;
  try {
    merged = await merge(context, claimed);
  } catch (error) {
    if (signal.aborted || error instanceof StorageUnavailableError) {
      await unlessLate(endCompaction(db, claimed, null));
      if (signal.aborted) return 'stopped';
      throw error;
    }
    const code = failureOf(error);
    log.error({ err: error, ...partition, compactionId: claimed.id }, 'files of facts are not merged for now');
    const ended = await unlessLate(endCompaction(db, claimed, { code, message: FAILURES[code] }));
    return ended ?? code;
  }
  const revision = await unlessLate(commitCompaction(db, claimed, merged));
  if (revision === 'late') return 'late';
  if (revision === null) return 'overtaken';
  const facts = { revision, files: claimed.segments.length, isWhole: claimed.isWhole, removed: merged.removed };
  log.info({ ...partition, ...facts }, 'files of facts are merged');
  return 'merged';
}

/**
 * Merges files of facts, a month of a source at a time, where there are many of them. Organizations take turns, and each run begins
 * with another one. A month that stays as it is, for whatever reason, holds up no other one.
 */
export const insightsCompact: JobHandler<'insights__compact'> = async (_payload, context) => {
  const { db, metrics, signal } = context;
  const end = Date.now() + LONGEST_MS;
  const left = new Set<string>();
  let after: string | null = randomUUID();
  let found = true;
  for (;;) {
    const read: Awaited<ReturnType<typeof readDue>> = await readDue(db, {
      segments: SEGMENTS,
      organizations: ORGANIZATIONS,
      rows: ROWS + left.size,
      after,
    });
    for (const partition of read.partitions) {
      const name = `${partition.sourceId}/${partition.month}`;
      if (left.has(name)) continue;
      if (signal.aborted || Date.now() > end) return 'unfinished';
      found = true;
      const outcome = await compact(context, partition);
      if (outcome === 'stopped') return 'unfinished';
      if (outcome !== 'merged') left.add(name);
      if (outcome !== 'left') metrics.insightCompactions.inc({ outcome });
    }
    after = read.after;
    if (after !== null) continue;
    if (!found) return 'done';
    found = false;
  }
};
