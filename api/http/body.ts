import { Readable } from 'node:stream';
import type { Request, Response } from 'express';
import { Problem } from '../../engine/db/problem.ts';
import { invalid, validationFailed } from './errors.ts';
import type { RequestState } from './request_state.ts';
import type { StreamBody, StreamedBody } from './stream_body.ts';
import { storableIssue } from './validation.ts';

export const JSON_LIMIT = 1024 * 1024;
const JSON_TIMEOUT_MS = 30_000;
const STREAM_IDLE_MS = 60_000;

/** The client stopped sending before its body was complete. */
export class ClientGoneError extends Error {
  override name = 'ClientGoneError';
}

const tooLarge = (limit: number, code = 'payload_too_large') =>
  new Problem(413, code, `The body is larger than the ${limit} bytes that are allowed here.`);

const unsupported = (message: string) => new Problem(415, 'unsupported_media_type', message);

/** The declared length; undefined for chunked bodies. */
export function declaredLength(req: Request): number | undefined {
  const header = req.get('content-length');
  return header === undefined ? undefined : Number(header);
}

/** True when a body follows the headers (it may still be empty when chunked). */
export function hasBody(req: Request): boolean {
  return req.get('transfer-encoding') !== undefined || (declaredLength(req) ?? 0) > 0;
}

/** Sends the `100 Continue` that the client waits for; only when its body is really wanted. */
function askForBody(res: Response, state: RequestState): void {
  if (!state.awaitsContinue) return;
  state.awaitsContinue = false;
  res.writeContinue();
}

/** One for all: with one for each, requests stayed alive until the next full collection (scripts/bench/README.md). */
function ignore(): void {}

/** The whole body, at most `limit` bytes. Stops reading, without closing the connection, when there is more. */
function collect(req: Request, limit: number): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const chunks: Buffer[] = [];
  let size = 0;
  const onData = (chunk: Buffer) => {
    size += chunk.length;
    if (size > limit) reject(tooLarge(limit));
    else chunks.push(chunk);
  };
  const onGone = () => reject(new ClientGoneError('the client went away while it sent its body'));
  const onEnd = () => {
    req.off('close', onGone);
    resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks, size));
  };
  const timer = setTimeout(
    () => reject(new Problem(408, 'request_timeout', 'The body did not arrive in time.')),
    JSON_TIMEOUT_MS,
  );
  req.on('data', onData).once('end', onEnd).once('error', onGone).once('close', onGone);
  return promise.finally(() => {
    clearTimeout(timer);
    req.pause();
    req.off('data', onData).off('end', onEnd).off('close', onGone).off('error', onGone);
    // Whatever happens to the connection from here on, nobody waits for this body.
    req.on('error', ignore);
  });
}

const jsonTypes = /^application\/(json|merge-patch\+json)\s*(;\s*charset\s*=\s*"?utf-?8"?\s*)?$/i;

/** Stored as they come, encoded bytes would be taken for what they encode. */
function checkEncoding(req: Request): void {
  const encoding = req.get('content-encoding') ?? 'identity';
  if (!/^identity$/i.test(encoding)) throw unsupported('Send the body without a Content-Encoding.');
}

function checkJsonType(req: Request): void {
  checkEncoding(req);
  const type = req.get('content-type') ?? '';
  const merge = /merge-patch/i.test(type);
  if (!jsonTypes.test(type) || (merge && req.method !== 'PATCH')) {
    throw unsupported('Send the body as application/json.');
  }
}

function decodeUtf8(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw invalid('', 'The body is not valid UTF-8.', 'invalid_encoding');
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw invalid('', 'The body is not valid JSON.', 'invalid_json');
  }
}

/**
 * Reads a JSON body; undefined when there is none.
 * @throws Problem 400, 408, 413 or 415
 */
