import { createHmac, randomBytes } from 'node:crypto';

export type Consumer = Readonly<{ key: string; secret: string }>;
export type UserToken = Readonly<{ token: string; secret: string }>;

/** RFC 3986: encodeURIComponent leaves five characters that a signature needs encoded. */
export function percentEncode(text: string): string {
  return encodeURIComponent(text).replace(/[!*'()]/g, (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`);
}

const bySortedPair = ([nameA, valueA]: readonly [string, string], [nameB, valueB]: readonly [string, string]) => {
  if (nameA !== nameB) return nameA < nameB ? -1 : 1;
  return valueA < valueB ? -1 : valueA > valueB ? 1 : 0;
};

/** The text that is signed (RFC 5849, 3.4.1): method, address without its query, all parameters in order. */
function signatureBase(method: string, url: URL, parameters: readonly (readonly [string, string])[]): string {
  const sorted = parameters
    .map(([name, value]) => [percentEncode(name), percentEncode(value)] as const)
    .sort(bySortedPair)
    .map((pair) => pair.join('='))
    .join('&');
  return [method.toUpperCase(), `${url.origin}${url.pathname}`, sorted].map(percentEncode).join('&');
}

/**
 * The header `Authorization` of OAuth 1.0a with HMAC-SHA1. Parameters of the query are signed; a body of JSON is not, and
 * nothing of ours sends a form.
 * @param extra `oauth_callback`, `oauth_verifier`
 */
export function oauth1Header(
  request: Readonly<{ method: string; url: URL }>,
  consumer: Consumer,
  user: UserToken | undefined,
  options: Readonly<{ extra?: Readonly<Record<string, string>>; nonce?: string; timestamp?: number }> = {},
): string {
  const { nonce = randomBytes(16).toString('hex'), timestamp = Math.floor(Date.now() / 1_000) } = options;
  const oauth: Record<string, string> = {
    oauth_consumer_key: consumer.key,
    oauth_nonce: nonce,
    oauth_signature_method: 'HMAC-SHA1',
    oauth_timestamp: String(timestamp),
    ...(user === undefined ? {} : { oauth_token: user.token }),
    oauth_version: '1.0',
    ...options.extra,
  };
  const parameters = [...Object.entries(oauth), ...request.url.searchParams];
  const key = `${percentEncode(consumer.secret)}&${percentEncode(user?.secret ?? '')}`;
  const signature = createHmac('sha1', key)
    .update(signatureBase(request.method, request.url, parameters))
    .digest('base64');
  const fields = Object.entries({ ...oauth, oauth_signature: signature }).sort(bySortedPair);
  return `OAuth ${fields.map(([name, value]) => `${percentEncode(name)}="${percentEncode(value)}"`).join(', ')}`;
}
