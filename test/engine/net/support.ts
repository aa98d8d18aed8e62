import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net';
import type * as Tap from 'tap';
import { isPublicAddress, NetError, type NetReason } from '../../../engine/net/index.ts';
import type { TearDown } from '../../support/database.ts';

/** Loopback on Linux is all of 127.0.0.0/8: this one stands for a public address, the others for what is forbidden. */
export const PUBLIC = '127.0.0.2';

/** The real policy, but for the one address of the test's public servers. */
export const allows = (address: string) => address === PUBLIC || isPublicAddress(address);

export type Site = Readonly<{
  port: number;
  origin: string;
  server: Server;
  connections: () => number;
  paths: string[];
}>;

function listen(t: TearDown, server: Server, host: string): Promise<number> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.once('close', () => sockets.delete(socket));
  });
  t.teardown(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  server.listen(0, host);
  return once(server, 'listening').then(() => (server.address() as AddressInfo).port);
}

/** A website on loopback that counts who connects. */
export async function openSite(t: TearDown, serve: RequestListener, host = PUBLIC): Promise<Site> {
  let connections = 0;
  const paths: string[] = [];
  const server = createServer((req, res) => {
    paths.push(req.url ?? '');
    serve(req, res);
  });
  server.on('connection', () => {
    connections += 1;
  });
  const port = await listen(t, server, host);
  return { port, origin: `http://${host}:${port}`, server, connections: () => connections, paths };
}

/** What must never be reached: listens on every loopback address of both families and counts connections. */
export async function openForbidden(t: TearDown): Promise<{ port: number; connections: () => number }> {
  let connections = 0;
  const server = createTcpServer((socket) => {
    connections += 1;
    socket.on('error', () => {});
    socket.end('HTTP/1.1 200 OK\r\ncontent-length: 6\r\nconnection: close\r\n\r\nsecret');
  });
  server.listen(0, '::');
  await once(server, 'listening');
  t.teardown(async () => void (await new Promise((resolve) => server.close(resolve))));
  return { port: (server.address() as AddressInfo).port, connections: () => connections };
}

export async function textOf(body: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}

/** Fails unless the promise is rejected with a NetError of this reason. */
export async function refuses(t: Tap.Test, promise: Promise<unknown>, reason: NetReason, what: string): Promise<void> {
  try {
    await promise;
    t.fail(`not refused: ${what}`);
  } catch (error) {
    t.ok(error instanceof NetError, `${what}: ${error}`);
    t.equal((error as NetError).reason, reason, what);
  }
}
