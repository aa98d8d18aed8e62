import pg from 'pg';
import { KEEP_ALIVE } from './abandoned.ts';

const CONNECT_TIMEOUT_MS = 5_000;
const LATE = 'Query read timeout';

/**
 * A statement that is late gives up waiting, and its connection would be handed out again, to wait behind it: until TCP gives
 * it up, a quarter of an hour later.
 */
function endSilent(client: pg.PoolClient): void {
  const query: (...args: unknown[]) => unknown = client.query.bind(client);
  const watched = (...args: unknown[]): unknown => {
    const result = query(...args);
    if (result instanceof Promise) {
      result.catch((error: Error) => {
        if (error.message === LATE) client.connection.stream.destroy(error);
      });
    }
    return result;
  };
  Object.assign(client, { query: watched });
}

/**
 * A pool of pg's own, for libraries that bring their statements: one whose lost or silent connections are no end of the process.
 * `lost` is called for each that ends by itself, with its client where it was in use.
 */
export function openPlainPool(
  options: Readonly<{
    /** With role and time-outs (`roleUrl`). */
    url: string;
    size: number;
    /** Longest wait for a result: above the statement time-out, which Postgres keeps by itself. */
    responseTimeoutMs: number;
    idleTimeoutMs?: number;
    lost: (error: Error, client?: pg.PoolClient) => void;
  }>,
): pg.Pool {
  const pool = new pg.Pool({
    connectionString: options.url,
    max: options.size,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    query_timeout: options.responseTimeoutMs,
    ...KEEP_ALIVE,
    ...(options.idleTimeoutMs === undefined ? {} : { idleTimeoutMillis: options.idleTimeoutMs }),
  });
  pool.on('error', (error) => options.lost(error));
  pool.on('connect', (client) => {
    // While it is in use, the pool does not listen, and an error without a listener would end the process.
    client.on('error', (error) => options.lost(error, client));
    endSilent(client);
  });
  return pool;
}
