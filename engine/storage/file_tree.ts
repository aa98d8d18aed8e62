import type { Dirent } from 'node:fs';
import { lstat, opendir, readdir, rmdir, unlink } from 'node:fs/promises';
import path from 'node:path';
import type { ListedObject } from './storage.ts';

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}

/** Runs `step`; false when what it is about has gone meanwhile: another process may delete the same prefix. */
async function unlessGone(step: Promise<void>): Promise<boolean> {
  try {
    await step;
    return true;
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return false;
    throw error;
  }
}

/**
 * Unlinks at most `batch` files below `directory`, then the folders that are empty. Links are removed, not followed.
 * `done` is true when the folder itself is gone.
 */
export async function removeFiles(
  directory: string,
  batch: number,
  signal?: AbortSignal,
): Promise<{ deleted: number; done: boolean }> {
  let deleted = 0;
  let entries: AsyncIterable<Dirent>;
  try {
    entries = await opendir(directory);
  } catch (error) {
    if (hasCode(error, 'ENOENT') || hasCode(error, 'ENOTDIR')) return { deleted, done: true };
    throw error;
  }
  for await (const entry of entries) {
    signal?.throwIfAborted();
    if (deleted >= batch) return { deleted, done: false };
    const child = path.join(directory, entry.name);
    if (entry.isDirectory()) deleted += (await removeFiles(child, batch - deleted, signal)).deleted;
    else if (await unlessGone(unlink(child))) deleted += 1;
  }
  try {
    await unlessGone(rmdir(directory));
    return { deleted, done: true };
  } catch (error) {
    // The batch was full, a put came in between, or the listing skipped a file while others went: look again.
    if (hasCode(error, 'ENOTEMPTY') || hasCode(error, 'EEXIST')) return { deleted, done: false };
    throw error;
  }
}

/** Key order: a folder sorts as its name with a slash behind it, as its keys do. */
function orderKey(entry: Dirent): string {
  return entry.isDirectory() ? `${entry.name}/` : entry.name;
}

/** Files below `directory` whose key is greater than `after`, in key order, at most `limit`. */
export async function listFiles(
  directory: string,
  prefix: string,
  after: string,
  limit: number,
): Promise<ListedObject[]> {
  let entries: Dirent[];
  try {
    entries = await readdir(directory, { withFileTypes: true });
  } catch (error) {
    if (hasCode(error, 'ENOENT') || hasCode(error, 'ENOTDIR')) return [];
    throw error;
  }
  const sorted = entries.map((entry) => ({ entry, key: prefix + orderKey(entry) }));
  sorted.sort((a, b) => (a.key < b.key ? -1 : 1));
  const found: ListedObject[] = [];
  for (const { entry, key } of sorted) {
    if (found.length >= limit) break;
    const child = path.join(directory, entry.name);
    if (entry.isDirectory()) {
      // Whole folders before `after` are passed over unread.
      if (key < after && !after.startsWith(key)) continue;
      found.push(...(await listFiles(child, key, after, limit - found.length)));
    } else if (entry.isFile() && key > after) {
      const stats = await lstat(child).catch(() => null);
      if (stats) found.push({ key, size: stats.size });
    }
  }
  return found;
}
