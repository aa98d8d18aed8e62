import { createHash } from 'node:crypto';
import { type FileHandle, open, stat } from 'node:fs/promises';
import path from 'node:path';
import { addAbortSignal, type Readable } from 'node:stream';
import { mediaTypeProbe } from '../../engine/media_types.ts';
import { CommandError, EXIT } from './errors.ts';

const MAX_BYTES = 1_073_741_824;

/** What a file is declared to be. */
export type Declared = Readonly<{ name: string; contentType: string; sizeBytes: number; sha256: string }>;

/** A file of this machine while it is sent. */
export type GivenFile = Readonly<{
  file: string;
  size: number;
  /** The bytes that it had when it was opened. */
  read: () => Readable;
  /** @throws CommandError where it is no longer what was opened */
  check: () => Promise<void>;
}>;

export function changedFile(file: string): CommandError {
  return new CommandError(EXIT.data, `${file} changed while it was sent: send it again when nothing writes to it`);
}

function given(file: string, handle: FileHandle, opened: Readonly<{ size: number; mtimeMs: number }>): GivenFile {
  const { size, mtimeMs } = opened;
  return {
    file,
    size,
    read: () => handle.createReadStream({ start: 0, end: size - 1, autoClose: false }),
    async check() {
      const now = await handle.stat();
      if (now.size !== size || now.mtimeMs !== mtimeMs) throw changedFile(file);
    },
  };
}

/** Opens a file for `use`, and closes it afterwards. @throws CommandError where it is none that can be sent */
export async function withFile<T>(file: string, use: (given: GivenFile) => Promise<T>): Promise<T> {
  let handle: FileHandle | undefined;
  try {
    // What is opened without a look may be a pipe, and wait for ever.
    if (!(await stat(file)).isFile()) throw new CommandError(EXIT.data, `${file} is no file`);
    handle = await open(file);
    const opened = await handle.stat();
    if (opened.size === 0) throw new CommandError(EXIT.data, `${file} is empty`);
    if (opened.size > MAX_BYTES) throw new CommandError(EXIT.data, `${file} has more than 1 GiB`);
    return await use(given(file, handle, opened));
  } catch (error) {
    const { code, syscall } = error as NodeJS.ErrnoException;
    if (syscall === undefined) throw error;
    throw new CommandError(EXIT.notFound, `${file} cannot be read (${code})`);
  } finally {
    await handle?.close();
  }
}

/** Reads it once, for what has to be known before it is sent. @throws CommandError where it changes meanwhile */
export async function declare({ file, size, read, check }: GivenFile, signal: AbortSignal): Promise<Declared> {
  const name = path.basename(file);
  const probe = mediaTypeProbe(name);
  const hash = createHash('sha256');
  let sizeBytes = 0;
  try {
    for await (const chunk of addAbortSignal(signal, read())) {
      probe.observe(chunk);
      hash.update(chunk);
      sizeBytes += chunk.length;
    }
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  }
  await check();
  if (sizeBytes !== size) throw changedFile(file);
  return { name, contentType: await probe.mediaType(), sizeBytes, sha256: hash.digest('hex') };
}
