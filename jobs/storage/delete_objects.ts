import { type Storage, StorageFullError } from '../../engine/storage/index.ts';

export type Failure = Readonly<{ key: string; err: unknown }>;

/**
 * Deletes what it can: an object that fails while the storage can be reached holds up no other one.
 * @throws what the storage says where it cannot be reached
 */
export async function deleteObjects(
  storage: Storage,
  keys: Iterable<string>,
): Promise<Readonly<{ removed: readonly string[]; failures: readonly Failure[] }>> {
  const removed: string[] = [];
  const failures: Failure[] = [];
  for (const key of new Set(keys)) {
    try {
      await storage.delete(key);
      removed.push(key);
    } catch (err) {
      await storage.check().catch((error: unknown) => {
        if (!(error instanceof StorageFullError)) throw error;
      });
      failures.push({ key, err });
    }
  }
  return { removed, failures };
}
