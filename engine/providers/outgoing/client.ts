import { setTimeout as pause } from 'node:timers/promises';
import type { z } from 'zod';
import { createWebClient, type WebClient, type WebClientOptions, type WebRequest } from '../../net/index.ts';
import type { Bucket, Budgets } from './budgets.ts';
import { networkFailure, ProviderError } from './errors.ts';
import type { CallOutcome, ObserveCall } from './observe.ts';
import { type OriginMap, replacedOrigin, secureUrl } from './origins.ts';
import { type ProviderResponse, parsed, type ReadRefusal, refusalOf } from './response.ts';

/** Where the requests of one provider may go, and how it says no. */
export type Site = Readonly<{
  provider: string;
  /** Its own origins; `chosen`: an address that a person or a server named, which the guard judges. */
  origins: readonly string[] | 'chosen';
  readRefusal?: ReadRefusal;
}>;

export type ProviderRequest = Readonly<{
  /** Default GET. */
  method?: NonNullable<WebRequest['method']>;
  /** A read is tried again where that may help; a write never is. */
  effect: 'read' | 'write';
  url: string | URL;
  headers?: Readonly<Record<string, string>>;
  body?: string | Uint8Array;
  /** All of them give a call, or it is not sent. */
  buckets: readonly Bucket[];
  signal?: AbortSignal | undefined;
  /** Default 4 MiB. */
  maxBytes?: number;
  /** From the first attempt to the last byte of the last one (default 20 s). */
  totalMs?: number;
  /** Statuses that are a response here, and no refusal. */
  accepts?: (status: number) => boolean;
}>;

export type ProviderClient = Readonly<{
  /** @throws ProviderError, or the signal's reason */
  send(site: Site, request: ProviderRequest): Promise<ProviderResponse>;
  /** What `schema` reads of a JSON response. @throws ProviderError, or the signal's reason */
  json<S extends z.ZodType>(site: Site, request: ProviderRequest, schema: S): Promise<z.output<S>>;
  /** The address to send a browser to: that of the provider, or what stands in for it. */
  browserUrl(url: URL): URL;
  /** @throws NetError with `url_refused` */
  secureUrl(address: string | URL): URL;
  close(): Promise<void>;
}>;

export type ProviderClientOptions = Readonly<{
  allowPrivateAddresses: boolean;
  origins: OriginMap;
  budgets: Budgets;
  observe: ObserveCall;
  /** For the guard: how names are resolved, which addresses count as public. */
  net?: Pick<WebClientOptions, 'resolve' | 'allows' | 'ca' | 'connectMs'>;
  /** Spreads what is tried again (0 to 1). */
  random?: () => number;
  now?: () => number;
}>;

const MAX_BYTES = 4 * 1024 * 1024;
const TOTAL_MS = 20_000;
const ATTEMPTS = 3;
const FIRST_BACKOFF_MS = 500;
const LONGEST_BACKOFF_MS = 4_000;

