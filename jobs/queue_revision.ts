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
 * any notification that says so, and every login of the server, so an analyst's too, may send one: here the tables are asked.
 */
export async function watchRevision(
  options: Readonly<{ events: WorkerEvents; pool: pg.Pool; stop: () => void; log: Logger }>,
): Promise<void> {
  const { events, pool, stop, log } = options;
  const known = await revision(pool);
  let asking = false;
  events.on('pool:listen:notification', ({ message }) => {
    if (message.channel !== 'worker:migrate') return;
    // Told before the queue looks at it.
    message.payload = '';
    // As often as it may be sent, it is asked once at a time.
    if (asking) return;
    asking = true;
    revision(pool)
      .then((now) => {
        if (now > known) stop();
      })
      .catch((error: Error) => log.warn({ err: error }, 'the revision of the queue is not known'))
      .finally(() => {
        asking = false;
      });
  });
}
