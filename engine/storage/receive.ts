import type { Readable } from 'node:stream';
import { mediaTypeProbe } from '../media_types.ts';
import type { Storage, StoredObject } from './storage.ts';

/** `textProblem`: why a file whose name stands for text is none, for people. */
export type Received = StoredObject & Readonly<{ mediaType: string; textProblem: string | null }>;

/**
 * Stores an upload and finds its media type from the bytes as they pass by.
 * @throws StorageTooLargeError, the signal's reason, or the error of the source; then nothing is stored.
 */
export async function receiveFile(
  storage: Storage,
  key: string,
  source: Readable,
  options: Readonly<{ fileName: string; maxBytes?: number; signal?: AbortSignal | undefined }>,
): Promise<Received> {
  const { fileName, ...limits } = options;
  const probe = mediaTypeProbe(fileName);
  const stored = await storage.put(key, source, { ...limits, observe: probe.observe });
  return { ...stored, mediaType: await probe.mediaType(), textProblem: probe.textProblem() };
}
