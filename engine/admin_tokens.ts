import { createHash } from 'node:crypto';

/** Who administers, as the audit log calls it, and the token that says so. */
export type AdminToken = Readonly<{ name: string; token: string }>;

const NAMED = /^([a-z][a-z0-9-]{0,39}):(.+)$/;

/** `name:token`; one without a name is named after its digest, which tells two apart and gives nothing away. */
export function namedToken(text: string): AdminToken {
  const [, name, token] = NAMED.exec(text) ?? [];
  if (name !== undefined && token !== undefined) return { name, token };
  return { name: `token-${createHash('sha256').update(text).digest('hex').slice(0, 8)}`, token: text };
}

/** One token for two audiences would let whoever has the lesser one in as the other. */
export function sharesToken(tokens: readonly string[] | undefined, others: readonly string[]): boolean {
  return tokens?.some((token) => others.includes(token)) ?? false;
}
