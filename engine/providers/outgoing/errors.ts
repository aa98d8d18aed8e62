import { NetError, type NetReason } from '../../net/index.ts';
import { repeating } from '../../secret_values.ts';

/**
 * Why a provider did not do what it was asked to. `rejected`: it does not accept the credential. `forbidden`: the credential
 * is good and may not do this. `not_found`: there is no such thing, or the credential does not see it. `rate_limited`: not
 * before `retryNotBefore`. `unavailable`: it is down, slow or broke off, and may recover by itself. `refused`: the address is
 * at fault, and nothing was sent to it. `blocked`: the organization blocks its domain. `too_large`: its response is longer than what was
 * to be read of it. `failed`: anything else, which asking again does not mend.
 */
export type ProviderReason =
  | 'rejected'
  | 'forbidden'
  | 'not_found'
  | 'rate_limited'
  | 'unavailable'
  | 'refused'
  | 'blocked'
  | 'too_large'
  | 'failed';

export type ProviderErrorFacts = Readonly<{
  /** Of the provider's response. */
  status?: number;
  /** The provider's own code of the error: a word, never a sentence. */
  code?: string | undefined;
  retryNotBefore?: Date | undefined;
  /** It says nothing of the provider: a budget or a block of ours, what another process does, a time-out that the caller chose. */
  isOurs?: boolean;
  /** Those of OAuth that the provider says are missing: `providerScopes` has read them. */
  scopes?: readonly string[];
  /** Of a write: nothing was done, though that does not follow from the reason and the status. */
  isRefusal?: boolean;
}>;

/** The message is ours. No text of a provider is in it, nor in its cause: responses can hold what was sent to them. */
export class ProviderError extends Error {
  override name = 'ProviderError';
  readonly reason: ProviderReason;
  readonly provider: string;
  readonly status: number | undefined;
  readonly code: string | undefined;
  readonly retryNotBefore: Date | undefined;
  readonly isOurs: boolean;
  readonly scopes: readonly string[];
  readonly isRefusal: boolean;
  constructor(provider: string, reason: ProviderReason, message: string, facts: ProviderErrorFacts = {}) {
    super(message);
    this.provider = provider;
    this.reason = reason;
    this.status = facts.status;
    this.code = facts.code;
    this.retryNotBefore = facts.retryNotBefore;
    this.isOurs = facts.isOurs ?? false;
    this.scopes = facts.scopes ?? [];
    this.isRefusal = facts.isRefusal ?? false;
  }
}

const CODE = /^[A-Za-z][A-Za-z0-9_.-]{0,63}$/;

/** A shorter part of what was sent is no credential. */
const MIN_PART = 6;

/** Each text and its parts, those of `Basic` as they were before: what a credential may be within. */
function partsOf(text: string): readonly string[] {
  const parts = text.split(/[\s,;=&"]+/);
  const basic = /^basic$/i.test(parts[0] ?? '')
    ? Buffer.from(parts[1] ?? '', 'base64')
        .toString()
        .split(':')
    : [];
  return [...parts, ...basic].filter((part) => part.length >= MIN_PART);
}

const SCOPE = /^[\x21\x23-\x5b\x5d-\x7e]{1,200}$/;
const MAX_SCOPES = 20;

/** Scopes that a provider names, without any that repeats a credential that was `sent`. At most 20. */
export function providerScopes(values: readonly string[], sent: readonly string[]): readonly string[] {
  const isRepeat = repeating(sent.flatMap(partsOf));
  const scopes = values.filter((value) => SCOPE.test(value) && !isRepeat(value));
  return [...new Set(scopes)].slice(0, MAX_SCOPES);
}

/**
 * What a provider calls the error, where it is a word: a sentence, a number or a token is none, and neither is what repeats a
 * credential that was `sent` with the request (headers, passwords).
 */
export function providerCode(value: unknown, sent: readonly string[] = []): string | undefined {
  if (typeof value !== 'string' || !CODE.test(value) || /[A-Za-z0-9]{32}/.test(value)) return undefined;
  const parts = sent.flatMap(partsOf);
  const isEcho = repeating(parts)(value) || parts.some((part) => part.includes(value));
  return isEcho ? undefined : value;
}

const reasons: Readonly<Record<NetReason, ProviderReason>> = {
  url_refused: 'refused',
  address_refused: 'refused',
  name_unknown: 'unavailable',
  unreachable: 'unavailable',
  timed_out: 'unavailable',
  tls_failed: 'failed',
  too_large: 'too_large',
  redirect_loop: 'failed',
  too_many_redirects: 'failed',
  bad_response: 'failed',
};

const messages: Readonly<Record<NetReason, string>> = {
  url_refused: 'The address may not be called: it has to begin with https://, without a user name, on a usual port.',
  address_refused: 'The address is not one of the public internet, so it is not called.',
  name_unknown: 'The name of the server does not lead to an address.',
  unreachable: 'The provider cannot be reached, or broke off.',
  timed_out: 'The provider did not respond in time.',
  tls_failed: 'The provider has no valid certificate, so that nothing was sent to it.',
  too_large: 'The response of the provider is too large.',
  redirect_loop: 'The provider redirects in a loop.',
  too_many_redirects: 'The provider redirects too often.',
  bad_response: 'The provider sends a broken response.',
};

/** What went wrong on the way, as the provider's error. Anything that is not of the network stays as it is. */
export function networkFailure(provider: string, error: unknown): unknown {
  if (!(error instanceof NetError)) return error;
  // Nothing was sent.
  const isRefusal = error.reason === 'tls_failed' || error.reason === 'name_unknown';
  return new ProviderError(provider, reasons[error.reason], messages[error.reason], { isRefusal });
}

function restated(error: ProviderError, facts: ProviderErrorFacts): ProviderError {
  const { provider, reason, message, status, code, retryNotBefore, isOurs, scopes, isRefusal } = error;
  const own = { code, retryNotBefore, isOurs, scopes, isRefusal, ...(status === undefined ? {} : { status }) };
  return new ProviderError(provider, reason, message, { ...own, ...facts });
}

/**
 * The same error of what came before a write was sent, so that nothing was done. The signal of the write ends it there, too: its reason
 * becomes an error that says so. `provider`: for that one. Of a read the reason stays what it is: its caller may have left.
 */
export function undone(error: unknown, provider: string, signal?: AbortSignal | undefined): unknown {
  if (signal?.aborted && error === signal.reason) {
    const message = 'The time of the call was over before anything was done.';
    return new ProviderError(provider, 'unavailable', message, { isRefusal: true });
  }
  return error instanceof ProviderError ? restated(error, { isRefusal: true }) : error;
}

/** Of the clocks of a request and of its call, which are started one after the other, either may ring first. */
const CLOCKS_MS = 50;

/**
 * The same error, where it is that the time of a call was over that its caller had chosen shorter than is usual: it says nothing of the
 * provider. `endMs`: of that time, by `performance.now()`.
 */
export function cutShort(error: unknown, endMs: number): unknown {
  if (!(error instanceof ProviderError) || error.reason !== 'unavailable' || error.status !== undefined) return error;
  return performance.now() < endMs - CLOCKS_MS ? error : restated(error, { isOurs: true });
}
