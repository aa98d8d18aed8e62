import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import type { RequestOptions } from '@modelcontextprotocol/sdk/shared/protocol.js';
import { createParser } from 'eventsource-parser';
import { ProviderError, type ProviderResponse } from '../outgoing/index.ts';
import type { ProviderContext } from '../provider.ts';
import { buckets, KEY, site } from './site.ts';

const REQUEST_MS = 15_000;
/** Longer than ours, so that it is our request that is said to be late. */
const SDK_MS = 30_000;
const GOODBYE_MS = 2_000;
const MAX_BYTES = 4 * 1024 * 1024;
/** These change nothing at the server, so that they may be sent again. */
const READS = new Set(['initialize', 'notifications/initialized', 'ping', 'tools/list']);
const EVENT_STREAM = /^text\/event-stream\b/i;

type Message = Readonly<{ method?: unknown; id?: unknown }>;

function messageOf(body: unknown): Message {
  if (typeof body !== 'string') return {};
  const parsed: unknown = JSON.parse(body);
  return typeof parsed === 'object' && parsed !== null ? parsed : {};
}

/** Looks, chunk by chunk, for the response to this request in a stream of events, which may stay open after it. */
export function responseFinder(id: unknown) {
  const decoder = new TextDecoder();
  let response: string | undefined;
  const parser = createParser({
    onEvent({ data }) {
      try {
        const message: unknown = JSON.parse(data);
        if (typeof message !== 'object' || message === null || !('id' in message) || message.id !== id) return;
        if ('result' in message || 'error' in message) response ??= data;
      } catch {
        // Not for us.
      }
    },
  });
  let isSplit = false;
  return {
    /** The response, as soon as all of it was in the chunks. */
    add(chunk: Uint8Array): string | undefined {
      const text = decoder.decode(chunk, { stream: true });
      if (text === '') return response;
      // For each line the parser searches all of a text that has a carriage return.
      const lines = (isSplit && text.startsWith('\n') ? text.slice(1) : text).replace(/\r\n?/g, '\n');
      isSplit = text.endsWith('\r');
      parser.feed(lines);
      return response;
    },
  };
}

function toResponse({ status, headers, body }: ProviderResponse): Response {
  const kept = Object.entries(headers).filter(([name]) => name !== 'content-encoding' && name !== 'content-length');
  return new Response(status === 204 || body.length === 0 ? null : new Uint8Array(body), { status, headers: kept });
}

/** The fetch of the SDK: each request goes through our client, whose errors it passes on. */
function guardedFetch(context: ProviderContext, accessToken: string | undefined) {
  return async (url: string | URL, init: RequestInit = {}): Promise<Response> => {
    const method = init.method ?? 'GET';
    // A stream of what the server tells unasked: we stay for a few requests alone.
    if (method !== 'POST' && method !== 'DELETE') return new Response(null, { status: 405 });
    const message = messageOf(init.body);
    const headers = Object.fromEntries(new Headers(init.headers));
    const isStream = (type: string | undefined) => EVENT_STREAM.test(type ?? '');
    let found: string | undefined;
    const response = await context.client.send(site, {
      method,
      effect: READS.has(String(message.method)) ? 'read' : 'write',
      url,
      headers: { ...headers, ...(accessToken === undefined ? {} : { authorization: `Bearer ${accessToken}` }) },
      ...(typeof init.body === 'string' ? { body: init.body } : {}),
      buckets: buckets(context, url),
      signal: context.signal,
      maxBytes: MAX_BYTES,
      totalMs: method === 'DELETE' ? GOODBYE_MS : REQUEST_MS,
      isComplete({ 'content-type': type }) {
        if (!isStream(type)) return undefined;
        const finder = responseFinder(message.id);
        return (chunk) => {
          found = finder.add(chunk);
          return found !== undefined;
        };
      },
    });
    if (message.id === undefined || !isStream(response.headers['content-type'])) return toResponse(response);
    // The SDK would wait for it until its time is over.
    if (found === undefined) {
      throw new ProviderError(KEY, 'failed', 'The server ended its response before it was there.');
    }
    // The rest of the stream is dropped: nothing awaits it, and the SDK would parse it all again.
    const asJson = { ...response.headers, 'content-type': 'application/json' };
    return toResponse({ ...response, headers: asJson, body: Buffer.from(found) });
  };
}

/** What the SDK throws holds what the server said, so it goes no further. */
function mcpFailure(error: unknown): unknown {
  if (error instanceof ProviderError) return error;
  return new ProviderError(KEY, 'failed', 'The server responds in a way that is not that of MCP.');
}

/**
 * One session with a server, by the official SDK.
 * @throws ProviderError: `rejected` where the server asks for an authorization; or the signal's reason
 */
export async function withMcp<T>(
  context: ProviderContext,
  access: Readonly<{ serverUrl: string; accessToken: string | undefined }>,
  run: (client: Client, options: RequestOptions) => Promise<T>,
): Promise<T> {
  context.signal?.throwIfAborted();
  const [{ Client: McpClient }, { StreamableHTTPClientTransport }] = await Promise.all([
    import('@modelcontextprotocol/sdk/client/index.js'),
    import('@modelcontextprotocol/sdk/client/streamableHttp.js'),
  ]);
  const client = new McpClient({ name: 'business-runner', version: '0.1' }, { capabilities: {} });
  const transport = new StreamableHTTPClientTransport(new URL(access.serverUrl), {
    fetch: guardedFetch(context, access.accessToken),
    reconnectionOptions: {
      maxRetries: 0,
      initialReconnectionDelay: 1,
      maxReconnectionDelay: 1,
      reconnectionDelayGrowFactor: 1,
    },
  });
  // A response to another request than ours would be waited for without an end.
  const options: RequestOptions = { timeout: SDK_MS, ...(context.signal ? { signal: context.signal } : {}) };
  try {
    await client.connect(transport, options);
    return await run(client, options);
  } catch (error) {
    context.signal?.throwIfAborted();
    throw mcpFailure(error);
  } finally {
    await transport.terminateSession().catch(() => {});
    await client.close().catch(() => {});
  }
}
