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
 * Decides who may read the metrics, which show how much work there is. With METRICS_TOKENS: whoever sends one of them. Without:
 * requests from this machine, and all at a port for metrics alone (`ownPort`), which the network protects.
 * @returns why access is refused; undefined: granted
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