async function bytesOf(body: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/**
 * The one client for all providers (docs/interface.md 10.7): fixed origins, each address checked by the guard, no redirect
 * to another origin, bytes and seconds bounded, budgets shared by all processes.
 */
export function createProviderClient(options: ProviderClientOptions): ProviderClient {
  const { allowPrivateAddresses, origins, budgets, observe, random = Math.random, now = Date.now } = options;
  const web: WebClient = createWebClient({ ...options.net, allowPrivateAddresses, connections: 16 });

  function target(site: Site, request: ProviderRequest): URL {
    try {
      const url = new URL(request.url);
      if (site.origins !== 'chosen' && !site.origins.includes(url.origin)) {
        throw new ProviderError(site.provider, 'refused', 'The address is none of the provider.');
      }
      return replacedOrigin(origins.has(url.origin) ? url : secureUrl(url, allowPrivateAddresses), origins);
    } catch (error) {
      throw networkFailure(site.provider, error);
    }
  }

  async function once(site: Site, url: URL, request: ProviderRequest, totalMs: number): Promise<ProviderResponse> {
    try {
      const response = await web.fetch(url, {
        method: request.method ?? 'GET',
        headers: { accept: 'application/json', ...request.headers },
        ...(request.body === undefined ? {} : { body: request.body }),
        signal: request.signal,
        maxBytes: request.maxBytes ?? MAX_BYTES,
        totalMs,
        idleMs: totalMs,
        beforeHop(hop) {
          if (hop.origin === url.origin) return;
          throw new ProviderError(site.provider, 'failed', 'The provider redirects to another server.');
        },
      });
      return { status: response.status, headers: response.headers, body: await bytesOf(response.body) };
    } catch (error) {
      throw networkFailure(site.provider, error);
    }
  }

  async function attempt(site: Site, request: ProviderRequest, totalMs: number): Promise<ProviderResponse> {
    const url = target(site, request);
    const response = await once(site, url, request, totalMs);
    const { status } = response;
    if ((status >= 200 && status < 300) || request.accepts?.(status)) return response;
    throw refusalOf(site.provider, response, site.readRefusal, now());
  }

  /** Sends it once, in its budgets, and tells how it went. */
  async function observed(site: Site, request: ProviderRequest, number: number, totalMs: number) {
    const begin = performance.now();
    const tell = (outcome: CallOutcome, status?: number) => {
      const url = URL.parse(String(request.url));
      observe({
        provider: site.provider,
        method: request.method ?? 'GET',
        target: `${url?.host ?? ''}${site.origins === 'chosen' ? '' : (url?.pathname ?? '')}`,
        outcome,
        status,
        attempt: number,
        durationMs: Math.round(performance.now() - begin),
      });
    };
    const notBefore = await budgets.take(request.buckets);
    if (notBefore) {
      tell('throttled');
      throw new ProviderError(site.provider, 'rate_limited', 'The provider is called as often as it allows.', {
        retryNotBefore: notBefore,
      });
    }
    try {
      const response = await attempt(site, request, totalMs);
      tell('ok', response.status);
      return response;
    } catch (error) {
      request.signal?.throwIfAborted();
      if (error instanceof ProviderError) tell(error.reason, error.status);
      if (error instanceof ProviderError && error.retryNotBefore) {
        await budgets.postpone(request.buckets, error.retryNotBefore);
      }
      throw error;
    }
  }

  /** How long to wait before it is sent again; undefined: it is not. */
  function backoff(error: unknown, request: ProviderRequest, number: number, leftMs: number): number | undefined {
    if (!(error instanceof ProviderError) || request.effect === 'write' || number >= ATTEMPTS) return undefined;
    if (error.reason !== 'unavailable' && error.reason !== 'rate_limited') return undefined;
    // Full jitter: those who failed together do not come back together.
    const spread = random() * Math.min(LONGEST_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** number);
    const ms = Math.max(0, (error.retryNotBefore?.getTime() ?? 0) - now()) + spread;
    return ms < leftMs && ms <= 2 * LONGEST_BACKOFF_MS ? ms : undefined;
  }

  async function send(site: Site, request: ProviderRequest): Promise<ProviderResponse> {
    const end = performance.now() + (request.totalMs ?? TOTAL_MS);
    for (let number = 1; ; number += 1) {
      try {
        return await observed(site, request, number, Math.max(1, Math.ceil(end - performance.now())));
      } catch (error) {
        const ms = backoff(error, request, number, end - performance.now());
        if (ms === undefined) throw error;
        await pause(ms, undefined, request.signal ? { signal: request.signal } : {}).catch(() => {});
        request.signal?.throwIfAborted();
      }
    }
  }

  return {
    send,
    json: async (site, request, schema) => parsed(site.provider, await send(site, request), schema),
    browserUrl: (url) => replacedOrigin(url, origins),
    secureUrl: (address) => secureUrl(address, allowPrivateAddresses),
    close: () => web.close(),
  };
}
