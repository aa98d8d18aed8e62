import type { IncomingMessage } from 'node:http';
import { bearerOf, tokenMatcher } from '../bearer.ts';
import { isLoopback } from '../config.ts';

/** What a proxy adds when it passes a request on: then the address that we see is the proxy's. */
const FORWARDED = ['forwarded', 'via', 'x-forwarded-for', 'x-forwarded-host', 'x-real-ip'];

function isLocal({ socket, headers }: IncomingMessage): boolean {
  if (!isLoopback(socket.remoteAddress ?? '') || FORWARDED.some((name) => headers[name] !== undefined)) return false;
  // A browser on this machine, at a page whose name was bound to it.
  return isLoopback((headers.host ?? '').replace(/:\d+$/, ''));
}

/**
 * Who reads the metrics, which tell how much work there is: whoever has a token of METRICS_TOKENS; without any, whoever asks on this
 * machine, and at a port that is for metrics alone (`ownPort`), since that is kept from others by the network.
 * @returns why not; undefined: granted
 */
export function metricsAccess(
  tokens: readonly string[],
  { ownPort }: Readonly<{ ownPort: boolean }>,
): (req: IncomingMessage) => string | undefined {
  const isKnown = tokenMatcher(tokens);
  return (req) => {
    if (tokens.length === 0) {
      return ownPort || isLocal(req) ? undefined : 'Metrics are for this machine: set METRICS_TOKENS or METRICS_PORT.';
    }
    const token = bearerOf(req.headers.authorization);
    if (token === undefined) return 'A bearer token is required.';
    return isKnown(token) ? undefined : 'The bearer token is not valid.';
  };
}
