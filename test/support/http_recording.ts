// All HTTP that servers of this process are asked and respond with, whoever asks: the API's own, and that of the stand-ins.
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { TearDown } from './database.ts';

export type Exchange = Readonly<{
  /** Of the server. */
  port: number;
  method: string;
  path: string;
  requestHeaders: OutgoingHttpHeaders;
  requestBody: string;
  /** The status line and all headers, as they were sent. */
  head: string;
  body: string;
}>;

const STARTED = 'http.server.request.start';

/** Begins now: exchanges are added as they end. */
export function recordHttp(t: TearDown): Exchange[] {
  const exchanges: Exchange[] = [];
  function onStart(message: unknown): void {
    const { request, response } = message as { request: IncomingMessage; response: ServerResponse };
    const { localPort: port = 0 } = request.socket;
    const given: Buffer[] = [];
    const sent: Buffer[] = [];
    // Whoever reads the request, its chunks come by here.
    const emit = request.emit.bind(request);
    request.emit = (event: string | symbol, ...args: unknown[]) => {
      if (event === 'data') given.push(Buffer.from(args[0] as Buffer));
      return emit(event, ...args);
    };
    for (const name of ['write', 'end'] as const) {
      const original = response[name].bind(response) as (...args: unknown[]) => never;
      response[name] = (chunk?: unknown, ...rest: unknown[]) => {
        if (typeof chunk === 'string' || chunk instanceof Uint8Array) sent.push(Buffer.from(chunk));
        return original(chunk, ...rest);
      };
    }
    response.once('close', () => {
      exchanges.push({
        port,
        method: request.method ?? '',
        path: request.url ?? '',
        requestHeaders: request.headers,
        requestBody: Buffer.concat(given).toString(),
        head: (response as unknown as { _header?: string | null })._header ?? '',
        body: Buffer.concat(sent).toString(),
      });
    });
  }
  subscribe(STARTED, onStart);
  t.teardown(async () => {
    unsubscribe(STARTED, onStart);
  });
  return exchanges;
}
