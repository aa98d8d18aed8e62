import { createHash } from 'node:crypto';
import type { ToolFile } from '../providers/tool.ts';
import { openVerified, type Storage, StorageMissingError } from '../storage/index.ts';

/** A file of an action as it is recorded, and where its bytes lie. */
export type ActionFile = Readonly<{
  argument: string;
  name: string;
  contentType: string;
  sizeBytes: number;
  sha256: string;
  storageKey: string;
}>;

/** By argument, for the tool: what is read is what was recorded when the action was proposed, or ends in an error. */
export function actionFiles(
  storage: Pick<Storage, 'get'>,
  files: readonly ActionFile[],
  signal?: AbortSignal,
): Readonly<Record<string, ToolFile>> {
  const entries = files.map(({ argument, storageKey, name, contentType, sizeBytes, sha256 }): [string, ToolFile] => {
    const recorded = { key: storageKey, size: sizeBytes, sha256 };
    const open = () => openVerified(storage, recorded, signal);
    return [argument, { name, contentType, sizeBytes, sha256, open }];
  });
  return Object.fromEntries(entries);
}

/**
 * Sizes and digests of what lies there now, for `action_begin`, which compares them. A file that is gone is left out.
 * @throws StorageUnavailableError, the signal's reason
 */
export async function hashActionFiles(
  storage: Pick<Storage, 'get'>,
  files: readonly ActionFile[],
  signal?: AbortSignal,
): Promise<Pick<ActionFile, 'argument' | 'sizeBytes' | 'sha256'>[]> {
  const found: Pick<ActionFile, 'argument' | 'sizeBytes' | 'sha256'>[] = [];
  // One after the other: the job holds a lease, and other jobs need the disk too.
  for (const { argument, storageKey } of files) {
    const hash = createHash('sha256');
    let sizeBytes = 0;
    try {
      for await (const chunk of await storage.get(storageKey, { signal })) {
        hash.update(chunk);
        sizeBytes += chunk.length;
      }
    } catch (error) {
      if (error instanceof StorageMissingError) continue;
      throw error;
    }
    found.push({ argument, sizeBytes, sha256: hash.digest('hex') });
  }
  return found;
}
