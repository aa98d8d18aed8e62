import type { Readable } from 'node:stream';

export type StoredObject = Readonly<{ size: number; sha256: string }>;
export type ListedObject = Readonly<{ key: string; size: number }>;

export type PutOptions = Readonly<{
  /** More bytes than this end the put with StorageTooLargeError. */
  maxBytes?: number;
  signal?: AbortSignal | undefined;
  /** Sees every chunk before it is written, e.g. to find the media type while the bytes pass by. */
  observe?: (chunk: Uint8Array) => void;
}>;

export type GetOptions = Readonly<{
  /** First byte, default 0. */
  start?: number;
  /** Last byte, inclusive, as in HTTP ranges; default the last byte of the object. */
  end?: number;
  signal?: AbortSignal | undefined;
}>;

/** An upload by whoever has the URL, with exactly these headers: length, type and digest are signed. */
export type PresignedPut = Readonly<{ url: string; headers: Readonly<Record<string, string>> }>;

/** What the holder of a URL may upload. */
export type DeclaredObject = Readonly<{ size: number; contentType: string; sha256: string }>;

/**
 * Where bytes lie. Objects are whole or absent: a put that fails or is aborted leaves nothing behind, one that returned
 * survives a power cut. Keys are made by us (`keys.ts`), never taken from a request. Every method throws
 * StorageUnavailableError where the disk or the object store does not do its part.
 */
export type Storage = Readonly<{
  /**
   * Streams `source` to `key`, replacing what was there in one step. The source is read at the pace of the storage and
   * is not destroyed when the put fails, so that a handler can still respond to the request that it came from.
   * @throws StorageTooLargeError, the signal's reason, or the error of the source.
   */
  put(key: string, source: Readable | AsyncIterable<Uint8Array>, options?: PutOptions): Promise<StoredObject>;
  /**
   * Opens the object before it returns: what is missing is known before a response has begun. A range beyond the end
   * is empty.
   * @throws StorageMissingError, RangeError when `end` lies before `start`
   */
  get(key: string, options?: GetOptions): Promise<Readable>;
  /** The size in bytes, or null when there is no such object. */
  stat(key: string): Promise<{ size: number } | null>;
  /** Deleting what is not there is fine: jobs run twice. */
  delete(key: string): Promise<void>;
  /**
   * Deletes at most `batch` objects below `prefix` (default 200). Call it again until `done`; a process that died
   * between two calls has lost nothing. Two at once may both count an object.
   */
  deletePrefix(
    prefix: string,
    options?: { batch?: number; signal?: AbortSignal | undefined },
  ): Promise<{ deleted: number; done: boolean }>;
  /** Objects below `prefix` ordered by key, `limit` a page (default 200); `next` is the `after` of the next page. */
  list(
    prefix: string,
    options?: { after?: string; limit?: number },
  ): Promise<{ objects: ListedObject[]; next: string | null }>;
  /** Removes what puts left that a crash cut off, when it is older than `olderThanMs`. Returns how many. */
  removeAbandoned(olderThanMs: number): Promise<number>;
  /**
   * A URL by which one object of this size, type and digest can be put to `key` for so many seconds, as often as its holder likes.
   * Stores may not compare the digest: whoever reads the object does. Null: the storage has no address of its own.
   */
  presignPut(key: string, object: DeclaredObject, seconds: number): Promise<PresignedPut | null>;
  /**
   * Whether objects can be reached now, decided within a few seconds. @throws StorageUnavailableError that says why not,
   * StorageFullError where nothing can be stored for want of room (a store in the network tells that only when asked to store)
   */
  check(): Promise<void>;
}>;

export class StorageMissingError extends Error {
  override name = 'StorageMissingError';
  readonly key: string;
  constructor(key: string, message = `no stored object ${key}`) {
    super(message);
    this.key = key;
  }
}

export class StorageTooLargeError extends Error {
  override name = 'StorageTooLargeError';
  readonly maxBytes: number;
  constructor(maxBytes: number) {
    super(`more than ${maxBytes} bytes`);
    this.maxBytes = maxBytes;
  }
}

/** The storage cannot do its work now; the message is for whoever runs it, not for clients: it names hosts and buckets. */
export class StorageUnavailableError extends Error {
  override name = 'StorageUnavailableError';
}

/** What is stored can be read and removed; there is no room for more. */
export class StorageFullError extends StorageUnavailableError {
  override name = 'StorageFullError';
}
