import { randomUUID } from 'node:crypto';
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  HeadObjectCommand,
  PutObjectCommand,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import type { AskS3 } from './s3_client.ts';

/** The smallest part that S3 takes. One fills while one is sent, so an upload holds at most two of them in memory. */
const PART_BYTES = 5 * 1024 * 1024;
/** What follows a failure must not hold the response up for long. */
const AFTERWARDS_MS = 10_000;

export type S3Upload = Readonly<{
  /** Takes the bytes; waits while both parts are full. The chunk may be used again afterwards. */
  write(chunk: Uint8Array): Promise<void>;
  /** Makes the object visible, whole. */
  commit(): Promise<void>;
  /** Gives up what was sent; never throws. */
  abandon(): Promise<void>;
}>;

/**
 * An upload whose length is not known: one request where the object fits into one part, else a multipart upload. The
 * object appears with the last request and not before. `signal` ends the sending of parts; the requests at both ends are
 * seen through, so that their outcome is known.
 */
export function startS3Upload(
  ask: AskS3,
  target: Readonly<{ Bucket: string; Key: string }>,
  signal?: AbortSignal,
): S3Upload {
  // Says afterwards whether an object is the one of this upload.
  const mark = randomUUID();
  const given = { ...target, Metadata: { upload: mark } };
  const stop = new AbortController();
  const partSignal = signal ? AbortSignal.any([signal, stop.signal]) : stop.signal;
  const parts: { PartNumber: number; ETag: string | undefined }[] = [];
  let filling: Buffer | undefined;
  let spare: Buffer | undefined;
  let filled = 0;
  let uploadId: string | undefined;
  let sending: Promise<void> | undefined;

  async function sendPart(UploadId: string, PartNumber: number, Body: Uint8Array): Promise<void> {
    const command = new UploadPartCommand({ ...target, UploadId, PartNumber, Body });
    const { ETag } = await ask((client, options) => client.send(command, options), { signal: partSignal });
    parts.push({ PartNumber, ETag });
  }

  /** Hands the part over as soon as the one before it has arrived. */
  async function flush(): Promise<void> {
    await sending;
    if (uploadId === undefined) {
      const created = await ask((client, options) => client.send(new CreateMultipartUploadCommand(given), options));
      if (created.UploadId === undefined) throw new Error('the object store began an upload without an id');
      uploadId = created.UploadId;
    }
    const full = filling ?? Buffer.alloc(0);
    sending = sendPart(uploadId, parts.length + 1, full.subarray(0, filled));
    // The next wait for it throws; until then a rejection must not count as unhandled.
    sending.catch(() => {});
    [filling, spare, filled] = [spare, full, 0];
  }

  async function write(chunk: Uint8Array): Promise<void> {
    for (let offset = 0; offset < chunk.byteLength; ) {
      // Not zeroed, so that memory is used as far as it is filled.
      filling ??= Buffer.allocUnsafeSlow(PART_BYTES);
      const piece = chunk.subarray(offset, offset + PART_BYTES - filled);
      filling.set(piece, filled);
      filled += piece.byteLength;
      offset += piece.byteLength;
      if (filled === PART_BYTES) await flush();
    }
  }

  /** The response of the last request may be lost while the object is there. */
  async function landed(): Promise<boolean> {
    try {
      const command = new HeadObjectCommand(target);
      const head = await ask((client, options) => client.send(command, options), { withinMs: AFTERWARDS_MS });
      return head.Metadata?.['upload'] === mark;
    } catch {
      return false;
    }
  }

  async function finish(): Promise<void> {
    if (uploadId === undefined) {
      const Body = filling?.subarray(0, filled) ?? new Uint8Array();
      const command = new PutObjectCommand({ ...given, Body });
      await ask((client, options) => client.send(command, options));
      return;
    }
    const command = new CompleteMultipartUploadCommand({
      ...target,
      UploadId: uploadId,
      MultipartUpload: { Parts: parts },
    });
    await ask((client, options) => client.send(command, options));
  }

  async function commit(): Promise<void> {
    if (uploadId !== undefined && filled > 0) await flush();
    await sending;
    signal?.throwIfAborted();
    try {
      await finish();
    } catch (error) {
      if (!(await landed())) throw error;
    }
  }

  async function abandon(): Promise<void> {
    stop.abort(new Error('the upload is given up'));
    await sending?.catch(() => {});
    if (uploadId === undefined) return;
    const command = new AbortMultipartUploadCommand({ ...target, UploadId: uploadId });
    // What stays is invisible, and removeAbandoned finds it.
    await ask((client, options) => client.send(command, options), { withinMs: AFTERWARDS_MS }).catch(() => {});
  }

  return { write, commit, abandon };
}
