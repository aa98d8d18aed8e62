import { pipeline } from 'node:stream/promises';
import { create as contentDisposition } from 'content-disposition';
import type { Request, Response } from 'express';
import { Problem } from '../../engine/db/problem.ts';
import {
  checkVerified,
  type Storage,
  StorageBrokenError,
  StorageMissingError,
  verifying,
} from '../../engine/storage/index.ts';
import { ifRangeHolds, noneMatchHits, parseRange } from './ranges.ts';

export type StoredBytes = Readonly<{
  /** Where the bytes are read from. */
  storage: Pick<Storage, 'get' | 'stat'>;
  key: string;
  /** As recorded when the bytes were stored. */
  size: number;
  sha256: string;
  mediaType: string;
  fileName: string;
  signal?: AbortSignal | undefined;
  /**
   * Retained evidence: ranges, and files of at most `CHECKED_FIRST_BYTES`, are compared with the digest before anything
   * is sent, and bytes that were changed are 409 `state_conflict`.
   */
  evidence?: boolean;
}>;

/** A second reading of so much is not felt; of more, the comparison happens on the way out. */
const CHECKED_FIRST_BYTES = 4_194_304;

function missing(): Problem {
  return new Problem(404, 'not_found', 'The bytes of this file are no longer stored.');
}

async function openBytes(bytes: StoredBytes, start: number, end: number) {
  try {
    const options = bytes.size === 0 ? {} : { start, end };
    return await bytes.storage.get(bytes.key, { ...options, signal: bytes.signal });
  } catch (error) {
    if (error instanceof StorageMissingError) throw missing();
    throw error;
  }
}

/** What is recorded has to lie there whole: a short response under a length that promises more would hang the client. */
async function checkStored(bytes: StoredBytes): Promise<void> {
  const stats = await bytes.storage.stat(bytes.key);
  if (!stats) throw missing();
  if (stats.size !== bytes.size) {
    const message = `has ${stats.size} bytes where ${bytes.size} are recorded`;
    throw new StorageBrokenError(bytes.key, 'changed', message);
  }
}

/** Evidence that is not what was retained is a state of the organization that its owner has to know, no failure of ours. */
async function checkEvidence(bytes: StoredBytes, check: () => Promise<void>): Promise<void> {
  try {
    await check();
  } catch (error) {
    if (!bytes.evidence || !(error instanceof StorageBrokenError)) throw error;
    if (error.reason === 'missing') throw missing();
    throw new Problem(409, 'state_conflict', 'The stored bytes are not those that were retained: they were changed.');
  }
}

/** The name alone: no folders, and no half of a surrogate pair, which no header can carry. */
function downloadName(fileName: string): string {
  return fileName.slice(fileName.lastIndexOf('/') + 1).toWellFormed();
}

/**
 * Responds to a GET or HEAD with stored bytes: entity tag, single ranges, 304, download name (docs/interface.md 10.4).
 * Returns when the last byte is handed over or the client has gone. A whole file is compared with its digest on the way; one that
 * was changed never ends well.
 * @throws Problem 404, 416 and, for evidence, 409 before anything is sent; after that an error ends the connection.
 */
export async function sendBytes(req: Request, res: Response, bytes: StoredBytes): Promise<void> {
  const etag = `"${bytes.sha256}"`;
  const validators = { ETag: etag, 'Cache-Control': 'private, no-cache' };
  if (noneMatchHits(req.get('if-none-match'), etag)) {
    res.status(304).set(validators).end();
    return;
  }
  // Ranges are defined for GET alone (RFC 9110, 14.2).
  const wanted = req.method === 'GET' && ifRangeHolds(req.get('if-range'), etag) ? req.get('range') : undefined;
  const range = parseRange(wanted, bytes.size);
  if (range === 'unsatisfiable') {
    throw new Problem(416, 'range_not_satisfiable', `The file has ${bytes.size} bytes.`, undefined, {
      'Content-Range': `bytes */${bytes.size}`,
    });
  }
  await checkEvidence(bytes, () => checkStored(bytes));
  if (bytes.evidence && (range !== 'whole' || bytes.size <= CHECKED_FIRST_BYTES)) {
    await checkEvidence(bytes, () => checkVerified(bytes.storage, bytes, { signal: bytes.signal }));
  }
  const { start, end } = range === 'whole' ? { start: 0, end: bytes.size - 1 } : range;
  const source = req.method === 'HEAD' ? null : await openBytes(bytes, start, end);
  res.status(range === 'whole' ? 200 : 206).set(validators);
  if (range !== 'whole') res.setHeader('Content-Range', `bytes ${start}-${end}/${bytes.size}`);
  // What strangers wrote is never of a type that a browser renders; which type it is stands beside it.
  res.setHeader('Content-Type', 'application/octet-stream');
  res.setHeader('X-Media-Type', bytes.mediaType);
  res.setHeader('Content-Length', end - start + 1);
  res.setHeader('Accept-Ranges', 'bytes');
  res.setHeader('X-Content-Type-Options', 'nosniff');
  res.setHeader('Content-Disposition', contentDisposition(downloadName(bytes.fileName)));
  if (!source) {
    res.end();
    return;
  }
  try {
    if (range === 'whole') await pipeline(source, verifying(bytes), res);
    else await pipeline(source, res);
  } catch (error) {
    // A client that hangs up in the middle is no error of ours; a disk that fails is.
    const hungUp = error instanceof Error && 'code' in error && error.code === 'ERR_STREAM_PREMATURE_CLOSE';
    if (!hungUp && !bytes.signal?.aborted) throw error;
  }
}
