import { createHash } from 'node:crypto';
import canonicalize from 'canonicalize';

/** RFC 8785: one text for one JSON value, whatever the order of its members. @throws where `value` is no JSON value. */
export function canonicalJson(value: unknown): string {
  const text = canonicalize(value);
  if (text === undefined) throw new TypeError('not a JSON value');
  return text;
}

/** SHA-256 of the canonical JSON, as 64 lowercase hex characters: the name of immutable content. */
export function canonicalSha256(value: unknown): string {
  return createHash('sha256').update(canonicalJson(value)).digest('hex');
}
