import type { Readable } from 'node:stream';
import { z } from 'zod';
import { Problem } from '../../engine/db/problem.ts';
import { mapping } from '../../engine/mapping.ts';
import { receiveFile, type Storage, StorageTooLargeError } from '../../engine/storage/index.ts';
import { toProblem } from '../http/errors.ts';

/** Longest output or task input: 1 GiB (docs/interface.md 8.3). */
export const UPLOAD_MAX_BYTES = 1_073_741_824;

/** One file as it was stored: what the backend found, not what the sender claimed. */
export const storedFileSchema = z
  .object({
    path: z.string(),
    mediaType: z.string().describe('Determined from the bytes.'),
    sizeBytes: z.int(),
    sha256: z.string().describe('Of the bytes, in hex.'),
  })
  .meta({ id: 'StoredFile', example: { mediaType: 'application/json' } });

export const storedFileRow = z
  .object({ path: z.string(), media_type: z.string(), size: z.int(), sha256: z.string() })
  .pipe(mapping((row) => ({ path: row.path, mediaType: row.media_type, sizeBytes: row.size, sha256: row.sha256 })));

export type ReceivedFile = Readonly<{
  key: string;
  size: number;
  sha256: string;
  mediaType: string;
  /** Why a file whose name stands for text is none, for people. */
  textProblem: string | null;
}>;

/**
 * Stores an upload under a fresh key, then records it by `record`. When the record is refused, the bytes go; when its
 * outcome is unknown (Postgres went away in the middle of the commit), they stay, for a row may name them.
 * @throws Problem 413, and whatever `record` throws
 */
export async function storeAndRecord<T>(
  storage: Storage,
  upload: Readonly<{
    key: string;
    path: string;
    source: Readable;
    signal: AbortSignal;
    /** Default `UPLOAD_MAX_BYTES`, and `payload_too_large` beyond. */
    maxBytes?: number;
    tooLargeCode?: string;
  }>,
  record: (file: ReceivedFile) => Promise<T>,
): Promise<T> {
  const { key, path, source, signal, maxBytes = UPLOAD_MAX_BYTES, tooLargeCode = 'payload_too_large' } = upload;
  const limits = { fileName: path, maxBytes, signal };
  const file = await receiveFile(storage, key, source, limits).catch((error: unknown) => {
    if (!(error instanceof StorageTooLargeError)) throw error;
    throw new Problem(413, tooLargeCode, `A file has at most ${maxBytes} bytes.`);
  });
  try {
    return await record({ key, ...file });
  } catch (error) {
    if (toProblem(error).problem.status < 500) await storage.delete(key);
    throw error;
  }
}
