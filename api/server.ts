import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { requestIdOf } from './http/request_state.ts';

const codes: Readonly<Record<string, number>> = {
  HPE_HEADER_OVERFLOW: 431,
  ERR_HTTP_REQUEST_TIMEOUT: 408,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 413,
};

/** What is not HTTP gets an envelope as well, where the socket still takes it. */
function respondMalformed(error: Error & { code?: string }, socket: Socket): void {
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const statusCode = codes[error.code ?? ''] ?? 400;
  const code = statusCode === 408 ? 'request_timeout' : 'validation_failed';
  const message = STATUS_CODES[statusCode] ?? 'Bad Request';
  const meta = { timestamp: new Date().toISOString(), requestId: requestIdOf(undefined) };
  const body = JSON.stringify({ success: false, statusCode, message, error: { code }, meta });
  socket.end(
    [
      `HTTP/1.1 ${statusCode} ${message}`,
      'Content-Type: application/json; charset=utf-8',
      `Content-Length: ${Buffer.byteLength(body)}`,
      `X-Request-Id: ${meta.requestId}`,
      'Connection: close',
      '',
      body,
    ].join('\r\n'),
  );
}

/** An HTTP server with limits that fit long polls, event streams and slow uploads. */
export function createHttpServer(app: (req: IncomingMessage, res: ServerResponse) => void): Server {
  const server = createServer(
    {
      // Slow headers are cut; bodies have time-outs of their own (api/http/body.ts), since uploads may take long.
      headersTimeout: 20_000,
      requestTimeout: 0,
      connectionsCheckingInterval: 5_000,
      // Longer than the idle time of the usual load balancers, so that they close first.
      keepAliveTimeout: 70_000,
      maxHeaderSize: 16 * 1024,
      noDelay: true,
    },
    app,
  );
  // `100 Continue` is sent when the body is wanted: after authentication, and not for one that is too large.
  server.on('checkContinue', app);
  server.on('checkExpectation', app);
  server.on('clientError', respondMalformed);
  return server;
}

/** Listens; resolves to the base URL. */
export async function listen(server: Server, host: string, port: number): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once('error', reject);
  server.listen(port, host, resolve);
  await promise;
  server.off('error', reject);
  const address = server.address();
  const actual = typeof address === 'object' && address !== null ? address.port : port;
  return `http://${host.includes(':') ? `[${host.replace(/^\[|\]$/g, '')}]` : host}:${actual}`;
}

const LOOK_FOR_IDLE_MS = 50;

/** Stops accepting, lets responses under way finish for `graceMs`, then cuts what is left. */
export async function closeServer(server: Server, graceMs: number): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  // Connections that are kept alive after a response that was still under way would otherwise stay to the end.
  const idle = setInterval(() => server.closeIdleConnections(), LOOK_FOR_IDLE_MS);
  const late = setTimeout(() => server.closeAllConnections(), graceMs);
  await closed;
  clearInterval(idle);
  clearTimeout(late);
}
