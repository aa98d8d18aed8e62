import { sql } from 'slonik';
import { z } from 'zod';
import type { Queries } from '../../engine/db/call.ts';
import { createThrottle, logThrottled } from '../../engine/log.ts';
import { DISPATCH } from '../crontab.ts';
import type { JobHandler, JobServices } from '../runner/handler.ts';
import { type DueRead, type Processor, processorOf, readDue } from './due.ts';
import { createTurns } from './turns.ts';

const INTERVAL_MS = 250;
/** Organizations in a read, by kind. */
const ORGANIZATIONS = 100;
/** Of each of them, the oldest. */
const ROWS = 200;

const supersededRow = z.object({ superseded: z.boolean() });

/**
 * True when a newer run is at work. It holds the key (adding it took the key from this one), but may still wait for a
 * free worker: until it has really begun, this one goes on.
 */
async function isSuperseded(db: Queries, jobId: string): Promise<boolean> {
  const { superseded } = await db.one(sql.type(supersededRow)`
    select exists (
      select from graphile_worker.jobs
      where key = ${DISPATCH.key} and id <> ${jobId}::bigint and locked_at is not null
    ) as superseded`);
  return superseded;
}

/** Reads what is due, and where it is much one part after the other, so that each organization is read in its turn. */
function createReader({ dispatchDb, config }: JobServices, processor: Processor) {
  let after: Readonly<Record<string, string>> = {};
  return async (): Promise<DueRead> => {
    const failing = processor.failing();
    const read = await readDue(dispatchDb, {
      organizations: ORGANIZATIONS + failing,
      rows: ROWS + failing,
      after,
      chatStartSeconds: config.chatStartSeconds,
    });
    after = read.after;
    return read;
  };
}

/** Waits for the interval, or less. */
async function pause(drained: Promise<void>, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const stop = () => resolve();
  const timer = setTimeout(stop, INTERVAL_MS);
  signal.addEventListener('abort', stop, { once: true });
  drained.then(stop);
  await promise;
  clearTimeout(timer);
  signal.removeEventListener('abort', stop);
}

/**
 * Moves what time has made due (leases that ended, requests after their backoff, tasks that wait) every 250 ms, until a
 * newer run takes over. The crontab starts one a minute, each process one at its start; two at once are harmless, for
 * the functions judge anew under their locks. While Postgres is away it goes on trying.
 */
export const dispatch: JobHandler<'dispatch'> = async (_payload, context) => {
  const { dispatchDb, log, jobId, signal } = context;
  const throttle = createThrottle();
  const processor = processorOf(context);
  const turns = createTurns(processor, log, signal);
  const read = createReader(context, processor);
  try {
    while (!signal.aborted) {
      try {
        if (await isSuperseded(dispatchDb, jobId)) return 'done';
        // Who is read later does not wait longer: it would wait behind these.
        if (turns.waiting() < ORGANIZATIONS) await turns.take(read);
      } catch (error) {
        logThrottled(log, throttle, 'dispatch cannot read what is due', error);
      }
      await pause(turns.drained(), signal);
    }
    return 'unfinished';
  } finally {
    await turns.idle();
  }
};
