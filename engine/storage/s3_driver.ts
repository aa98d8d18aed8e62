import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import {
  AbortMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadBucketCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  type ListMultipartUploadsCommandOutput,
  ListObjectsV2Command,
  type MultipartUpload,
} from '@aws-sdk/client-s3';
import { eachChunk } from './chunks.ts';
import { keySegments, prefixSegments } from './keys.ts';
import { bodyStream } from './s3_body.ts';
import { openS3 } from './s3_client.ts';
import { NO_BUCKET, responseOf, storeError, storeUnavailable } from './s3_errors.ts';
import type { S3Location } from './s3_location.ts';
import { presignS3Put } from './s3_presign.ts';
import { startS3Upload } from './s3_upload.ts';
import {
  type GetOptions,
  type ListedObject,
  type PutOptions,
  type Storage,
  StorageMissingError,
  StorageTooLargeError,
} from './storage.ts';

const PAGE = 200;
/** One by one, because stores differ in what a deletion of many has to carry; so many at once. */
const DELETIONS = 8;
const CHECK_MS = 3_000;

type Found = Omit<ListMultipartUploadsCommandOutput, '$metadata'>;

/** `work` for each item, so many at a time; the first failure ends it, and nothing goes on behind it. */
async function eachAtOnce<T>(items: readonly T[], atOnce: number, work: (item: T) => Promise<void>): Promise<void> {
  const waiting = items.values();
  let failed = false;
  const lane = async () => {
    for (const item of waiting) {
      if (failed) return;
      try {
        await work(item);
      } catch (error) {
        failed = true;
        throw error;
      }
    }
  };
  const lanes = await Promise.allSettled(Array.from({ length: atOnce }, lane));
  const failure = lanes.find((settled) => settled.status === 'rejected');
  if (failure) throw failure.reason;
}

/**
 * Objects of a bucket below `location.prefix`. They appear whole with the last request of an upload; what a process that
 * died has begun stays invisible until removeAbandoned.
 */
