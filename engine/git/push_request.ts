import { lineText, PktLineError, PktReader } from './pkt_line.ts';

/** One update of a ref, as a client asks for it; null: the ref is not there (any more). */
export type RefUpdate = Readonly<{ ref: string; oldOid: string | null; newOid: string | null }>;

export type PushRequest = Readonly<{
  updates: readonly RefUpdate[];
  capabilities: ReadonlySet<string>;
  options: readonly string[];
  /** What follows: the pack, where one is sent. */
  rest: AsyncIterable<Buffer>;
}>;

const MAX_LINES = 20_000;
const NONE = /^0+$/;
const UPDATE = /^([0-9a-f]{40}) ([0-9a-f]{40}) (.+)$/s;

const oidOf = (hex: string) => (NONE.test(hex) ? null : hex);

function textOf(line: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(line);
  } catch {
    throw new PktLineError('names a ref that is not UTF-8');
  }
}

/**
 * Reads what stands before the pack of a push (gitprotocol-pack): `shallow` lines, updates, and options.
 * @returns undefined for the request that only asks whether larger ones are taken
 * @throws PktLineError, or the error of the source
 */
export async function readPushRequest(source: AsyncIterable<Uint8Array>): Promise<PushRequest | undefined> {
  const reader = new PktReader(source);
  const updates: RefUpdate[] = [];
  let capabilities: ReadonlySet<string> | undefined;
  for (let number = 0; ; number += 1) {
    const line = await reader.next();
    if (line === 'flush') break;
    if (line === 'end') throw new PktLineError('ends before its updates do');
    if (number >= MAX_LINES) throw new PktLineError('has too many lines');
    // Where the client's history ends: ours goes on there.
    if (line.subarray(0, 8).toString('latin1') === 'shallow ') continue;
    const nul = capabilities === undefined ? line.indexOf(0) : -1;
    const text = textOf(nul < 0 ? line : line.subarray(0, nul));
    // They stand on the first update, which need not be the first line.
    capabilities ??= new Set(lineText(line.subarray(nul < 0 ? line.length : nul + 1)).split(' '));
    const [, oldHex, newHex, ref] = UPDATE.exec(text.replace(/\n$/, '')) ?? [];
    if (oldHex === undefined || newHex === undefined || ref === undefined) {
      throw new PktLineError('holds an update that is none');
    }
    updates.push({ ref, oldOid: oidOf(oldHex), newOid: oidOf(newHex) });
  }
  if (updates.length === 0) return undefined;
  const options: string[] = [];
  if (capabilities?.has('push-options')) {
    for (let line = await reader.next(); line !== 'flush'; line = await reader.next()) {
      if (line === 'end' || options.length >= MAX_LINES) throw new PktLineError('ends before its options do');
      options.push(lineText(line));
    }
  }
  return { updates, capabilities: capabilities ?? new Set(), options, rest: reader.rest() };
}
