import type { WorkerEvents } from 'graphile-worker';
import type pg from 'pg';
import type { Logger } from 'pino';

const REVISION = 'select coalesce(max(id) filter (where breaking), 0) as revision from graphile_worker.migrations';

async function revision(pool: pg.Pool): Promise<number> {
  const { rows } = await pool.query<{ revision: number }>(REVISION);
  return rows[0]?.revision ?? 0;
}

/**
 * Calls `stop` when the queue's tables were changed so that this version cannot use them any more. The queue itself believes
 * any notification that says so, and every login of the server, so an analyst's too, may send one: here the tables are asked,
 * and again after each time that the queue could not listen. Where they do not respond, a new start asks everything anew.
 */
export async function watchRevision(
  options: Readonly<{ events: WorkerEvents; pool: pg.Pool; stop: () => void; log: Logger }>,
): Promise<void> {
  const { events, pool, stop, log } = options;
  const known = await revision(pool);
  let asking = false;
  let again = false;

  async function look(): Promise<void> {
    asking = true;
    try {
      do {
        again = false;
        if ((await revision(pool)) > known) return stop();
      } while (again);
    } catch (error) {
      log.warn({ err: error }, 'the revision of the queue is not known: it is started again');
      stop();
    } finally {
      asking = false;
    }
  }
  /** As often as it may be sent, the tables are asked once at a time, and once more for what came meanwhile. */
  function ask(): void {
    again = true;
    if (!asking) void look();
  }

  events.on('pool:listen:success', ask);
  events.on('pool:listen:notification', ({ message }) => {
    if (message.channel !== 'worker:migrate') return;
    // Told before the queue looks at it.
    message.payload = '';
    ask();
  });
}
