import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { requestIdOf } from './http/request_state.ts';
import { type HttpTiming, TIMING } from './http/timing.ts';
import { closeHalf, isAnswered, isClosing, readRest } from './http/unread_bodies.ts';

export { listen } from '../engine/http_listen.ts';

const codes: Readonly<Record<string, number>> = {
  HPE_HEADER_OVERFLOW: 431,
  ERR_HTTP_REQUEST_TIMEOUT: 408,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 413,
};

/** The response in progress; Node itself looks here before it writes to the socket of a client whose request is broken. */
function responseOf(socket: Socket & { _httpMessage?: ServerResponse | null }): ServerResponse | undefined {
  return socket._httpMessage ?? undefined;
}

/** The client has gone: reset, or with its half of the close in the middle of a body. */
function isGone({ code }: Error & { code?: string }): boolean {
  return code === 'ECONNRESET' || code === 'HPE_INVALID_EOF_STATE';
}

function malformedResponse(error: Error & { code?: string }): string {
  const statusCode = codes[error.code ?? ''] ?? 400;
  const code = statusCode === 408 ? 'request_timeout' : 'validation_failed';
  const message = STATUS_CODES[statusCode] ?? 'Bad Request';
  const meta = { timestamp: new Date().toISOString(), requestId: requestIdOf(undefined) };
  const body = JSON.stringify({ success: false, statusCode, message, error: { code }, meta });
  return [
    `HTTP/1.1 ${statusCode} ${message}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    `X-Request-Id: ${meta.requestId}`,
    'Connection: close',
    '',
    body,
  ].join('\r\n');
}

/** What is not HTTP gets an envelope as well, where the socket still takes it. */
function refuseMalformed(error: Error & { code?: string }, socket: Socket, timing: HttpTiming): void {
  if (isClosing(socket) && socket.writableEnded) {
    // More of it, while the client has time to read its response.
    if (isGone(error) || socket.bytesRead > timing.restBytes) socket.destroy();
  } else if (isAnswered(socket) && !isGone(error)) {
    closeHalf(socket, timing);
  } else if (!socket.writable || isAnswered(socket) || error.code === 'ECONNRESET' || responseOf(socket)?.headersSent) {
    // In the middle of a response an envelope would be taken for a part of that.
    socket.destroy();
  } else {
    socket.write(malformedResponse(error));
    closeHalf(socket, timing);
  }
}

type App = (req: IncomingMessage, res: ServerResponse) => void;

/** An HTTP server with limits that fit long polls, event streams and slow uploads. */
export function createHttpServer(app: App, timing: HttpTiming = TIMING): Server {
  const serve: App = (req, res) => {
    // What was sent ahead after the last request that this connection serves.
    if (isClosing(req.socket)) return;
    readRest(req, res, timing);
    app(req, res);
  };
  const server = createServer(
    {
      // Slow headers are cut; bodies have limits of their own (api/http/body_pace.ts), since uploads may take long.
      headersTimeout: timing.headersMs,
      requestTimeout: 0,
      connectionsCheckingInterval: timing.checkMs,
      // Longer than the idle time of the usual load balancers, so that they close first.
      keepAliveTimeout: 70_000,
      maxHeaderSize: 16 * 1024,
      noDelay: true,
      // Refused by us, in an envelope (api/http/request_headers.ts).
      requireHostHeader: false,
    },
    serve,
  );
  // `100 Continue` is sent when the body is wanted: after authentication, and not for one that is too large.
  server.on('checkContinue', serve);
  server.on('checkExpectation', serve);
  server.on('clientError', (error, socket) => refuseMalformed(error, socket as Socket, timing));
  return server;
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
