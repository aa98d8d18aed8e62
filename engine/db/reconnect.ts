import pg from 'pg';
import { KEEP_ALIVE } from './abandoned.ts';
import { queryClient } from './query_client.ts';

const FIRST_DELAY_MS = 100;
const LAST_DELAY_MS = 5_000;
const PROBE_MS = 15_000;
const PROBE_RESPONSE_MS = 5_000;

export type Connection = Readonly<{
  /** The connection when there is one. */
  client(): pg.Client | undefined;
  close(): Promise<void>;
}>;

export type ConnectionOptions = Readonly<{
  url: string;
  /** Runs on each new connection before it counts as there; a failure means another try. */
  prepare: (client: pg.Client) => Promise<void>;
  /** Told about each lost or failed connection. */
  onLost: (error: Error) => void;
}>;

const lines = new WeakMap<pg.Client, Promise<unknown>>();

/** A statement on a connection that several use: they go one after the other, for pg queues them no longer by itself. */
export function send<R extends pg.QueryResultRow = pg.QueryResultRow>(
  client: pg.Client,
  text: string,
  values: readonly unknown[] = [],
): Promise<pg.QueryResult<R>> {
  const before = lines.get(client) ?? Promise.resolve();
  const result = before.catch(() => undefined).then(() => queryClient<R>(client, { text, values: [...values] }));
  lines.set(client, result);
  return result;
}

/**
 * One connection that is made again whenever it is lost: after 0.1 s, doubling to 5 s. `select 1` every 15 s finds a
 * connection whose other end is gone without a word.
 */
export function keepConnected(options: ConnectionOptions): Connection {
  let current: pg.Client | undefined;
  let connecting: pg.Client | undefined;
  let attempt: Promise<void> | undefined;
  let retry: NodeJS.Timeout | undefined;
  let probe: NodeJS.Timeout | undefined;
  let delay = FIRST_DELAY_MS;
  let closed = false;

  async function probeOnce(client: pg.Client): Promise<void> {
    const late = setTimeout(() => lost(client, new Error('the connection does not respond')), PROBE_RESPONSE_MS);
    await send(client, 'select 1').catch((error: Error) => lost(client, error));
    clearTimeout(late);
  }

  function lost(client: pg.Client, error: Error): void {
    if (client !== current) return;
    current = undefined;
    clearInterval(probe);
    drop(client);
    options.onLost(error);
    again();
  }

  /** A dead peer never responds to the good-bye of `end`: the socket is cut. */
  function drop(client: pg.Client): void {
    client.connection?.stream.destroy();
  }

  function again(): void {
    if (closed || retry) return;
    retry = setTimeout(() => {
      retry = undefined;
      attempt = connect();
    }, delay);
    delay = Math.min(delay * 2, LAST_DELAY_MS);
  }

  async function connect(): Promise<void> {
    const client = new pg.Client({ connectionString: options.url, connectionTimeoutMillis: 5_000, ...KEEP_ALIVE });
    connecting = client;
    client.on('error', (error) => lost(client, error));
    client.on('end', () => lost(client, new Error('the connection ended')));
    try {
      await client.connect();
      connecting = undefined;
      current = client;
      probe = setInterval(() => void probeOnce(client), PROBE_MS);
      await options.prepare(client);
      // Lost while it was being prepared: `lost` has seen to the next try.
      if (current === client) delay = FIRST_DELAY_MS;
    } catch (error) {
      if (current === client) return lost(client, error as Error);
      drop(client);
      if (closed) return;
      options.onLost(error as Error);
      again();
    }
  }

  attempt = connect();
  return {
    client: () => current,
    async close() {
      closed = true;
      clearTimeout(retry);
      // A server that does not respond would hold the attempt, and so the end of the process, for seconds.
      if (connecting) drop(connecting);
      await attempt;
      clearInterval(probe);
      const client = current;
      current = undefined;
      if (!client) return;
      const end = client.end().catch(() => undefined);
      const late = setTimeout(() => drop(client), 1_000);
      await end;
      clearTimeout(late);
    },
  };
}
