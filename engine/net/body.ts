import { pipeline, Readable } from 'node:stream';
import { createBrotliDecompress, createGunzip } from 'node:zlib';
import { NetError, netError } from './errors.ts';

export type BodyLimits = Readonly<{
  /** Bytes as sent, and bytes after decompression: each at most so many. */
  maxBytes: number;
  /** Longest wait for the next bytes. */
  idleMs: number;
}>;

type Decoder = ReturnType<typeof createGunzip>;

function decoderOf(encoding: string | undefined, host: string): Decoder | null {
  const name = (encoding ?? '').trim().toLowerCase();
  if (name === '' || name === 'identity') return null;
  if (name === 'gzip' || name === 'x-gzip') return createGunzip();
  if (name === 'br') return createBrotliDecompress();
  // Layers of compression are how small bombs become large ones.
  throw new NetError('bad_response', `${host} sends its response in an encoding that was not asked for.`);
}

function counted(maxBytes: number, host: string): (chunk: Uint8Array) => void {
  let bytes = 0;
  return (chunk) => {
    bytes += chunk.length;
    if (bytes > maxBytes) {
      throw new NetError('too_large', `The response of ${host} is larger than ${maxBytes} bytes.`);
    }
  };
}

/** The bytes as they come, each wait for the next ones bounded. The time that a slow reader takes does not count. */
async function* awaited(source: Readable, limits: BodyLimits, host: string): AsyncGenerator<Uint8Array> {
  const count = counted(limits.maxBytes, host);
  const chunks = source[Symbol.asyncIterator]();
  for (;;) {
    const timer = setTimeout(
      () => source.destroy(new NetError('timed_out', `${host} stopped in the middle of its response.`)),
      limits.idleMs,
    );
    const { done, value } = await chunks.next().finally(() => clearTimeout(timer));
    if (done) return;
    count(value);
    yield value;
  }
}

/**
 * The body of a response, decompressed and bounded on both sides of the decompression: a bomb ends at the limit, however
 * small it was sent. Leaving the loop early closes the connection.
 * @throws NetError while it is read
 */
export async function* boundedBody(
  source: Readable,
  encoding: string | undefined,
  limits: BodyLimits,
  host: string,
): AsyncGenerator<Uint8Array, void, void> {
  try {
    const decoder = decoderOf(encoding, host);
    const sent = awaited(source, limits, host);
    // The error of either end arrives in the loop below.
    const bytes = decoder === null ? sent : pipeline(Readable.from(sent, { objectMode: false }), decoder, () => {});
    const count = counted(limits.maxBytes, host);
    for await (const chunk of bytes) {
      count(chunk);
      yield chunk;
    }
  } catch (error) {
    throw netError(error, host);
  } finally {
    source.destroy();
  }
}
