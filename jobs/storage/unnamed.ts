import type { JobContext } from '../runner/handler.ts';
import { deleteObjects } from './delete_objects.ts';

/** Far longer than it takes from a stored object to the row that names it. */
const ABANDONED_AFTER_MS = 24 * 3_600_000;
/** Pages until the jobs that wait come first. */
const PAGES = 20;

export type Objects = Readonly<{
  prefix: string;
  /** The last key that an earlier job has looked at. */
  after: string | undefined;
  /** Younger ones stay; default: a day. */
  olderThanMs?: number;
  /** When the object of a key was made, in milliseconds; null: nobody knows, so that its age is no reason to keep it. */
  timeOf(key: string): number | null;
  /** Which of the keys a row names; null: the organization is deleted, and its objects are the deletion's. */
  named(keys: readonly string[]): Promise<readonly string[] | null>;
}>;

/**
 * Removes objects that no row names and that are so old, by default a day: of processes that died between the two. Those that cannot be removed hold up
 * no others: the next sweep tries them again.
 * @returns how many, and the last key it has looked at where there are more; null: it left off, since the process stops
 */
export async function removeUnnamed(
  { storage, signal, log }: Pick<JobContext, 'storage' | 'signal' | 'log'>,
  { prefix, after: begin, olderThanMs = ABANDONED_AFTER_MS, timeOf, named }: Objects,
): Promise<Readonly<{ removed: number; after: string | undefined }> | null> {
  const before = Date.now() - olderThanMs;
  let removed = 0;
  let after = begin;
  for (let read = 0; read < PAGES; read += 1) {
    if (signal.aborted) return null;
    const page = await storage.list(prefix, after === undefined ? {} : { after });
    const old = page.objects.map(({ key }) => key).filter((key) => (timeOf(key) ?? before) < before);
    const found = await named(old);
    if (found === null) return { removed, after: undefined };
    const kept = new Set(found);
    const deleted = await deleteObjects(
      storage,
      old.filter((key) => !kept.has(key)),
    );
    removed += deleted.removed.length;
    const [failure] = deleted.failures;
    if (failure) log.error({ ...failure, objects: deleted.failures.length }, 'objects that nothing names stay for now');
    after = page.next ?? undefined;
    if (after === undefined) break;
  }
  return { removed, after };
}
