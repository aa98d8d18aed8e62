import type { z } from 'zod';
import { storableText } from '../../storable.ts';
import { ProviderError, type ProviderErrorFacts, providerCode, providerScopes } from './errors.ts';
import { retryAfter } from './retry_after.ts';

export type ProviderResponse = Readonly<{
  status: number;
  /** By lower-case name. */
  headers: Readonly<Record<string, string>>;
  body: Uint8Array;
}>;

/** What a provider's own way of refusing means, where it is not that of the status. */
export type Refusal = Readonly<{
  reason?: 'rejected' | 'forbidden' | 'not_found' | 'rate_limited' | 'unavailable' | 'failed' | undefined;
  code?: string | undefined;
  retryNotBefore?: Date | undefined;
  /** Of OAuth, that it says are missing. */
  scopes?: readonly string[];
}>;

export type ReadRefusal = (
  response: Readonly<{ status: number; headers: Readonly<Record<string, string>>; json: unknown; now: number }>,
) => Refusal;

const JSON_TYPE = /^application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i;
/** An error of a provider may be a page of a proxy; what we look for in one is at its begin. */
const MAX_ERROR_BYTES = 64 * 1024;

/** How NUL and surrogates are written that cannot be stored: rare enough to look at each text only where they are. */
const UNSTORABLE = /\\u(?:0000|d[89a-f])/i;

const storable = (_: string, value: unknown) => (typeof value === 'string' ? storableText(value) : value);

/** The JSON of a body, its texts without what cannot be stored. @throws where it is none; the error quotes it, so it goes no further */
export function storableJson(body: Uint8Array): unknown {
  const text = new TextDecoder('utf-8', { fatal: true }).decode(body);
  return JSON.parse(text, UNSTORABLE.test(text) ? storable : undefined);
}

/** As `storableJson`; undefined where a response is not JSON. */
export function jsonOf({ headers, body }: ProviderResponse): unknown {
  if (!JSON_TYPE.test(headers['content-type'] ?? '')) return undefined;
  try {
    return storableJson(body);
  } catch {
    return undefined;
  }
}

/** @throws ProviderError with `failed` where the response has another shape */
export function parsed<S extends z.ZodType>(provider: string, response: ProviderResponse, schema: S): z.output<S> {
  const result = schema.safeParse(jsonOf(response));
  if (result.success) return result.data;
  throw new ProviderError(provider, 'failed', 'The provider responds in a form that is not the documented one.', {
    status: response.status,
  });
}

const byStatus: Readonly<Record<number, NonNullable<Refusal['reason']>>> = {
  401: 'rejected',
  403: 'forbidden',
  404: 'not_found',
  408: 'unavailable',
  410: 'not_found',
  429: 'rate_limited',
};

const messages: Readonly<Record<NonNullable<Refusal['reason']>, string>> = {
  rejected: 'The provider does not accept the credential.',
  forbidden: 'The credential may not do this at the provider.',
  not_found: 'The provider knows no such thing, or the credential does not see it.',
  rate_limited: 'The provider limits how often it is called.',
  unavailable: 'The provider does not work at the moment.',
  failed: 'The provider refuses the request.',
};

/** Where a provider that limits us does not say for how long. */
const LIMITED_MS = 60_000;

/** What a response that is none of success says, in our words. `sent`: the credentials that the request had. */
export function refusalOf(
  provider: string,
  response: ProviderResponse,
  sent: readonly string[],
  read: ReadRefusal | undefined,
  now: number,
): ProviderError {
  const { status, headers } = response;
  const json = response.body.length <= MAX_ERROR_BYTES ? jsonOf(response) : undefined;
  const refusal = read?.({ status, headers, json, now }) ?? {};
  const reason = refusal.reason ?? byStatus[status] ?? (status >= 500 ? 'unavailable' : 'failed');
  const told = refusal.retryNotBefore ?? retryAfter(headers['retry-after'], now);
  const facts: ProviderErrorFacts = {
    status,
    code: providerCode(refusal.code, sent),
    scopes: providerScopes(refusal.scopes ?? [], sent),
    retryNotBefore: told ?? (reason === 'rate_limited' ? new Date(now + LIMITED_MS) : undefined),
  };
  return new ProviderError(provider, reason, messages[reason], facts);
}
