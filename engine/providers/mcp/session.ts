import { setImmediate } from 'node:timers/promises';
import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import type { RequestOptions } from '@modelcontextprotocol/sdk/shared/protocol.js';
import { createParser } from 'eventsource-parser';
import { z } from 'zod';
import { ProviderError, type ProviderResponse, undone } from '../outgoing/index.ts';
import type { ProviderContext } from '../provider.ts';
import { buckets, KEY, site } from './site.ts';

const REQUEST_MS = 15_000;
/** Longer than ours, so that it is our request that is said to be late. */
const SDK_MS = 30_000;
/** What calls a tool ends by its signal, or by the SDK, which tells the server. */
const CALL_MS = 60_000;
const CALL_REQUEST_MS = 75_000;
const GOODBYE_MS = 2_000;
const MAX_BYTES = 4 * 1024 * 1024;
/** As long as results of tools are. */
const MAX_RESULT_BYTES = 5 * 1024 * 1024;
const CALL = 'tools/call';
const CANCELLED = 'notifications/cancelled';
/** These change nothing at the server, so that they may be sent again. */
const READS = new Set(['initialize', 'notifications/initialized', 'ping', 'tools/list']);
const EVENT_STREAM = /^text\/event-stream\b/i;

type Message = Readonly<{ method?: unknown; id?: unknown; params?: Readonly<{ requestId?: unknown }> }>;

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

/** What was asked of a server within a session. */
type Asked = {
  /** The id of the request that calls a tool: until then nothing can have been done. */
  callId: unknown;
  cancellation: Promise<unknown> | undefined;
};

/** How long a request may take, how long its response may be, and what ends it early. */
function boundsOf(method: unknown, isGoodbye: boolean, signal: AbortSignal | undefined) {
  // Who has left must not keep the server from learning it.
  if (isGoodbye) return { totalMs: GOODBYE_MS, maxBytes: MAX_BYTES, signal: undefined };
  return method === CALL
    ? { totalMs: CALL_REQUEST_MS, maxBytes: MAX_RESULT_BYTES, signal }
    : { totalMs: REQUEST_MS, maxBytes: MAX_BYTES, signal };
}

/** The fetch of the SDK: each request goes through our client, whose errors it passes on. */
function guardedFetch(context: ProviderContext, accessToken: string | undefined, asked: Asked) {
  async function send(url: string | URL, init: RequestInit, message: Message): Promise<Response> {
    const method = init.method === 'DELETE' ? 'DELETE' : 'POST';
    const isGoodbye = method === 'DELETE' || message.method === CANCELLED;
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
      ...boundsOf(message.method, isGoodbye, context.signal),
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
  }
  return async (url: string | URL, init: RequestInit = {}): Promise<Response> => {
    // A stream of what the server tells unasked: we stay for a few requests alone.
    if (init.method !== 'POST' && init.method !== 'DELETE') return new Response(null, { status: 405 });
    const message = messageOf(init.body);
    if (message.method === CALL) asked.callId = message.id;
    if (message.method !== CANCELLED) return send(url, init, message);
    // The SDK cancels what is over, too, and the request that begins a session must not be cancelled.
    if (asked.callId === undefined || message.params?.requestId !== asked.callId) {
      return new Response(null, { status: 202 });
    }
    const response = send(url, init, message);
    asked.cancellation = response;
    return response;
  };
}

/** Errors of JSON-RPC and MCP by which a server says that it called no tool. */
const REFUSALS = new Map([
  [-32_700, 'parse_error'],
  [-32_600, 'invalid_request'],
  [-32_601, 'method_not_found'],
  [-32_602, 'invalid_params'],
  [-32_042, 'url_elicitation_required'],
]);
const TIMED_OUT = -32_001;

const rpcError = z.object({ name: z.literal('McpError'), code: z.int() });

/** What the SDK throws holds what the server said, so it goes no further. */
function mcpFailure(error: unknown, { callId }: Asked): unknown {
  const hasCalled = callId !== undefined;
  if (error instanceof ProviderError) return hasCalled ? error : undone(error, KEY);
  const { code = 0 } = rpcError.safeParse(error).data ?? {};
  if (code === TIMED_OUT) return new ProviderError(KEY, 'unavailable', 'The server did not respond in time.');
  const refusal = REFUSALS.get(code);
  if (hasCalled && refusal !== undefined) {
    return new ProviderError(KEY, 'failed', 'The server refuses the call.', { code: refusal, isRefusal: true });
  }
  const facts = hasCalled ? {} : { isRefusal: true };
  return new ProviderError(KEY, 'failed', 'The server responds in a way that is not that of MCP.', facts);
}

/** A signal of our own words: the SDK tells the server why it is aborted. */
function cancellation(signal: AbortSignal | undefined) {
  const cancelled = new AbortController();
  const abort = () => cancelled.abort('The caller has left.');
  signal?.addEventListener('abort', abort, { once: true });
  return { signal: cancelled.signal, clear: () => signal?.removeEventListener('abort', abort) };
}

/** For a request that calls a tool. */
export const callOptions = (options: RequestOptions): RequestOptions => ({ ...options, timeout: CALL_MS });

/**
 * One session with a server, by the official SDK. A call that nobody waits for any more is cancelled at its server.
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
  const asked: Asked = { callId: undefined, cancellation: undefined };
  const transport = new StreamableHTTPClientTransport(new URL(access.serverUrl), {
    fetch: guardedFetch(context, access.accessToken, asked),
    reconnectionOptions: {
      maxRetries: 0,
      initialReconnectionDelay: 1,
      maxReconnectionDelay: 1,
      reconnectionDelayGrowFactor: 1,
    },
  });
  // A response to another request than ours would be waited for without an end.
  const { signal, clear } = cancellation(context.signal);
  const options: RequestOptions = { timeout: SDK_MS, signal };
  try {
    await client.connect(transport, options);
    return await run(client, options);
  } catch (error) {
    // The SDK has its own words for it.
    context.signal?.throwIfAborted();
    throw mcpFailure(error, asked);
  } finally {
    clear();
    // The SDK sends the cancellation on its own, a moment after it has given up.
    await setImmediate();
    await asked.cancellation?.catch(() => {});
    await transport.terminateSession().catch(() => {});
    await client.close().catch(() => {});
  }
}
