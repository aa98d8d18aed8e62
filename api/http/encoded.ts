import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import type { Request, Response } from 'express';
import { noneMatchHits } from './ranges.ts';

/** Nearly the size of the best quality (44 of 39 kB for the OpenAPI document) in a thirtieth of the time. */
const BROTLI_QUALITY = 6;

type Representation = Readonly<{ body: Buffer; etag: string }>;

/** Content that never changes while the process runs, as it is and compressed. */
export type EncodedContent = Readonly<{
  identity: Representation;
  br: Representation | undefined;
  gzip: Representation | undefined;
}>;

/** Runs `make` at the first call and keeps what it makes; a failure is not kept. */
export function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => {
    made ??= make().catch((error: unknown) => {
      made = undefined;
      throw error;
    });
    return made;
  };
}

/** Compresses outside of the event loop. What does not get smaller, such as a picture, is kept as it is alone. */
export async function encodeContent(content: string | Buffer): Promise<EncodedContent> {
  const body = Buffer.from(content);
  const digest = createHash('sha256').update(body).digest('base64url').slice(0, 22);
  const params = { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY, [constants.BROTLI_PARAM_SIZE_HINT]: body.length };
  const [br, gz] = await Promise.all([promisify(brotliCompress)(body, { params }), promisify(gzip)(body)]);
  // A strong entity tag names exact bytes: each encoding has its own.
  const smaller = (packed: Buffer, encoding: string) =>
    packed.length < body.length ? { body: packed, etag: `"${digest}-${encoding}"` } : undefined;
  return { identity: { body, etag: `"${digest}"` }, br: smaller(br, 'br'), gzip: smaller(gz, 'gzip') };
}

/**
 * Responds to a GET or HEAD in the best encoding that the client takes; 304 while it has the same bytes. Only for content
 * like this: event streams and stored files are never compressed, so that nothing holds them back.
 */
export function sendEncoded(
  req: Request,
  res: Response,
  content: EncodedContent,
  mediaType: string,
  cacheControl = 'no-cache',
): void {
  const encoding = (['br', 'gzip'] as const).find((one) => content[one] && req.acceptsEncodings(one));
  const { body, etag } = content[encoding ?? 'identity'] ?? content.identity;
  res.set({ ETag: etag, Vary: 'Accept-Encoding', 'Cache-Control': cacheControl });
  if (noneMatchHits(req.get('if-none-match'), etag)) {
    res.status(304).end();
    return;
  }
  if (encoding) res.setHeader('Content-Encoding', encoding);
  res.setHeader('Content-Type', mediaType);
  res.setHeader('Content-Length', body.length);
  res.end(req.method === 'HEAD' ? undefined : body);
}
