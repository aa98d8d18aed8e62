import { randomUUID } from 'node:crypto';
import { tooLarge } from '../integrations/index.ts';
import { MEDIA_TYPE, OCTET_STREAM } from '../media_types.ts';
import { oneLine } from '../one_line.ts';
import type { ReadResult } from '../providers/tool.ts';
import { invocationKey, type Storage, StorageTooLargeError } from '../storage/index.ts';
import type { FoundFile } from './uploads.ts';

const MAX_BYTES = 1_073_741_824;
const MAX_NAME = 255;

/** A file that a read brought, as it is stored. */
export type BroughtFile = FoundFile;

/** What the provider calls it, as a name that can be shown. */
const fileName = (given: string) => oneLine(given.replace(/[/\\]+/g, ' '), MAX_NAME) || 'file';

function contentType(given: string): string {
  const essence = given.split(';')[0]?.trim().toLowerCase() ?? '';
  return MEDIA_TYPE.test(essence) ? essence : OCTET_STREAM;
}

/**
 * Stores the file of a read while it comes.
 * @throws Problem 400 `result_too_large`, the error of the provider, StorageUnavailableError, the signal's reason
 */
export async function keepFile(
  storage: Storage,
  organizationId: string,
  { name, contentType: type, body }: NonNullable<ReadResult['file']>,
  signal: AbortSignal | undefined,
): Promise<BroughtFile> {
  const storageKey = invocationKey(organizationId, 'files');
  const stored = await storage.put(storageKey, body, { maxBytes: MAX_BYTES, signal }).catch((error: unknown) => {
    throw error instanceof StorageTooLargeError ? tooLarge('1 GiB') : error;
  });
  return {
    fileId: randomUUID(),
    name: fileName(name),
    contentType: contentType(type),
    sizeBytes: stored.size,
    sha256: stored.sha256,
    storageKey,
  };
}
