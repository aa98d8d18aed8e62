import { createHash, randomUUID } from 'node:crypto';
import { constants, type Stats } from 'node:fs';
import { type FileHandle, lstat, mkdir, open, opendir, realpath, rename, rmdir, unlink } from 'node:fs/promises';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { eachChunk } from './chunks.ts';
import { listFiles, removeFiles } from './file_tree.ts';
import { keySegments, prefixSegments } from './keys.ts';
import {
  type GetOptions,
  type PutOptions,
  type Storage,
  StorageFullError,
  StorageMissingError,
  StorageTooLargeError,
  StorageUnavailableError,
} from './storage.ts';

const DIRECTORY_MODE = 0o700;
const FILE_MODE = 0o600;
const INCOMING = '.incoming';
/** An empty file would find room on a full disk. */
const PROBE = Buffer.alloc(64 * 1024);
/** A named pipe in place of a file would hold the thread that opens it until somebody writes: a few stop all reading. */
const READING = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

function hasCode(error: unknown, ...codes: string[]): boolean {
  return error instanceof Error && 'code' in error && codes.includes(String(error.code));
}

const FULL = ['ENOSPC', 'EDQUOT'];
// The disk is broken, read-only or not ours; the process has too many files open.
const DISK_FAILURES = ['EIO', 'EROFS', 'EACCES', 'EPERM', 'EMFILE', 'ENFILE'];

/** Something that is no folder of ours lies where the folder of an object belongs: a link, a file. */
class OccupiedError extends Error {
  override name = 'OccupiedError';
}

// What a put meets below the root where something else than our folders and files lies there.
const OCCUPIED = ['EEXIST', 'ENOTDIR', 'EISDIR', 'ENOTEMPTY', 'ELOOP', 'ENOENT'];

/** What an error means when nothing but the machine can be at fault. */
function diskError(error: unknown): unknown {
  if (hasCode(error, ...FULL)) {
    return new StorageFullError(`there is no room for files: ${(error as Error).message}`, { cause: error });
  }
  if (!(error instanceof OccupiedError || hasCode(error, ...DISK_FAILURES))) return error;
  return new StorageUnavailableError(`files cannot be used: ${(error as Error).message}`, { cause: error });
}

async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory, constants.O_RDONLY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Makes `directory` and what is missing above it, and makes each new entry durable. */
async function makeDirectory(directory: string): Promise<void> {
  const first = await mkdir(directory, { recursive: true, mode: DIRECTORY_MODE });
  if (first === undefined) return;
  for (let made = directory; ; made = path.dirname(made)) {
    await syncDirectory(path.dirname(made));
    if (made === first || made === path.dirname(made)) return;
  }
}

async function writeAll(handle: FileHandle, chunk: Uint8Array): Promise<void> {
  for (let offset = 0; offset < chunk.byteLength; ) {
    const { bytesWritten } = await handle.write(chunk, offset, chunk.byteLength - offset);
    offset += bytesWritten;
  }
}

/**
 * Objects are files below `root`. A put writes to `.incoming/<uuid>`, syncs and renames, so a reader sees the old
 * object or the whole new one. Symbolic links are never followed: below the root everything is a real folder or file.
 */
