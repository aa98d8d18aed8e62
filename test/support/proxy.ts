import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import type { TearDown } from './database.ts';

export type Proxy = Readonly<{
  /** The URL given, by way of the proxy. */
  url: string;
  /** Cuts all connections and refuses new ones, like a server that is down. */
  cut(): void;
  /** Holds all bytes back without a word, like a network that lost its way. */
  freeze(): void;
  /** The same for the connections there are; new ones work, like a server that moved. */
  freezeExisting(): void;
  /** Everything as before; what was frozen is cut. */
  restore(): void;
  /** How many connections were refused. */
  refused(): number;
}>;

/** A TCP proxy in front of a server, to make connections fail in the ways they do. */
export async function startProxy(t: TearDown, target: string): Promise<Proxy> {
  const { hostname, port } = new URL(target);
  const pairs = new Set<readonly [Socket, Socket]>();
  let state: 'on' | 'cut' | 'frozen' = 'on';
  let refused = 0;

  const server = createServer((client) => {
    if (state === 'cut') {
      refused += 1;
      client.destroy();
      return;
    }
    const upstream = connect(Number(port), hostname);
    const pair = [client, upstream] as const;
    pairs.add(pair);
    client.pipe(upstream);
    upstream.pipe(client);
    if (state === 'frozen') hold(pair);
    for (const socket of pair) {
      socket.on('error', () => {});
      socket.on('close', () => {
        pairs.delete(pair);
        for (const one of pair) one.destroy();
      });
    }
  });

  function hold([client, upstream]: readonly [Socket, Socket]): void {
    client.unpipe(upstream).pause();
    upstream.unpipe(client).pause();
  }
  function drop(): void {
    for (const pair of pairs) for (const socket of pair) socket.destroy();
  }

  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(async () => {
    drop();
    server.close();
  });
  const url = new URL(target);
  url.hostname = '127.0.0.1';
  url.port = String((server.address() as AddressInfo).port);
  return {
    url: url.href,
    cut() {
      state = 'cut';
      drop();
    },
    freeze() {
      state = 'frozen';
      for (const pair of pairs) hold(pair);
    },
    freezeExisting() {
      for (const pair of pairs) hold(pair);
    },
    restore() {
      if (state === 'frozen') drop();
      state = 'on';
    },
    refused: () => refused,
  };
}
