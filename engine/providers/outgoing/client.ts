import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import type { z } from 'zod';
import {
  createWebClient,
  isPublicAddress,
  nameResolver,
  netError,
  openChecked,
  type WebClient,
  type WebClientOptions,
  type WebRequest,
  type WebResponse,
} from '../../net/index.ts';
import type { Bucket, Budgets } from './budgets.ts';
import { networkFailure, ProviderError } from './errors.ts';
import type { CallOutcome, ObserveCall } from './observe.ts';
import { type OriginMap, replacedOrigin, secureUrl } from './origins.ts';
import { type ProviderResponse, parsed, type ReadRefusal, refusalOf } from './response.ts';

/** How long one provider's word holds a bucket that all organizations take from. */
export const SHARED_HOLD_MS = 60_000;

/** Where the requests of one provider may go, and how it says no. */
export type Site = Readonly<{
  provider: string;
  /** Its own origins; `chosen`: an address that a person or a server named, which the guard checks. */
  origins: readonly string[] | 'chosen';
  readRefusal?: ReadRefusal;
  /** False: what has moved is not asked at its new place, which may be another's. */
  follow?: false;
}>;

type IsComplete = (chunk: Uint8Array) => boolean;

export type ProviderRequest = Readonly<{
  /** Default GET. */
  method?: NonNullable<WebRequest['method']>;
  /** A read is tried again where that may help; a write never is. */
  effect: 'read' | 'write';
  url: string | URL;
  headers?: Readonly<Record<string, string>>;
  body?: string | Uint8Array;
  /** Credentials that are in the body: no error repeats them. */
  secrets?: readonly string[];
  /** All of them give a call, or it is not sent. */
  buckets: readonly Bucket[];
  signal?: AbortSignal | undefined;
  /** Default 4 MiB. */
  maxBytes?: number;
  /** From the first attempt to the last byte of the last one (default 20 s). */
  totalMs?: number;
  /** Statuses that are a response here, and no refusal. */
  accepts?: (status: number) => boolean;
  /**
   * Made for each response: gets its chunks one by one, and returns true where nothing more is awaited. Streams of events may stay
   * open. Undefined: it is read to its end.
   */
  isComplete?: (headers: Readonly<Record<string, string>>) => IsComplete | undefined;
}>;

/** A request whose body and response are streams. It is sent once. */
export type StreamRequest = Readonly<
  Pick<ProviderRequest, 'method' | 'url' | 'headers' | 'buckets' | 'signal'> & {
    body?: Uint8Array | Readable;
    /** Longest wait for the headers of the response, and for its next bytes. */
    idleMs: number;
    totalMs: number;
    /** Of the response; default: without a bound. */
    maxBytes?: number;
  }
>;

/** The bytes of a response as they come; whoever does not read them to their end discards them. */
export type ProviderStream = Readonly<Pick<WebResponse, 'status' | 'headers' | 'body' | 'discard'>>;

/** A call that is not one of HTTP. */
export type OtherCall = Readonly<{
  provider: string;
  method: string;
  /** For the log: a host. */
  target: string;
  buckets: readonly Bucket[];
  signal?: AbortSignal | undefined;
}>;

