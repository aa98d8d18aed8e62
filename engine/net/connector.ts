import { lookup, Resolver } from 'node:dns/promises';
import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { NetError } from './errors.ts';

/** All addresses of a name. */
export type Resolve = (name: string) => Promise<readonly string[]>;

const DNS = { timeout: 2_000, tries: 2 } as const;

/**
 * Asks DNS, each question bounded in time. What DNS does not know (the hosts file, search domains) is looked up as all
 * programs of this machine do: that takes a thread of the pool that files are read with, so a name whose server is
 * silent on purpose must not get so far.
 * @param servers in place of the machine's, as `address:port`
 */
export function nameResolver(servers?: readonly string[]): Resolve {
  return async (name) => {
    const resolver = new Resolver(DNS);
    if (servers) resolver.setServers(servers);
    const results = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
    const addresses = results.flatMap((result) => (result.status === 'fulfilled' ? result.value : []));
    if (addresses.length > 0) return addresses;
    for (const result of results) {
      if (result.status === 'rejected' && result.reason?.code === 'ETIMEOUT') throw result.reason;
    }
    return (await lookup(name, { all: true })).map(({ address }) => address);
  };
}

export type Guard = Readonly<{ resolve: Resolve; allows: (address: string) => boolean; timeoutMs: number }>;

/** A name with many addresses is not a reason to try for minutes. */
const TRIES = 4;

/**
 * The addresses behind a host, each of them checked: one that is not allowed refuses the name, for whoever responds with
 * a public and a private address wants the private one to be used.
 * @throws NetError with `address_refused` or what the resolver throws
 */
export async function checkedAddresses(hostname: string, resolve: Resolve, allows: (address: string) => boolean) {
  const literal = hostname.replace(/^\[|\]$/g, '');
  const addresses = isIP(literal) ? [literal] : await resolve(literal);
  if (addresses.length === 0) throw new NetError('name_unknown', `There is no server named ${hostname}.`);
  if (!addresses.every(allows)) {
    throw new NetError('address_refused', `${hostname} is not an address of the public internet, so it is not asked.`);
  }
  return addresses.slice(0, TRIES);
}

function openTcp(address: string, port: number, timeoutMs: number, signal: AbortSignal | undefined): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connectTcp({ host: address, port, noDelay: true, ...(signal ? { signal } : {}) });
    socket.setTimeout(timeoutMs, () =>
      socket.destroy(new NetError('timed_out', 'The server did not respond in time.')),
    );
    // It stays: whoever gets the socket may not listen yet when it breaks.
    socket.on('error', reject);
    socket.once('connect', () => {
      socket.setTimeout(0);
      resolve(socket);
    });
  });
}

/**
 * A connection for protocols that are not HTTP, to exactly the addresses that were checked.
 * @throws NetError, an AbortError when the signal is aborted, or what the network says
 */
export async function openChecked(
  hostname: string,
  port: number,
  { resolve, allows, timeoutMs }: Guard,
  signal?: AbortSignal,
): Promise<Socket> {
  let failure: unknown;
  for (const address of await checkedAddresses(hostname, resolve, allows)) {
    try {
      return await openTcp(address, port, timeoutMs, signal);
    } catch (error) {
      failure = error;
    }
  }
  throw failure;
}
