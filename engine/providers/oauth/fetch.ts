import type { CustomFetchOptions } from 'oauth4webapi';
import { jsonOf, type ProviderClient, type ProviderResponse, type Site } from '../outgoing/index.ts';

type Sent = CustomFetchOptions<string, URLSearchParams | string | undefined>;

const MAX_BYTES = 256 * 1024;
const TOTAL_MS = 15_000;
const NO_BODY = new Set([204, 205, 304]);

/** Refusals in the words of OAuth are for its library to read; that the server is down or limits us is not. */
const isAnswer = (status: number) => status >= 400 && status < 500 && status !== 408 && status !== 429;

/** GitHub refuses with status 200: an error in the body is one, whatever the status is. */
function statusOf(response: ProviderResponse): number {
  const json = response.status === 200 ? jsonOf(response) : undefined;
  const isRefusal = typeof json === 'object' && json !== null && 'error' in json && typeof json.error === 'string';
  return isRefusal ? 400 : response.status;
}

/**
 * The fetch of the OAuth library: what it sends goes through our client, so that token, metadata and revocation addresses are
 * guarded and bounded like all others. What changes something (a code, a rotating refresh token) is sent once.
 */
export function oauthFetch(client: ProviderClient, site: Site, signal: AbortSignal | undefined) {
  return async (url: string, options: Sent): Promise<Response> => {
    const { method, headers, body } = options;
    const response = await client.send(site, {
      method: method === 'POST' ? 'POST' : 'GET',
      effect: method === 'POST' ? 'write' : 'read',
      url,
      headers,
      ...(body === undefined ? {} : { body: String(body) }),
      buckets: [{ key: `${site.provider}:oauth:${new URL(url).host}`, capacity: 100, perSecond: 20, isShared: true }],
      signal,
      maxBytes: MAX_BYTES,
      totalMs: TOTAL_MS,
      accepts: isAnswer,
    });
    const bytes = NO_BODY.has(response.status) ? null : new Uint8Array(response.body);
    return new Response(bytes, { status: statusOf(response), headers: contentHeaders(response.headers) });
  };
}

/** What describes the bytes as they were sent does not describe them decompressed. */
function contentHeaders(headers: Readonly<Record<string, string>>): [string, string][] {
  return Object.entries(headers).filter(([name]) => name !== 'content-encoding' && name !== 'content-length');
}

export type OAuthContext = Readonly<{ client: ProviderClient; signal?: AbortSignal | undefined }>;
