import { createHash } from 'node:crypto';
import { pipeline, type Readable, Transform } from 'node:stream';
import { type Storage, StorageMissingError } from './storage.ts';

/** Where bytes lie, and what was recorded when they were stored. */
export type RecordedBytes = Readonly<{ key: string; size: number; sha256: string }>;

/** Stored bytes are not (any more) what was recorded: they are gone, or were changed or cut short behind our back. */
export class StorageBrokenError extends Error {
  override name = 'StorageBrokenError';
  readonly reason: 'missing' | 'changed';
  constructor(key: string, reason: 'missing' | 'changed', message: string) {
    super(`${key} ${message}`);
    this.reason = reason;
  }
}

const changed = (key: string, message: string) => new StorageBrokenError(key, 'changed', message);

/**
 * Passes bytes on and compares them with what was recorded. The last chunk is held back until the digest is known: a
 * reader never has the whole of a file that was changed, and sees its stream cut.
 */
export function verifying({ key, size, sha256 }: RecordedBytes): Transform {
  const hash = createHash('sha256');
  let held: Buffer | undefined;
  let seen = 0;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      seen += chunk.length;
      if (seen > size) {
        done(changed(key, `has more than the ${size} bytes that are recorded`));
        return;
      }
      hash.update(chunk);
      const before = held;
      held = chunk;
      done(null, before);
    },
    flush(done) {
      if (seen !== size) done(changed(key, `has ${seen} bytes where ${size} are recorded`));
      else if (hash.digest('hex') !== sha256) done(changed(key, 'has another digest than is recorded'));
      else done(null, held);
    },
  });
}

const missing = (key: string) => new StorageBrokenError(key, 'missing', 'is no longer stored');

/**
 * Opens a file whose stream ends in a StorageBrokenError unless it is what was recorded.
 * @throws StorageBrokenError where it is gone, StorageUnavailableError, or the signal's reason
 */
export async function openVerified(
  storage: Pick<Storage, 'get'>,
  file: RecordedBytes,
  signal?: AbortSignal,
): Promise<Readable> {
  const source = await storage.get(file.key, { signal }).catch((error: unknown) => {
    throw error instanceof StorageMissingError ? missing(file.key) : error;
  });
  // The reader gets the error from the stream itself.
  return pipeline(source, verifying(file), () => {});
}

/**
 * Reads the whole file and compares it with what was recorded; `observe` sees the chunks meanwhile.
 * @throws StorageBrokenError, StorageUnavailableError, or the signal's reason
 */
export async function checkVerified(
  storage: Pick<Storage, 'get'>,
  file: RecordedBytes,
  options: Readonly<{ signal?: AbortSignal | undefined; observe?: (chunk: Uint8Array) => void }> = {},
): Promise<void> {
  const { signal, observe } = options;
  const hash = createHash('sha256');
  let seen = 0;
  try {
    for await (const chunk of await storage.get(file.key, { signal })) {
      seen += chunk.length;
      if (seen > file.size) throw changed(file.key, `has more than the ${file.size} bytes that are recorded`);
      hash.update(chunk);
      observe?.(chunk);
    }
  } catch (error) {
    if (!(error instanceof StorageMissingError)) throw error;
    throw missing(file.key);
  }
  if (seen !== file.size) throw changed(file.key, `has ${seen} bytes where ${file.size} are recorded`);
  if (hash.digest('hex') !== file.sha256) throw changed(file.key, 'has another digest than is recorded');
}

/** The bytes of a small file, which are exactly those that were recorded. @throws as `checkVerified` */
export async function readVerified(
  storage: Pick<Storage, 'get'>,
  file: RecordedBytes,
  signal?: AbortSignal,
): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  await checkVerified(storage, file, { signal, observe: (chunk) => chunks.push(chunk) });
  return Buffer.concat(chunks);
}
