import { Readable } from 'node:stream';
import type { Request, Response } from 'express';
import { Problem } from '../../engine/db/problem.ts';
import { bodyPace } from './body_pace.ts';
import { invalid, validationFailed } from './errors.ts';
import type { RequestState } from './request_state.ts';
import type { StreamBody, StreamedBody } from './stream_body.ts';
import type { HttpTiming } from './timing.ts';
import { storableIssue } from './validation.ts';

export const JSON_LIMIT = 1024 * 1024;

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
function collect(req: Request, limit: number, timing: HttpTiming): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const chunks: Buffer[] = [];
  let size = 0;
  const pace = bodyPace(timing, reject);
  const onData = (chunk: Buffer) => {
    size += chunk.length;
    pace.arrived(chunk.length);
    if (size > limit) reject(tooLarge(limit));
    else chunks.push(chunk);
  };
  const onGone = () => reject(new ClientGoneError('the client went away while it sent its body'));
  const onEnd = () => {
    req.off('close', onGone);
    resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks, size));
  };
  pace.reading(true);
  req.on('data', onData).once('end', onEnd).once('error', onGone).once('close', onGone);
  return promise.finally(() => {
    pace.stop();
    req.pause();
    req.off('data', onData).off('end', onEnd).off('close', onGone).off('error', onGone);
    // Whatever happens to the connection from here on, nobody waits for this body.
    req.on('error', ignore);
  });
}

const jsonTypes = /^application\/(json|merge-patch\+json)\s*(;\s*charset\s*=\s*"?utf-?8"?\s*)?$/i;

/** Stored as they come, encoded bytes would be taken for what they encode. */
function checkEncoding(req: Request, taken: readonly string[] = []): void {
  const encoding = (req.get('content-encoding') ?? 'identity').toLowerCase();
  if (encoding === 'identity' || taken.includes(encoding)) return;
  if (taken.length > 0)
    throw unsupported(`Send the body as it is, or with the Content-Encoding ${taken.join(' or ')}.`);
  throw unsupported('Send the body without a Content-Encoding.');
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
  const bytes = await collect(req, JSON_LIMIT, state.timing);
  if (bytes.length === 0) return undefined;
  checkJsonType(req);
  const value = parseJson(decodeUtf8(bytes));
  const issue = storableIssue(value);
  if (issue) throw validationFailed([issue]);
  return value;
}

/** What the headers of a streamed body have to say before anybody looks at it. @throws Problem 413 or 415 */
export function checkStream(req: Request, body: StreamBody): void {
  if ((declaredLength(req) ?? 0) > body.maxBytes) throw tooLarge(body.maxBytes, body.tooLargeCode);
  checkEncoding(req, body.encodings);
  const type = (req.get('content-type') ?? '').split(';')[0]?.trim().toLowerCase() ?? '';
  if (body.mediaTypes.includes(type) || body.mediaTypes.includes('*/*')) return;
  throw unsupported(`Send the body as ${body.mediaTypes.join(' or ')}.`);
}

/**
 * The request body as a stream of its own. Destroying it leaves the connection alone, so that a refusal in the middle
 * of an upload still reaches the client; what is left of the body is for `readRest`.
 * It fails with Problem 413 when the body is too large, with 408 when it comes too slowly, and with what `refusalOf` returns for
 * a chunk.
 */
export function openStreamedBody(
  req: Request,
  res: Response,
  state: RequestState,
  body: StreamBody,
  refusalOf?: (chunk: Buffer) => Problem | undefined,
): StreamedBody {
  askForBody(res, state);
  let size = 0;
  const pace = bodyPace(state.timing, (error) => stream.destroy(error));

  const stream = new Readable({
    read() {
      pace.reading(true);
      req.resume();
    },
    destroy(error, done) {
      pace.stop();
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
    pace.arrived(chunk.length);
    const refusal = size > body.maxBytes ? tooLarge(body.maxBytes, body.tooLargeCode) : refusalOf?.(chunk);
    if (refusal) stream.destroy(refusal);
    else if (!stream.push(chunk)) {
      pace.reading(false);
      req.pause();
    }
  }
  function onEnd() {
    pace.stop();
    // The request closes by itself now, while our reader may still be busy with what was buffered.
    req.off('close', onGone);
    stream.push(null);
  }
  function onGone() {
    stream.destroy(new ClientGoneError('the client went away while it sent its body'));
  }
  if (req.readableEnded) onEnd();
  else req.on('data', onData).once('end', onEnd).once('close', onGone).once('error', onGone).pause();
  return stream;
}

/**
 * True when the rest of the body is too long, or of unknown length, to be read for the sake of the next request on
 * this connection; the response then says `Connection: close`.
 */
export function leavesConnection(req: Request, state: RequestState): boolean {
  if (req.complete || !hasBody(req)) return false;
  return state.awaitsContinue || (declaredLength(req) ?? Number.POSITIVE_INFINITY) > JSON_LIMIT;
}
