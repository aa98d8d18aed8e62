import { Readable } from 'node:stream';
import { detect } from 'chardet';

/** Text has so many zero bytes in one half of its UTF-16 units: those of ASCII characters. */
const MOSTLY = 0.3;

/** Zero bytes at even and at odd places, as shares of the units. */
function zeroShares(bytes: Uint8Array): readonly [even: number, odd: number] {
  const zeros: [number, number] = [0, 0];
  bytes.forEach((byte, index) => {
    if (byte === 0) zeros[(index % 2) as 0 | 1] += 1;
  });
  const units = Math.max(1, bytes.length / 2);
  return [zeros[0] / units, zeros[1] / units];
}

/** The encoding that bytes seem to have that are not UTF-8; undefined for bytes that seem to be no text. */
export function likelyEncoding(bytes: Uint8Array): string | undefined {
  const [even, odd] = zeroShares(bytes);
  if (odd > MOSTLY && even < odd / 2) return 'UTF-16LE';
  if (even > MOSTLY && odd < even / 2) return 'UTF-16BE';
  if (bytes.includes(0)) return undefined;
  const found = detect(bytes);
  return found === null || /^(ASCII|UTF-8)$/.test(found) ? undefined : found;
}

/** UTF-16 text was handed in with a byte order mark and is broken: half a character, or a surrogate without its other half. */
export class BrokenTextError extends Error {
  override name = 'BrokenTextError';
}

function markedEncoding([first, second]: Uint8Array): 'utf-16le' | 'utf-16be' | undefined {
  if (first === 0xff && second === 0xfe) return 'utf-16le';
  return first === 0xfe && second === 0xff ? 'utf-16be' : undefined;
}

async function* converted(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let start: Uint8Array = new Uint8Array();
  /** Null once the bytes are known to be none of UTF-16. */
  let decoder: InstanceType<typeof TextDecoder> | null | undefined;
  const decode = (bytes?: Uint8Array): Uint8Array => {
    try {
      return Buffer.from(decoder?.decode(bytes, { stream: bytes !== undefined }) ?? '');
    } catch (error) {
      throw new BrokenTextError('the text is not valid UTF-16', { cause: error });
    }
  };
  for await (const chunk of source) {
    let bytes: Uint8Array = chunk;
    if (decoder === undefined) {
      start = bytes = Buffer.concat([start, chunk]);
      if (start.length < 2) continue;
      const encoding = markedEncoding(start);
      decoder = encoding ? new TextDecoder(encoding, { fatal: true }) : null;
    }
    yield decoder ? decode(bytes) : bytes;
  }
  if (decoder) yield decode();
  else if (decoder === undefined) yield start;
}

/**
 * The text as UTF-8 without its mark where it begins with the byte order mark of UTF-16, as Windows programs write it; any other
 * bytes as they are.
 * @throws BrokenTextError while it is read
 */
export function utf16ToUtf8(source: Readable): Readable {
  return Readable.from(converted(source), { objectMode: false });
}