export function openS3Storage(location: S3Location): Storage {
  const Bucket = location.bucket;
  const ask = openS3(location);

  /** Where our key lies in the bucket. @throws RangeError */
  const target = (key: string) => ({ Bucket, Key: location.prefix + keySegments(key).join('/') });
  const below = (prefix: string) => `${location.prefix}${prefixSegments(prefix).join('/')}/`;

  async function put(key: string, source: Readable | AsyncIterable<Uint8Array>, options: PutOptions = {}) {
    const upload = startS3Upload(ask, target(key), options.signal);
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
          await upload.write(chunk);
        },
        options.signal,
      );
      await upload.commit();
      return { size, sha256: hash.digest('hex') };
    } catch (error) {
      await upload.abandon();
      throw error;
    }
  }

  async function get(key: string, { start = 0, end, signal }: GetOptions = {}): Promise<Readable> {
    if (end !== undefined && end < start) throw new RangeError(`a range that ends before it starts: ${start}-${end}`);
    const range = start > 0 || end !== undefined ? { Range: `bytes=${start}-${end ?? ''}` } : {};
    const command = new GetObjectCommand({ ...target(key), ...range });
    try {
      const { Body } = await ask((client, options) => client.send(command, options), { signal });
      if (!(Body instanceof Readable)) throw new Error('a response without a body');
      return bodyStream(Body, (error) => storeError(error, location), signal);
    } catch (error) {
      const { status, code } = responseOf(error);
      if (code === 'NoSuchKey') throw new StorageMissingError(key);
      if (status === 416) return Readable.from([]);
      throw error;
    }
  }

  async function stat(key: string) {
    const command = new HeadObjectCommand(target(key));
    try {
      const { ContentLength = 0 } = await ask((client, options) => client.send(command, options));
      return { size: ContentLength };
    } catch (error) {
      if (responseOf(error).status !== 404) throw error;
      // A response to HEAD has no body: it does not say whether the object or the whole bucket is missing.
      await ask((client, options) => client.send(new HeadBucketCommand({ Bucket }), options)).catch((cause) => {
        throw responseOf(cause).status === 404 ? storeUnavailable(location, NO_BUCKET, cause) : cause;
      });
      return null;
    }
  }

  async function remove(key: string): Promise<void> {
    const command = new DeleteObjectCommand(target(key));
    await ask((client, options) => client.send(command, options));
  }

  async function page(prefix: string, limit: number, after = '', signal?: AbortSignal, withinMs?: number) {
    const command = new ListObjectsV2Command({
      Bucket,
      Prefix: prefix,
      MaxKeys: limit,
      ...(after === '' ? {} : { StartAfter: location.prefix + after }),
    });
    const limits = { signal, ...(withinMs === undefined ? {} : { withinMs }) };
    const { Contents = [], IsTruncated } = await ask((client, options) => client.send(command, options), limits);
    const objects: ListedObject[] = Contents.map(({ Key = '', Size = 0 }) => ({
      key: Key.slice(location.prefix.length),
      size: Size,
    }));
    return { objects, more: IsTruncated === true };
  }

  async function list(prefix: string, { after, limit = PAGE }: { after?: string; limit?: number } = {}) {
    const { objects, more } = await page(below(prefix), limit, after);
    return { objects, next: more ? (objects.at(-1)?.key ?? null) : null };
  }

  async function deletePrefix(prefix: string, options: { batch?: number; signal?: AbortSignal | undefined } = {}) {
    const { signal, batch = PAGE } = options;
    const { objects, more } = await page(below(prefix), batch, '', signal);
    await eachAtOnce(objects, DELETIONS, async ({ key }) => {
      // Not by its segments: what somebody else has put below the prefix goes as well.
      const command = new DeleteObjectCommand({ Bucket, Key: location.prefix + key });
      await ask((client, given) => client.send(command, given), { signal });
    });
    return { deleted: objects.length, done: !more };
  }

  async function giveUp({ Key, UploadId }: MultipartUpload): Promise<boolean> {
    const command = new AbortMultipartUploadCommand({ Bucket, Key, UploadId });
    try {
      await ask((client, options) => client.send(command, options));
      return true;
    } catch (error) {
      // Ended meanwhile, by itself or by another process that cleans.
      if (responseOf(error).status === 404 && responseOf(error).code !== 'NoSuchBucket') return false;
      throw error;
    }
  }

  async function removeAbandoned(olderThanMs: number): Promise<number> {
    const started = Date.now();
    let removed = 0;
    let marker: { KeyMarker?: string | undefined; UploadIdMarker?: string | undefined } = {};
    for (;;) {
      const command = new ListMultipartUploadsCommand({
        Bucket,
        MaxUploads: PAGE,
        ...marker,
        ...(location.prefix === '' ? {} : { Prefix: location.prefix }),
      });
      const found: Found = await ask((client, options) => client.send(command, options)).catch((error) => {
        // Stores without this listing have rules of their own for what is left.
        if (responseOf(error.cause ?? error).status === 501) return { IsTruncated: false };
        throw error;
      });
      for (const upload of found.Uploads ?? []) {
        const begun = upload.Initiated?.getTime() ?? started;
        if (started - begun >= olderThanMs && (await giveUp(upload))) removed += 1;
      }
      if (!found.IsTruncated) return removed;
      marker = { KeyMarker: found.NextKeyMarker, UploadIdMarker: found.NextUploadIdMarker };
    }
  }

  const presignPut: Storage['presignPut'] = (key, object, seconds) => presignS3Put(ask, target(key), object, seconds);

  async function check(): Promise<void> {
    await page(location.prefix, 1, '', undefined, CHECK_MS);
  }

  return { put, get, stat, delete: remove, deletePrefix, list, removeAbandoned, presignPut, check };
}
