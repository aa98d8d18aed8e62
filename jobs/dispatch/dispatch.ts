import { sql } from 'slonik';
import { z } from 'zod';
import type { Queries } from '../../engine/db/call.ts';
import { createThrottle, logThrottled } from '../../engine/log.ts';
import { DISPATCH } from '../crontab.ts';
import type { JobHandler, JobServices } from '../runner/handler.ts';
import { type Due, processorOf, readDue } from './due.ts';

const INTERVAL_MS = 250;
/** Of each kind, a round. */
const BATCH = 200;
/** Organizations that are served at the same time; one connection is left for reading. */
export const DISPATCH_SLOTS = 3;

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

/** Serves organizations side by side, each by one lane at a time: a slow one holds up nobody else. */
function createSlots(services: JobServices, signal: AbortSignal) {
  const processor = processorOf(services);
  const throttle = createThrottle();
  const slots = new Map<string, Promise<void>>();
  let processed = 0;
  let full = false;
  let wake = Promise.withResolvers<void>();

  async function serve(organizationId: string, dues: readonly Due[]): Promise<void> {
    try {
      processed += await processor.process(dues, signal);
    } catch (error) {
      logThrottled(services.log, throttle, 'dispatch cannot move what is due', error);
    } finally {
      slots.delete(organizationId);
      if (full && processed > 0) wake.resolve();
    }
  }

  return {
    /** Reads what is due and sets lanes to work on it. */
    async round(): Promise<void> {
      processed = 0;
      full = false;
      wake = Promise.withResolvers();
      const limit = BATCH + processor.failing();
      const due = await readDue(services.dispatchDb, limit, services.config.chatStartSeconds);
      for (const [organizationId, dues] of due) {
        full ||= dues.some((one) => one.ids.length >= limit);
        if (slots.has(organizationId)) continue;
        if (slots.size >= DISPATCH_SLOTS) full = true;
        else slots.set(organizationId, serve(organizationId, dues));
      }
    },
    /** Fulfilled when the next round shall not wait: more was due than could be taken, and some of it is done. */
    more: () => wake.promise,
    async idle(): Promise<void> {
      await Promise.all(slots.values());
    },
  };
}

/** Waits for the interval, or less. */
async function pause(more: Promise<void>, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const stop = () => resolve();
  const timer = setTimeout(stop, INTERVAL_MS);
  signal.addEventListener('abort', stop, { once: true });
  more.then(stop);
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
  const slots = createSlots(context, signal);
  try {
    while (!signal.aborted) {
      try {
        if (await isSuperseded(dispatchDb, jobId)) return 'done';
        await slots.round();
      } catch (error) {
        logThrottled(log, throttle, 'dispatch cannot read what is due', error);
      }
      await pause(slots.more(), signal);
    }
    return 'unfinished';
  } finally {
    await slots.idle();
  }
};
