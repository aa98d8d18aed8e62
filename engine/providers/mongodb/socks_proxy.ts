import { randomBytes, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { pipeline } from 'node:stream';
import { NetError } from '../../net/index.ts';
import { ProviderError } from '../outgoing/index.ts';

// The driver connects to the hosts that a server or a DNS record names, by itself. All of its connections go through this proxy,
// so that the guard checks each of them: SOCKS 5 (RFC 1928) with a password (RFC 1929), and CONNECT alone.

export type Connect = (hostname: string, port: number, signal?: AbortSignal) => Promise<Socket>;

export type SocksProxy = AsyncDisposable &
  Readonly<{
    options: Readonly<{ proxyHost: string; proxyPort: number; proxyUsername: string; proxyPassword: string }>;
    /** Settled with why, when a server may not be called or has sent too much. */
    refused: Promise<ProviderError>;
  }>;

const VERSION = 5;
const AUTH_VERSION = 1;
const PASSWORD_METHOD = 2;
const NO_METHOD = 0xff;
const reply = { succeeded: 0, notAllowed: 2, unreachable: 4, noCommand: 7, noAddress: 8 } as const;
const HANDSHAKE_MS = 5_000;
const MAX_CONNECTIONS = 32;
const LOWEST_PORT = 1_024;

/** Exactly so many bytes. @throws where the connection ends before */
async function take(socket: Socket, count: number, closed: AbortSignal): Promise<Buffer> {
  if (count === 0) return Buffer.alloc(0);
  for (;;) {
    const bytes: Buffer | null = socket.read(count);
    if (bytes !== null && bytes.length === count) return bytes;
    if (bytes !== null || socket.readableEnded) throw new Error('the connection ended in the handshake');
    await once(socket, 'readable', { signal: closed });
  }
}

const same = (given: Buffer, expected: string) =>
  given.length === expected.length && timingSafeEqual(given, Buffer.from(expected, 'latin1'));

function answer(socket: Socket, code: number): void {
  socket.write(Buffer.from([VERSION, code, 0, 1, 0, 0, 0, 0, 0, 0]));
}

async function destination(socket: Socket, closed: AbortSignal): Promise<{ host: string; port: number } | number> {
  const [version, command, , type] = await take(socket, 4, closed);
  if (version !== VERSION || command !== 1) return reply.noCommand;
  let host: string;
  if (type === 1) host = [...(await take(socket, 4, closed))].join('.');
  else if (type === 3) {
    const [length = 0] = await take(socket, 1, closed);
    host = (await take(socket, length, closed)).toString('latin1');
  } else return reply.noAddress;
  const port = (await take(socket, 2, closed)).readUInt16BE(0);
  return { host, port };
}

/** @param maxBytes of all responses together: then everything is closed */
export async function openSocksProxy(connect: Connect, maxBytes: number): Promise<SocksProxy> {
  const [username, password] = [randomBytes(16).toString('hex'), randomBytes(32).toString('hex')];
  const sockets = new Set<Socket>();
  const ending = new AbortController();
  const refused = Promise.withResolvers<ProviderError>();
  let room = maxBytes;

  function keep(socket: Socket): Socket {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.once('close', () => sockets.delete(socket));
    return socket;
  }

  async function authenticated(socket: Socket, closed: AbortSignal): Promise<boolean> {
    const [version, count = 0] = await take(socket, 2, closed);
    const methods = await take(socket, count, closed);
    if (version !== VERSION || !methods.includes(PASSWORD_METHOD)) {
      socket.end(Buffer.from([VERSION, NO_METHOD]));
      return false;
    }
    socket.write(Buffer.from([VERSION, PASSWORD_METHOD]));
    const [authVersion, nameLength = 0] = await take(socket, 2, closed);
    const name = await take(socket, nameLength, closed);
    const [secretLength = 0] = await take(socket, 1, closed);
    const secret = await take(socket, secretLength, closed);
    const isKnown = authVersion === AUTH_VERSION && same(name, username) && same(secret, password);
    socket.write(Buffer.from([AUTH_VERSION, isKnown ? 0 : 1]));
    return isKnown;
  }

  async function opened(socket: Socket, closed: AbortSignal): Promise<Socket | undefined> {
    const asked = await destination(socket, closed);
    if (typeof asked === 'number') {
      answer(socket, asked);
      return undefined;
    }
    try {
      if (asked.port < LOWEST_PORT) throw new ProviderError('mongodb', 'refused', 'This port is not one of databases.');
      return await connect(asked.host, asked.port, AbortSignal.any([closed, ending.signal]));
    } catch (error) {
      const isRefused = error instanceof ProviderError && (error.reason === 'refused' || error.reason === 'blocked');
      if (isRefused) refused.resolve(error);
      answer(socket, isRefused ? reply.notAllowed : reply.unreachable);
      return undefined;
    }
  }

  async function* counted(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const chunk of source) {
      room -= chunk.length;
      if (room < 0) {
        refused.resolve(new ProviderError('mongodb', 'too_large', 'The response of the server is too large.'));
        throw new NetError('too_large', 'The server sends more than is read.');
      }
      yield chunk;
    }
  }

  async function serve(socket: Socket): Promise<void> {
    const closing = new AbortController();
    socket.once('close', () => closing.abort());
    socket.setTimeout(HANDSHAKE_MS, () => socket.destroy());
    if (!(await authenticated(socket, closing.signal))) return void socket.end();
    socket.setTimeout(0);
    const upstream = await opened(socket, closing.signal);
    if (upstream === undefined) return void socket.end();
    keep(upstream);
    if (socket.destroyed || ending.signal.aborted) return void upstream.destroy();
    answer(socket, reply.succeeded);
    pipeline(socket, upstream, () => upstream.destroy());
    pipeline(upstream, counted, socket, () => socket.destroy());
  }

  const server = createServer({ noDelay: true }, (socket) => {
    serve(keep(socket)).catch(() => socket.destroy());
  });
  server.maxConnections = MAX_CONNECTIONS;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    options: {
      proxyHost: '127.0.0.1',
      proxyPort: (server.address() as AddressInfo).port,
      proxyUsername: username,
      proxyPassword: password,
    },
    refused: refused.promise,
    async [Symbol.asyncDispose]() {
      ending.abort();
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
