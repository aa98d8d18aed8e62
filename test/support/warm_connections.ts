import pg from 'pg';
import type { Connections } from '../../engine/db/driver.ts';

/** Takes back what a session may have set. */
export const RESET = 'reset all; unlisten *; select pg_advisory_unlock_all()';
/** A connection that is still at work by then is closed instead. */
const RESET_WITHIN_MS = 500;

/** Connections of pools that have ended, for the next pool with the same URL. */
export type WarmConnections = Connections &
  Readonly<{
    idleCount: () => number;
    /** Closes those that are idle. */
    close: () => Promise<void>;
  }>;

/** What the driver's types leave out. */
type Client = pg.Client & Readonly<{ ref: () => void; unref: () => void }>;

async function isReset(client: pg.Client): Promise<boolean> {
  const late = new Promise<boolean>((resolve) => setTimeout(resolve, RESET_WITHIN_MS, false).unref());
  const reset = client.query(`rollback; ${RESET}`).then(
    () => true,
    () => false,
  );
  return Promise.race([reset, late]);
}

export function createWarmConnections(): WarmConnections {
  const idle = new Map<string, Set<Client>>();
  const keys = new WeakMap<pg.Client, string>();
  const connected = new WeakSet<pg.Client>();
  const idleOf = (key: string) => {
    const known = idle.get(key) ?? new Set();
    idle.set(key, known);
    return known;
  };
  return {
    make(config) {
      const key = config.connectionString ?? '';
      const [warm] = idleOf(key);
      if (!warm) {
        const client = new pg.Client(config);
        keys.set(client, key);
        return client;
      }
      idleOf(key).delete(warm);
      warm.removeAllListeners('error');
      warm.ref();
      return warm;
    },
    async connect(client) {
      if (connected.has(client)) return;
      await client.connect();
      connected.add(client);
    },
    async end(client) {
      client.removeAllListeners('error');
      client.removeAllListeners('notice');
      const idleOnes = idleOf(keys.get(client) ?? '');
      client.on('error', () => idleOnes.delete(client as Client));
      if (!connected.has(client) || !(await isReset(client))) return client.end();
      (client as Client).unref();
      idleOnes.add(client as Client);
    },
    idleCount: () => [...idle.values()].reduce((sum, clients) => sum + clients.size, 0),
    async close() {
      const clients = [...idle.values()].flatMap((of) => [...of]);
      idle.clear();
      await Promise.all(
        clients.map((client) => {
          // The process waits for the end.
          client.ref();
          return client.end();
        }),
      );
    },
  };
}
