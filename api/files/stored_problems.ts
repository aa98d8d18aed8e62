import type { RecordedBytes, Storage } from '../../engine/storage/index.ts';

const AT_ONCE = 16;

export type StoredProblem = { code: 'bytes_missing' | 'bytes_changed'; message: string };

/**
 * What is seen to be wrong with stored files without reading them: their place in the response is that in the list.
 * @throws StorageUnavailableError
 */
export async function storedProblems(
  storage: Pick<Storage, 'stat'>,
  files: readonly RecordedBytes[],
): Promise<(StoredProblem | null)[]> {
  const problems: (StoredProblem | null)[] = [];
  for (let start = 0; start < files.length; start += AT_ONCE) {
    const some = files.slice(start, start + AT_ONCE).map(async ({ key, size }): Promise<StoredProblem | null> => {
      const stats = await storage.stat(key);
      if (!stats) return { code: 'bytes_missing', message: 'Its bytes are no longer stored.' };
      if (stats.size !== size)
        return { code: 'bytes_changed', message: 'Its bytes were changed after they were stored.' };
      return null;
    });
    problems.push(...(await Promise.all(some)));
  }
  return problems;
}
