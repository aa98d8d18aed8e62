// The frames of git's protocol (gitprotocol-common): four hex digits say how long a line is, themselves included.

const LONGEST = 65_520;

/** What is not a frame of git's protocol. */
export class PktLineError extends Error {
  override name = 'PktLineError';
}

export const FLUSH = Buffer.from('0000');

export function pktLine(data: string | Uint8Array): Buffer {
  const bytes = Buffer.from(data as Uint8Array);
  if (bytes.length + 4 > LONGEST) throw new RangeError('longer than a line of git');
  return Buffer.concat([Buffer.from((bytes.length + 4).toString(16).padStart(4, '0')), bytes]);
}

/** A line without its line feed. */
export function lineText(line: Buffer): string {
  const text = line.toString('utf8');
  return text.endsWith('\n') ? text.slice(0, -1) : text;
}

/** Reads frames off a stream of bytes, and then what follows them. Lines are never looked for, only counted. */
export class PktReader {
  readonly #chunks: AsyncIterator<Uint8Array>;
  #held: Buffer = Buffer.alloc(0);
  #ended = false;

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#chunks = source[Symbol.asyncIterator]();
  }

  /** False where the stream ends before there are so many bytes. */
  async #fill(length: number): Promise<boolean> {
    while (this.#held.length < length && !this.#ended) {
      const { done, value } = await this.#chunks.next();
      if (done) this.#ended = true;
      else this.#held = this.#held.length === 0 ? Buffer.from(value) : Buffer.concat([this.#held, value]);
    }
    return this.#held.length >= length;
  }

  #take(length: number): Buffer {
    const taken = this.#held.subarray(0, length);
    this.#held = this.#held.subarray(length);
    return taken;
  }

  /** The data of the next line; `flush`, or `end` where nothing is left. @throws PktLineError */
  async next(): Promise<Buffer | 'flush' | 'end'> {
    if (!(await this.#fill(4))) {
      if (this.#held.length === 0) return 'end';
      throw new PktLineError('ends in the middle of a line');
    }
    const digits = this.#held.toString('latin1', 0, 4);
    const length = /^[0-9a-f]{4}$/i.test(digits) ? Number.parseInt(digits, 16) : Number.NaN;
    if (length === 0) {
      this.#take(4);
      return 'flush';
    }
    if (!(length >= 4 && length <= LONGEST)) throw new PktLineError('holds what is not a line of git');
    if (!(await this.#fill(length))) throw new PktLineError('ends in the middle of a line');
    return this.#take(length).subarray(4);
  }

  /** What is left, as it comes. */
  async *rest(): AsyncGenerator<Buffer, void, void> {
    if (this.#held.length > 0) yield this.#take(this.#held.length);
    while (!this.#ended) {
      const { done, value } = await this.#chunks.next();
      if (done) this.#ended = true;
      else yield Buffer.from(value.buffer, value.byteOffset, value.byteLength);
    }
  }
}
