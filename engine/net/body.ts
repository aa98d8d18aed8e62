import { pipeline, Readable } from 'node:stream';
import { createBrotliDecompress, createGunzip } from 'node:zlib';
import { NetError, netError } from './errors.ts';

export type BodyLimits = Readonly<{
  /** Bytes as sent, and bytes after decompression: each at most so many. */
  maxBytes: number;
  /** Longest wait for the next bytes. */
  idleMs: number;
  /** A longer body ends at `maxBytes` rather than with an error. */
  cut?: boolean;
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

/** What of each chunk lies within the limit: less than all of it is the last. */
function within({ maxBytes, cut }: BodyLimits, host: string): (chunk: Uint8Array) => Uint8Array {
  let room = maxBytes;
  return (chunk) => {
    if (chunk.length > room && !cut) {
      throw new NetError('too_large', `The response of ${host} is larger than ${maxBytes} bytes.`);
    }
    const taken = chunk.subarray(0, room);
    room -= taken.length;
    return taken;
  };
}

/** The bytes as they come, each wait for the next ones bounded. The time that a slow reader takes does not count. */
async function* awaited(source: Readable, limits: BodyLimits, host: string): AsyncGenerator<Uint8Array> {
  const take = within(limits, host);
  const chunks = source[Symbol.asyncIterator]();
  for (;;) {
    const timer = setTimeout(
      () => source.destroy(new NetError('timed_out', `${host} stopped in the middle of its response.`)),
      limits.idleMs,
    );
    const { done, value } = await chunks.next().finally(() => clearTimeout(timer));
    if (done) return;
    const taken = take(value);
    yield taken;
    if (taken.length < value.length) return;
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
    const take = within(limits, host);
    for await (const chunk of bytes) {
      const taken = take(chunk);
      yield taken;
      if (taken.length < chunk.length) return;
    }
  } catch (error) {
    throw netError(error, host);
  } finally {
    source.destroy();
  }
}