export type ProviderClient = Readonly<{
  /** @throws ProviderError, or the signal's reason */
  send(site: Site, request: ProviderRequest): Promise<ProviderResponse>;
  /** What `schema` reads of a JSON response. @throws ProviderError, or the signal's reason */
  json<S extends z.ZodType>(site: Site, request: ProviderRequest, schema: S): Promise<z.output<S>>;
  /** No redirect is followed. @throws ProviderError, or the signal's reason; ProviderError too while the body is read */
  open(site: Site, request: StreamRequest): Promise<ProviderStream>;
  /** The address to send a browser to: that of the provider, or what stands in for it. */
  browserUrl(url: URL): URL;
  /** An address that somebody named, as one that may be called. @throws ProviderError with `refused` */
  secureUrl(provider: string, address: string | URL): URL;
  /** A call that is not one of HTTP, in its budgets, counted and logged like all. @throws ProviderError, or what `run` throws */
  counted<T>(call: OtherCall, run: () => Promise<T>): Promise<T>;
  /**
   * A connection for a protocol that is not HTTP, to a server that a person or another server named. The guard checks it.
   * @throws ProviderError, the signal's reason, or what the network says
   */
  connect(provider: string, hostname: string, port: number, signal?: AbortSignal): Promise<Socket>;
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

/** To an origin. Organizations share them: who waits for a slow provider must not keep the others from it. */
const CONNECTIONS = 256;
const MAX_BYTES = 4 * 1024 * 1024;
const TOTAL_MS = 20_000;
const ATTEMPTS = 3;
const FIRST_BACKOFF_MS = 500;
const LONGEST_BACKOFF_MS = 4_000;

/** Of a refusal no more is looked at. */
const MAX_REFUSAL_BYTES = 64 * 1024;

/** What of a request may be a credential: the header that is made for one, and what is said to be in the body. */
function credentialsOf({
  headers = {},
  secrets = [],
}: Pick<ProviderRequest, 'headers' | 'secrets'>): readonly string[] {
  const own = Object.entries(headers).flatMap(([name, value]) => (/^authorization$/i.test(name) ? [value] : []));
  return [...own, ...secrets];
}

function endsAfter(bytes: number): IsComplete {
  let seen = 0;
  return (chunk) => {
    seen += chunk.length;
    return seen >= bytes;
  };
}

/** What goes wrong while a body is read, as the provider's error. */
async function* named(provider: string, body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, void> {
  try {
    yield* body;
  } catch (error) {
    throw networkFailure(provider, error);
  }
}

async function bytesOf(body: AsyncIterable<Uint8Array>, isComplete?: IsComplete): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) {
    chunks.push(chunk);
    if (isComplete?.(chunk)) break;
  }
  return Buffer.concat(chunks);
}

/**
 * The one client for all providers (docs/interface.md 10.7): fixed origins, each address checked by the guard, no redirect
 * to another origin, bytes and seconds bounded, budgets shared by all processes.
 */