export async function readJson(req: Request, res: Response, state: RequestState): Promise<unknown> {
  if (!hasBody(req)) return undefined;
  if ((declaredLength(req) ?? 0) > JSON_LIMIT) throw tooLarge(JSON_LIMIT);
  // A chunked body may turn out empty; then its type does not matter.
  const chunked = req.get('transfer-encoding') !== undefined;
  if (!chunked || req.get('content-type') !== undefined) checkJsonType(req);
  askForBody(res, state);
  const bytes = await collect(req, JSON_LIMIT);
  if (bytes.length === 0) return undefined;
  checkJsonType(req);
  const value = parseJson(decodeUtf8(bytes));
  const issue = storableIssue(value);
  if (issue) throw validationFailed([issue]);
  return value;
}

/** The media type of a streamed body, without parameters, and that it is sent as it is. @throws Problem 415 */
export function checkStreamType(req: Request, body: StreamBody): void {
  checkEncoding(req);
  const type = (req.get('content-type') ?? '').split(';')[0]?.trim().toLowerCase() ?? '';
  if (body.mediaTypes.includes(type)) return;
  throw unsupported(`Send the body as ${body.mediaTypes.join(' or ')}.`);
}

/**
 * The request body as a stream of its own. Destroying it leaves the connection alone, so that a refusal in the middle
 * of an upload can still get a response; the rest is drained by `endUnread`.
 * @throws Problem 413 when the declared length is too large; the stream fails with it when the real one is
 */
export function openStreamedBody(req: Request, res: Response, state: RequestState, body: StreamBody): StreamedBody {
  if ((declaredLength(req) ?? 0) > body.maxBytes) throw tooLarge(body.maxBytes, body.tooLargeCode);
  askForBody(res, state);
  let size = 0;
  let idle: NodeJS.Timeout | undefined;

  const stream = new Readable({
    read() {
      req.resume();
    },
    destroy(error, done) {
      clearTimeout(idle);
      req.off('data', onData).off('end', onEnd).off('close', onGone).off('error', onGone).pause();
      req.on('error', ignore);
      done(error);
    },
  });
  // It may fail before its reader listens, or when no one ever will: an error that nobody hears ends the process. The
  // reader gets it all the same.
  stream.on('error', ignore);
  function onData(chunk: Buffer) {
    size += chunk.length;
    idle?.refresh();
    if (size > body.maxBytes) stream.destroy(tooLarge(body.maxBytes, body.tooLargeCode));
    else if (!stream.push(chunk)) req.pause();
  }
  function onEnd() {
    clearTimeout(idle);
    // The request closes by itself now, while our reader may still be busy with what was buffered.
    req.off('close', onGone);
    stream.push(null);
  }
  function onGone() {
    stream.destroy(new ClientGoneError('the client went away while it sent its body'));
  }
  // Runs also while our own side is slow to take the data; a minute of that is a failure too.
  idle = setTimeout(
    () => stream.destroy(new Problem(408, 'request_timeout', 'No data arrived for a minute.')),
    STREAM_IDLE_MS,
  );
  if (req.readableEnded) stream.push(null);
  else req.on('data', onData).once('end', onEnd).once('close', onGone).once('error', onGone).pause();
  return stream;
}

const DRAIN_BYTES = 16 * 1024 * 1024;
const DRAIN_MS = 3_000;

/**
 * True when the rest of the body is too long, or of unknown length, to be read for the sake of the next request on
 * this connection; the response then says `Connection: close`.
 */
export function leavesConnection(req: Request, state: RequestState): boolean {
  if (req.complete || !hasBody(req)) return false;
  return state.awaitsContinue || (declaredLength(req) ?? Number.POSITIVE_INFINITY) > JSON_LIMIT;
}

/**
 * Waits until the client has sent the rest of its body, for a bounded time and size. Closing a socket that holds unread
 * data resets the connection, and the reset may destroy the response before the client has read it.
 */
export function drain(req: Request): Promise<void> {
  if (req.complete || req.destroyed) return Promise.resolve();
  const { promise, resolve } = Promise.withResolvers<void>();
  let size = 0;
  const onData = (chunk: Buffer) => {
    size += chunk.length;
    if (size > DRAIN_BYTES) resolve();
  };
  const done = () => resolve();
  const timer = setTimeout(done, DRAIN_MS);
  req.on('data', onData).once('end', done).once('close', done).once('error', done).resume();
  return promise.finally(() => {
    clearTimeout(timer);
    req.off('data', onData);
  });
}
