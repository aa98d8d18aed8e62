import { isUtf8 } from 'node:buffer';
import type { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import { isPublicAddress } from './address.ts';
import { boundedBody } from './body.ts';
import { nameResolver, type Resolve } from './connector.ts';
import { NetError, netError } from './errors.ts';
import { parseUrl } from './url.ts';

export const USER_AGENT = 'BusinessRunner/0.1';
const MAX_REDIRECTS = 5;
const REDIRECTS = new Set([301, 302, 303, 307, 308]);

export type WebRequest = Readonly<{
  method?: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  headers?: Readonly<Record<string, string>>;
  /** A stream is sent as it comes, and read once. */
  body?: string | Uint8Array | Readable;
  /** Bytes of the body as sent, and after decompression (default 10 MiB). */
  maxBytes?: number;
  /** A longer body ends there rather than with an error. */
  cut?: boolean;
  /** From the first look at the name to the last byte, redirects included (default 30 s). */
  totalMs?: number;
  /** Longest wait for headers and for the next bytes (default 10 s). */
  idleMs?: number;
  signal?: AbortSignal | undefined;
  /** False: a redirect is a response like others. Default: GET and HEAD follow. */
  follow?: boolean;
  /** Asked before each address is, the first one and those of redirects; it ends the request by throwing. */
  beforeHop?: (url: URL) => void | Promise<void>;
}>;

export type WebResponse = Readonly<{
  /** After all redirects. */
  url: URL;
  status: number;
  /** By lower-case name; the last one of several. */
  headers: Readonly<Record<string, string>>;
  /** Decompressed, bounded, read once. Reading it throws NetError. */
  body: AsyncIterable<Uint8Array>;
  /** For responses whose body is not read to its end: closes the connection. */
  discard(): void;
}>;

export type WebClient = Readonly<{
  /**
   * Asks an address that a user chose. GET and HEAD follow up to five redirects, each checked like the first; others none.
   * Nothing is sent but what is given here: no cookies, no credentials of ours.
   * @throws NetError, the signal's reason, or what `beforeHop` throws
   */
  fetch(address: string | URL, options?: WebRequest): Promise<WebResponse>;
  close(): Promise<void>;
}>;

export type WebClientOptions = Readonly<{
  /** For tests, and for servers that the operator named: any address is asked. */
  allowPrivateAddresses?: boolean;
  /** Which addresses count as public (default: those that are). */
  allows?: (address: string) => boolean;
  resolve?: Resolve;
  ca?: string;
  connectMs?: number;
  /** At once to one server (default 4). */
  connections?: number;
}>;

function headersOf(response: Dispatcher.ResponseData): Record<string, string> {
  const entries = Object.entries(response.headers).map(([name, value]) => {
    return [name.toLowerCase(), (Array.isArray(value) ? value.at(-1) : value) ?? ''] as const;
  });
  return Object.fromEntries(entries);
}

/** An address from a header, whose bytes come as Latin-1: servers send UTF-8, and older ones Latin-1. */
function addressOf(header: string): string {
  const bytes = Buffer.from(header, 'latin1');
  return isUtf8(bytes) && bytes.toString('latin1') === header ? bytes.toString('utf8') : header;
}

/** Ends what is under way with a reason of its own when the time is over. */
function deadline(ms: number, error: () => NetError): { signal: AbortSignal; clear: () => void } {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(error()), ms);
  timer.unref();
  return { signal: controller.signal, clear: () => clearTimeout(timer) };
}

/** A client for addresses that users choose (docs/decisions/0027). */
export function createWebClient(options: WebClientOptions = {}): WebClient {
  const { resolve = nameResolver(), connectMs = 5_000, connections = 4, ca } = options;
  const allows = options.allowPrivateAddresses ? () => true : (options.allows ?? isPublicAddress);
  let closed = false;

  async function open() {
    const { openAgent, request } = await import('./web_agent.ts');
    return { agent: openAgent({ resolve, allows, timeoutMs: connectMs, ca }, connections), request };
  }
  /** Opened by the first request: most processes never send one, and start faster without undici. */
  let opened: ReturnType<typeof open> | undefined;

  async function ask(url: URL, given: WebRequest, signals: AbortSignal[]): Promise<Dispatcher.ResponseData> {
    const host = url.host;
    const headers = deadline(given.idleMs ?? 10_000, () => new NetError('timed_out', `${host} does not respond.`));
    try {
      if (closed) throw new Error('The client is closed.');
      opened ??= open();
      const { agent, request } = await opened;
      return await request(url, {
        dispatcher: agent,
        method: given.method ?? 'GET',
        headers: { 'user-agent': USER_AGENT, 'accept-encoding': 'gzip, br', ...given.headers },
        ...(given.body === undefined ? {} : { body: given.body }),
        signal: AbortSignal.any([...signals, headers.signal]),
      });
    } catch (error) {
      throw netError(error, url.hostname);
    } finally {
      headers.clear();
    }
  }

  async function follow(first: URL, given: WebRequest, signals: AbortSignal[]) {
    const seen = new Set<string>();
    let url = first;
    let sent = given;
    const isRead = given.method === undefined || given.method === 'GET' || given.method === 'HEAD';
    const follows = isRead && given.follow !== false;
    for (;;) {
      if (seen.has(url.href)) throw new NetError('redirect_loop', `${first.host} redirects in a loop.`);
      if (seen.size > MAX_REDIRECTS) {
        throw new NetError('too_many_redirects', `${first.host} redirects more than ${MAX_REDIRECTS} times.`);
      }
      seen.add(url.href);
      await given.beforeHop?.(url);
      const response = await ask(url, sent, signals);
      const location = headersOf(response)['location'];
      if (!REDIRECTS.has(response.statusCode) || location === undefined || !follows) {
        return { url, response };
      }
      // Its bytes are of no interest, and could be endless.
      response.body.on('error', () => {}).destroy();
      const next = parseUrl(addressOf(location), url);
      // What was meant for one server (a key, say) is not for another.
      if (next.origin !== url.origin) sent = { ...sent, headers: acceptOnly(sent.headers) };
      url = next;
    }
  }

  return {
    async fetch(address, given = {}) {
      const first = parseUrl(address);
      const { totalMs = 30_000, idleMs = 10_000, maxBytes = 10 * 1024 * 1024, cut = false } = given;
      const total = deadline(
        totalMs,
        () => new NetError('timed_out', `${first.host} takes longer than ${totalMs} ms.`),
      );
      const signals = given.signal ? [given.signal, total.signal] : [total.signal];
      try {
        given.signal?.throwIfAborted();
        const { url, response } = await follow(first, given, signals);
        const headers = headersOf(response);
        response.body.once('close', total.clear);
        // Without a reader an abort would be an unhandled error; the reader gets it in its loop.
        response.body.on('error', () => {});
        return {
          url,
          status: response.statusCode,
          headers,
          body: boundedBody(response.body, headers['content-encoding'], { maxBytes, idleMs, cut }, url.hostname),
          discard: () => void response.body.destroy(),
        };
      } catch (error) {
        total.clear();
        throw error;
      }
    },
    async close() {
      closed = true;
      await (await opened)?.agent.destroy();
    },
  };
}

function acceptOnly(headers: WebRequest['headers'] = {}): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => /^accept(-language)?$/i.test(name)));
}