export function createProviderClient(options: ProviderClientOptions): ProviderClient {
  const { allowPrivateAddresses, origins, budgets, observe, random = Math.random, now = Date.now } = options;
  const web: WebClient = createWebClient({ ...options.net, allowPrivateAddresses, connections: CONNECTIONS });

  const guard = {
    resolve: options.net?.resolve ?? nameResolver(),
    allows: allowPrivateAddresses ? () => true : (options.net?.allows ?? isPublicAddress),
    timeoutMs: options.net?.connectMs ?? 5_000,
  };

  function target(site: Site, request: Pick<ProviderRequest, 'url'>): URL {
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

  function stayAt({ provider }: Site, { origin }: URL, hop: URL): void {
    if (hop.origin !== origin) throw new ProviderError(provider, 'failed', 'The provider redirects to another server.');
  }

  async function openOnce(site: Site, request: StreamRequest): Promise<ProviderStream> {
    const url = target(site, request);
    const { method = 'GET', headers = {}, body, signal, idleMs, totalMs } = request;
    try {
      const response = await web.fetch(url, {
        method,
        // As it is: what the client of a protocol gets are the bytes that its server sent.
        headers: { 'accept-encoding': 'identity', ...headers },
        ...(body === undefined ? {} : { body }),
        signal,
        maxBytes: request.maxBytes ?? Number.POSITIVE_INFINITY,
        idleMs,
        totalMs,
        beforeHop(hop) {
          if (hop.href === url.href) return;
          throw new ProviderError(site.provider, 'failed', 'The provider redirects to another address.');
        },
      });
      if (response.status >= 200 && response.status < 300) {
        return { ...response, body: named(site.provider, response.body) };
      }
      const { status } = response;
      const page = await bytesOf(response.body, endsAfter(MAX_REFUSAL_BYTES));
      const refused = { status, headers: response.headers, body: page };
      throw refusalOf(site.provider, refused, credentialsOf(request), site.readRefusal, now());
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
        ...(site.follow === false ? { follow: false } : {}),
        beforeHop: (hop) => stayAt(site, url, hop),
      });
      const { status, headers } = response;
      return { status, headers, body: await bytesOf(response.body, request.isComplete?.(headers)) };
    } catch (error) {
      throw networkFailure(site.provider, error);
    }
  }

  async function attempt(site: Site, request: ProviderRequest, totalMs: number): Promise<ProviderResponse> {
    const url = target(site, request);
    const response = await once(site, url, request, totalMs);
    const { status } = response;
    if ((status >= 200 && status < 300) || request.accepts?.(status)) return response;
    throw refusalOf(site.provider, response, credentialsOf(request), site.readRefusal, now());
  }

  /** What one organization has met must not keep the others from the provider for a day. */
  async function hold(buckets: readonly Bucket[], until: Date): Promise<void> {
    const soon = new Date(Math.min(until.getTime(), now() + SHARED_HOLD_MS));
    const shared = buckets.filter(({ isShared }) => isShared);
    const own = buckets.filter(({ isShared }) => !isShared);
    if (own.length > 0) await budgets.postpone(own, until);
    if (shared.length > 0) await budgets.postpone(shared, soon);
  }

  /** Runs a call once, in its budgets, and tells how it went. */
  async function inBudgets<T>(
    call: OtherCall,
    number: number,
    run: () => Promise<T>,
    statusOf: (result: T) => number | undefined,
  ) {
    const begin = performance.now();
    const { provider, method, target: to, buckets } = call;
    const tell = (outcome: CallOutcome, status?: number) => {
      const durationMs = Math.round(performance.now() - begin);
      observe({ provider, method, target: to, outcome, status, attempt: number, durationMs });
    };
    const notBefore = await budgets.take(buckets);
    if (notBefore) {
      tell('throttled');
      const facts = { retryNotBefore: notBefore, isOurs: true };
      throw new ProviderError(provider, 'rate_limited', 'The provider is called as often as it allows.', facts);
    }
    try {
      const result = await run();
      tell('ok', statusOf(result));
      return result;
    } catch (error) {
      if (call.signal?.aborted) {
        tell('aborted');
        throw call.signal.reason;
      }
      if (error instanceof ProviderError) {
        tell(error.reason, error.status);
        if (error.retryNotBefore) await hold(buckets, error.retryNotBefore);
      }
      throw error;
    }
  }

  function callOf(site: Site, request: ProviderRequest | StreamRequest): OtherCall {
    const url = URL.parse(String(request.url));
    return {
      provider: site.provider,
      method: request.method ?? 'GET',
      // The path of an address that somebody chose may hold a secret.
      target: `${url?.host ?? ''}${site.origins === 'chosen' ? '' : (url?.pathname ?? '')}`,
      buckets: request.buckets,
      signal: request.signal,
    };
  }
  const statusOf = ({ status }: { status: number }) => status;

  function observed(site: Site, request: ProviderRequest, number: number, totalMs: number): Promise<ProviderResponse> {
    return inBudgets(callOf(site, request), number, () => attempt(site, request, totalMs), statusOf);
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
    open: (site, request) => inBudgets(callOf(site, request), 1, () => openOnce(site, request), statusOf),
    json: async (site, request, schema) => parsed(site.provider, await send(site, request), schema),
    browserUrl: (url) => replacedOrigin(url, origins),
    secureUrl(provider, address) {
      try {
        return secureUrl(address, allowPrivateAddresses);
      } catch (error) {
        throw networkFailure(provider, error);
      }
    },
    counted: (call, run) => inBudgets(call, 1, run, () => undefined),
    async connect(provider, hostname, port, signal) {
      try {
        return await openChecked(hostname, port, guard, signal);
      } catch (error) {
        throw networkFailure(provider, netError(error, hostname));
      }
    },
    close: () => web.close(),
  };
}