export function openFileStorage(root: string): Storage {
  const absolute = path.resolve(root);
  const incoming = path.join(absolute, INCOMING);

  /** The folder of a key, checked to lie where its name says: a link in between would lead out of the root. */
  async function folderOf(parts: readonly string[]): Promise<string> {
    const base = await realpath(absolute);
    const expected = path.join(base, ...parts);
    const actual = await realpath(expected);
    if (actual !== expected) {
      throw new OccupiedError(`a symbolic link below the storage root: ${expected}`);
    }
    return actual;
  }

  async function openObject(key: string): Promise<{ handle: FileHandle; stats: Stats }> {
    const parts = keySegments(key);
    let handle: FileHandle;
    try {
      const folder = await folderOf(parts.slice(0, -1));
      handle = await open(path.join(folder, parts.at(-1) ?? ''), READING);
    } catch (error) {
      if (hasCode(error, 'ENOENT', 'ENOTDIR', 'ELOOP', 'ENXIO')) throw new StorageMissingError(key);
      // What lies behind a link is none of ours: to readers the object is not there.
      if (error instanceof OccupiedError) throw new StorageMissingError(key, error.message);
      throw diskError(error);
    }
    const stats = await handle.stat();
    if (stats.isFile()) return { handle, stats };
    await handle.close();
    throw new StorageMissingError(key);
  }

  /** Opens a new file in `.incoming`, which it makes where it is missing. */
  async function openIncoming(temporary: string): Promise<FileHandle> {
    try {
      await makeDirectory(incoming);
      return await open(temporary, 'wx', FILE_MODE);
    } catch (error) {
      if (hasCode(error, ...FULL)) throw diskError(error);
      throw new StorageUnavailableError(`no file can be made in ${absolute}: ${(error as Error).message}`, {
        cause: error,
      });
    }
  }

  /**
   * The folder of a key, made where it is missing. What is there is checked before: nothing is made behind a link, save for
   * one that is put there between that look and the making; such a folder is found by the second look, and not used.
   */
  async function makeFolderOf(parts: readonly string[]): Promise<string> {
    for (let depth = parts.length; ; depth -= 1) {
      try {
        const there = await folderOf(parts.slice(0, depth));
        if (depth === parts.length) return there;
        break;
      } catch (error) {
        if (depth === 0 || !hasCode(error, 'ENOENT')) throw error;
      }
    }
    await makeDirectory(path.join(absolute, ...parts));
    return folderOf(parts);
  }

  async function moveIntoPlace(temporary: string, parts: readonly string[]): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        const folder = await makeFolderOf(parts.slice(0, -1));
        await rename(temporary, path.join(folder, parts.at(-1) ?? ''));
        await syncDirectory(folder);
        return;
      } catch (error) {
        // A delete beside us may have taken the folder away because it was empty.
        if (attempt === 10 || !hasCode(error, 'ENOENT')) throw error;
      }
    }
  }

  async function put(key: string, source: Readable | AsyncIterable<Uint8Array>, options: PutOptions = {}) {
    const parts = keySegments(key);
    const temporary = path.join(incoming, randomUUID());
    const handle = await openIncoming(temporary);
    try {
      const hash = createHash('sha256');
      let size = 0;
      await eachChunk(
        source,
        async (chunk) => {
          size += chunk.byteLength;
          if (options.maxBytes !== undefined && size > options.maxBytes) {
            throw new StorageTooLargeError(options.maxBytes);
          }
          hash.update(chunk);
          options.observe?.(chunk);
          await writeAll(handle, chunk);
        },
        options.signal,
      );
      await handle.sync();
      options.signal?.throwIfAborted();
      await moveIntoPlace(temporary, parts).catch((error: unknown) => {
        if (!hasCode(error, ...OCCUPIED)) throw error;
        throw new OccupiedError(`${absolute} has no place for ${key}: ${(error as Error).message}`, { cause: error });
      });
      return { size, sha256: hash.digest('hex') };
    } catch (error) {
      await unlink(temporary).catch(() => {});
      throw diskError(error);
    } finally {
      await handle.close();
    }
  }

  async function get(key: string, options: GetOptions = {}): Promise<Readable> {
    const { start = 0, end, signal } = options;
    if (end !== undefined && end < start) throw new RangeError(`a range that ends before it starts: ${start}-${end}`);
    signal?.throwIfAborted();
    const { handle } = await openObject(key);
    return handle.createReadStream({
      start,
      ...(end === undefined ? {} : { end }),
      ...(signal === undefined ? {} : { signal }),
    });
  }

  async function stat(key: string) {
    try {
      const { handle, stats } = await openObject(key);
      await handle.close();
      return { size: stats.size };
    } catch (error) {
      if (error instanceof StorageMissingError) return null;
      throw error;
    }
  }

  async function remove(key: string): Promise<void> {
    const parts = keySegments(key);
    try {
      const folder = await folderOf(parts.slice(0, -1));
      await unlink(path.join(folder, parts.at(-1) ?? ''));
    } catch (error) {
      if (!hasCode(error, 'ENOENT', 'ENOTDIR')) throw diskError(error);
    }
    // Empty folders go too; the first one that is in use ends the walk.
    for (let depth = parts.length - 1; depth > 0; depth -= 1) {
      const emptied = await rmdir(path.join(absolute, ...parts.slice(0, depth))).then(
        () => true,
        () => false,
      );
      if (!emptied) return;
    }
  }

  async function folderOfPrefix(prefix: string): Promise<string | null> {
    const parts = prefixSegments(prefix);
    try {
      return await folderOf(parts);
    } catch (error) {
      if (hasCode(error, 'ENOENT', 'ENOTDIR')) return null;
      throw diskError(error);
    }
  }

  async function deletePrefix(prefix: string, options: { batch?: number; signal?: AbortSignal | undefined } = {}) {
    const folder = await folderOfPrefix(prefix);
    if (folder === null) return { deleted: 0, done: true };
    return removeFiles(folder, options.batch ?? 200, options.signal);
  }

  async function list(prefix: string, options: { after?: string; limit?: number } = {}) {
    const folder = await folderOfPrefix(prefix);
    if (folder === null) return { objects: [], next: null };
    const limit = options.limit ?? 200;
    const objects = await listFiles(folder, prefix, options.after ?? '', limit + 1);
    const page = objects.slice(0, limit);
    return { objects: page, next: objects.length > limit ? (page.at(-1)?.key ?? null) : null };
  }

  async function removeAbandoned(olderThanMs: number): Promise<number> {
    let removed = 0;
    try {
      for await (const entry of await opendir(incoming)) {
        const file = path.join(incoming, entry.name);
        const stats = await lstat(file).catch(() => null);
        if (!stats || Date.now() - stats.mtimeMs < olderThanMs) continue;
        await unlink(file).catch(() => {});
        removed += 1;
      }
    } catch (error) {
      if (!hasCode(error, 'ENOENT')) throw error;
    }
    return removed;
  }

  /** A disk that is read-only, full or not mounted for us is found by writing. */
  async function check(): Promise<void> {
    const temporary = path.join(incoming, randomUUID());
    const handle = await openIncoming(temporary);
    try {
      await writeAll(handle, PROBE).finally(() => handle.close());
    } catch (error) {
      throw diskError(error);
    } finally {
      await unlink(temporary).catch(() => {});
    }
  }

  return { put, get, stat, delete: remove, deletePrefix, list, removeAbandoned, presignPut: async () => null, check };
}
