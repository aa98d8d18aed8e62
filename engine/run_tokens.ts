import { hash } from 'node:crypto';

/** What a run is given: the secret of its lease and its execution token are 64 hex digits each. */
const FORM = /(?<![0-9a-f])[0-9a-f]{64,}/gi;
const LENGTH = 64;
const LEASE = /^\d{1,19}\.([0-9a-f]{64})$/;

/**
 * The digests of all in a text that has the form of a run's token. Of a longer run of hex digits both ends are taken, as an
 * escape may stand before a token (`%3D`) and anything behind it: twice the text at most is hashed.
 */
export function digestsOf(text: string): Set<string> {
  const digests = new Set<string>();
  if (text.length < LENGTH) return digests;
  for (const [found] of text.matchAll(FORM)) {
    const digits = found.toLowerCase();
    digests.add(hash('sha256', digits.slice(0, LENGTH)));
    if (digits.length > LENGTH) digests.add(hash('sha256', digits.slice(-LENGTH)));
  }
  return digests;
}

/** The tokens of the run that a lease token and a run's id belong to (docs/decisions/0014-derived-execution-tokens.md). */
export function tokensOfLease(leaseToken: string, runId: string | undefined): string[] {
  const secret = LEASE.exec(leaseToken)?.[1];
  if (secret === undefined) return [];
  return runId === undefined ? [secret] : [secret, hash('sha256', `execution:${runId.toLowerCase()}:${secret}`)];
}

export function containsAny(text: string, tokens: readonly string[]): boolean {
  return tokens.some((token) => token.length <= text.length && text.includes(token));
}

/** True where `text` may be the rest of a token whose beginning stands before it. */
export function mayEndToken(text: string, tokens: readonly string[]): boolean {
  return tokens.some((token) => {
    for (let at = 1; at < token.length; at += 1) {
      const rest = token.slice(at);
      if (text.startsWith(rest) || rest.startsWith(text)) return true;
    }
    return false;
  });
}

export type ByteSearch = Readonly<{
  /** Takes the next bytes. True where a token ends in them. */
  next(chunk: Buffer): boolean;
}>;

/** Looks for tokens in bytes as they pass by, also across the borders of chunks. */
export function byteSearch(tokens: readonly string[]): ByteSearch {
  const needles = tokens.map((token) => Buffer.from(token, 'latin1'));
  const overlap = Math.max(0, ...needles.map((needle) => needle.length - 1));
  let tail: Buffer = Buffer.alloc(0);
  return {
    next(chunk) {
      const border = Buffer.concat([tail, chunk.subarray(0, overlap)]);
      const found = needles.some((needle) => border.includes(needle) || chunk.includes(needle));
      // A copy: the chunk itself is large, and not kept.
      const ended = chunk.length >= overlap ? chunk.subarray(chunk.length - overlap) : border;
      tail = Buffer.from(ended.subarray(Math.max(0, ended.length - overlap)));
      return found;
    },
  };
}
