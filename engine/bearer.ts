import { createHash, timingSafeEqual } from 'node:crypto';

const MAX_TOKEN = 8192;

/** The token of `Authorization: Bearer …`; undefined when there is none or it is not well-formed. */
export function bearerOf(header: string | undefined): string | undefined {
  if (!header || header.length > MAX_TOKEN) return undefined;
  return /^Bearer +([\x21-\x7e]+) *$/i.exec(header)?.[1];
}

function digestOf(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

/** Finds whose token one is; the time tells neither how much of it fits nor which one did. */
export function tokenFinder<T>(owners: readonly T[], tokenOf: (owner: T) => string): (token: string) => T | undefined {
  const known = owners.map((owner) => ({ owner, digest: digestOf(tokenOf(owner)) }));
  return (token) => {
    const given = digestOf(token);
    let found: T | undefined;
    for (const { owner, digest } of known) {
      if (timingSafeEqual(digest, given)) found = owner;
    }
    return found;
  };
}

/** The same, where it does not matter whose token it is. */
export function tokenMatcher(tokens: readonly string[]): (token: string) => boolean {
  const find = tokenFinder(tokens, (token) => token);
  return (token) => find(token) !== undefined;
}
