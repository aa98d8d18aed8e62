import { type RecordedBytes, readVerified, type Storage, StorageBrokenError } from '../storage/index.ts';
import { DOCUMENT_MAX_BYTES, DocumentError, decodeDocument, type Entry } from './document.ts';

/**
 * The entries of a stored document, or why it cannot be read: its bytes are gone or were changed, or are no document.
 * @throws StorageUnavailableError: whether it is well is not known then
 */
export async function readDocument(
  storage: Pick<Storage, 'get'>,
  file: RecordedBytes,
  signal?: AbortSignal,
): Promise<{ entries: Entry[] } | { issue: string }> {
  try {
    if (file.size > DOCUMENT_MAX_BYTES) throw new DocumentError(`has more than ${DOCUMENT_MAX_BYTES} bytes`);
    return { entries: decodeDocument(await readVerified(storage, file, signal)) };
  } catch (error) {
    if (error instanceof DocumentError) return { issue: error.message };
    if (!(error instanceof StorageBrokenError)) throw error;
    return { issue: error.reason === 'missing' ? 'is no longer stored' : 'was changed after it was stored' };
  }
}
