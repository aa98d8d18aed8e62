import { lookup, Resolver } from 'node:dns/promises';
import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { buildConnector } from 'undici';
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
async function checkedAddresses(hostname: string, resolve: Resolve, allows: (address: string) => boolean) {
  const literal = hostname.replace(/^\[|\]$/g, '');
  const addresses = isIP(literal) ? [literal] : await resolve(literal);
  if (addresses.length === 0) throw new NetError('name_unknown', `There is no server named ${hostname}.`);
  if (!addresses.every(allows)) {
    throw new NetError('address_refused', `${hostname} is not an address of the public internet, so it is not asked.`);
  }
  return addresses.slice(0, TRIES);
}

/**
 * Connects to exactly the addresses that were checked: the name is resolved once, here, and the socket is given the
 * address, so nothing resolves it a second time (a name may change between two looks, and an address in place of a name
 * never passes a `lookup` filter). TLS still asks for and verifies the certificate of the name.
 */
export function checkedConnector(
  options: Guard &
    Readonly<{
      /** Certificates that count beside the usual ones, in PEM. */
      ca?: string | undefined;
    }>,
): buildConnector.connector {
  const connect = buildConnector({
    timeout: options.timeoutMs,
    allowH2: false,
    // A session would be found by name, whichever address the name has by then.
    maxCachedSessions: 0,
    rejectUnauthorized: true,
    ...(options.ca === undefined ? {} : { ca: options.ca }),
  });

  function connectTo(target: buildConnector.Options, address: string): Promise<Socket> {
    // SNI is for names alone.
    const name = isIP(target.hostname.replace(/^\[|\]$/g, '')) ? undefined : target.hostname;
    return new Promise((resolve, reject) => {
      connect(
        { ...target, hostname: address, ...(name === undefined ? {} : { servername: name }) },
        (error, socket) => {
          if (error) reject(error);
          else resolve(socket as Socket);
        },
      );
    });
  }

  async function open(target: buildConnector.Options): Promise<Socket> {
    const addresses = await checkedAddresses(target.hostname, options.resolve, options.allows);
    let failure: unknown;
    for (const address of addresses) {
      try {
        return await connectTo(target, address);
      } catch (error) {
        failure = error;
      }
    }
    throw failure;
  }

  return (target, callback) => {
    open(target).then(
      (socket) => callback(null, socket),
      (error: Error) => callback(error, null),
    );
  };
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
