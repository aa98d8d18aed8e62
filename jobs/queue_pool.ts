import pg from 'pg';
import type { Logger } from 'pino';
import { createThrottle, logThrottled } from '../engine/log.ts';

/** Above the statement time-out, which Postgres keeps by itself. */
const ANSWER_TIMEOUT_MS = 40_000;
/** Of a connection on which nothing is said, such as the one that listens. */
const KEEP_ALIVE_MS = 10_000;
const LATE = 'Query read timeout';

/**
 * A statement that is late gives up waiting, and its connection would be handed out again, to wait behind it: until TCP gives
 * it up, a quarter of an hour later.
 */
function endSilent(client: pg.PoolClient): void {
  const query: (...args: unknown[]) => unknown = client.query.bind(client);
  const watched = (...args: unknown[]): unknown => {
    const answer = query(...args);
    if (answer instanceof Promise) {
      answer.catch((error: Error) => {
        if (error.message === LATE) client.connection.stream.destroy(error);
      });
    }
    return answer;
  };
  Object.assign(client, { query: watched });
}

/** A pool for the queue, whose lost or silent connections are no end of the process: it is asked again. */
export function openQueuePool(
  options: Readonly<{ url: string; size: number; log: Logger; answerTimeoutMs?: number }>,
): pg.Pool {
  const throttle = createThrottle();
  const pool = new pg.Pool({
    connectionString: options.url,
    max: options.size,
    connectionTimeoutMillis: 5_000,
    query_timeout: options.answerTimeoutMs ?? ANSWER_TIMEOUT_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
  });
  const lost = (error: Error) => logThrottled(options.log, throttle, 'a connection of the queue is lost', error);
  pool.on('error', lost);
  pool.on('connect', (client) => {
    client.on('error', lost);
    endSilent(client);
  });
  return pool;
}
