import { isIP, type Socket } from 'node:net';
import { Agent, buildConnector } from 'undici';
import { checkedAddresses, type Guard } from './connector.ts';

export { request } from 'undici';

const MAX_HEADER_BYTES = 16 * 1024;

/**
 * Connects to exactly the addresses that were checked: the name is resolved once, here, and the socket is given the
 * address, so nothing resolves it a second time (a name may change between two looks, and an address in place of a name
 * never passes a `lookup` filter). TLS still asks for and verifies the certificate of the name.
 */
function checkedConnector(
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

/** The connections of a client, to checked addresses alone. */
export function openAgent(options: Parameters<typeof checkedConnector>[0], connections: number): Agent {
  return new Agent({
    connect: checkedConnector(options),
    connections,
    pipelining: 1,
    maxHeaderSize: MAX_HEADER_BYTES,
    allowH2: false,
    // Both are kept by the client, to the millisecond.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
}
