import type { Server } from 'node:http';

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
