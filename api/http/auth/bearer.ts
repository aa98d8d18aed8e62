import { createHash, timingSafeEqual } from 'node:crypto';
import type { Request } from 'express';

const MAX_TOKEN = 8192;

/** The token of `Authorization: Bearer …`; undefined when there is none or it is not well-formed. */
export function bearerToken(req: Request): string | undefined {
  const header = req.get('authorization');
  if (!header || header.length > MAX_TOKEN) return undefined;
  return /^Bearer +([\x21-\x7e]+) *$/i.exec(header)?.[1];
}

export function sha256Hex(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

/** A check of a token against a list, whose time tells neither how much of a token fits nor which one did. */
export function tokenMatcher(tokens: readonly string[]): (token: string) => boolean {
  const known = tokens.map((token) => createHash('sha256').update(token).digest());
  return (token) => {
    const given = createHash('sha256').update(token).digest();
    let matches = 0;
    for (const digest of known) matches |= Number(timingSafeEqual(digest, given));
    return matches === 1;
  };
}
