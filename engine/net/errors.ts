/**
 * Why a request went wrong. `url_refused`, `address_refused`: the address is at fault, and nothing was sent to it.
 * Asking again may help with `unreachable`, `timed_out` and `name_unknown` alone.
 */
export type NetReason =
  | 'url_refused'
  | 'address_refused'
  | 'name_unknown'
  | 'unreachable'
  | 'tls_failed'
  | 'timed_out'
  | 'too_large'
  | 'redirect_loop'
  | 'too_many_redirects'
  | 'bad_response';

/** A request to an address that a user chose has failed. The message is for people: what happened and what to do. */
export class NetError extends Error {
  override name = 'NetError';
  readonly reason: NetReason;
  constructor(reason: NetReason, message: string, options?: ErrorOptions) {
    super(message, options);
    this.reason = reason;
  }
}

const UNREACHABLE = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EADDRNOTAVAIL',
  'EPIPE',
  'UND_ERR_SOCKET',
]);
const UNKNOWN_NAME = new Set(['ENOTFOUND', 'EAI_AGAIN', 'ENODATA', 'ESERVFAIL']);
const TIMED_OUT = new Set([
  'ETIMEDOUT',
  'ETIMEOUT',
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
]);
const TLS = /^(ERR_TLS_|ERR_SSL_|CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|INVALID_CA|HOSTNAME_MISMATCH|EPROTO)/;

function codeOf(error: unknown): string {
  const code = error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined;
  if (typeof code === 'string') return code;
  // The happy case of several addresses: Node gathers what each of them said.
  return error instanceof AggregateError ? codeOf(error.errors[0]) : '';
}

/** What undici, TLS, DNS and zlib throw, in our words. Anything that is not theirs stays as it is. */
export function netError(error: unknown, host: string): unknown {
  if (error instanceof NetError) return error;
  const code = codeOf(error);
  // The process stops: the server has done nothing wrong.
  if (code === 'UND_ERR_DESTROYED' || code === 'UND_ERR_CLOSED') return error;
  const cause = { cause: error };
  if (UNKNOWN_NAME.has(code)) {
    return new NetError('name_unknown', `There is no server named ${host}. Check the spelling of the address.`, cause);
  }
  if (TIMED_OUT.has(code)) return new NetError('timed_out', `${host} did not respond in time.`, cause);
  if (TLS.test(code)) {
    return new NetError('tls_failed', `${host} has no valid certificate, so that nothing was sent to it.`, cause);
  }
  if (code === 'UND_ERR_HEADERS_OVERFLOW' || code === 'HPE_HEADER_OVERFLOW') {
    return new NetError('too_large', `${host} sends longer headers than are accepted.`, cause);
  }
  if (UNREACHABLE.has(code)) return new NetError('unreachable', `${host} cannot be reached.`, cause);
  if (/^(HPE_|Z_|ERR_|UND_ERR_)/.test(code) || (error instanceof Error && error.name === 'HTTPParserError')) {
    return new NetError('bad_response', `${host} sends a broken response.`, cause);
  }
  return error;
}
