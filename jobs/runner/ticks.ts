import { schedule } from 'node-cron';
import type { Logger } from 'pino';
import type { Config } from '../../engine/config.ts';
import { createThrottle } from '../../engine/log.ts';
import { type Tick, ticks } from '../ticks.ts';
import type { AddJob } from './handler.ts';

/** Of a machine that slept or was busy; what comes later still is left to the crontab. */
const LATE_MS = 10 * 60_000;
/** Whoever is asked then is asked by everybody at once: a minute spreads that. */
const SPREAD_MS = 60_000;

export type Ticks = Readonly<{
  /** Nothing is added from then on. May be called again. */
  stop(): void;
}>;

export type TicksOptions = Readonly<{ items?: readonly Tick[]; spreadMs?: number }>;

/**
 * Adds jobs when the clocks of their zones say so. Each process of several does: one job waits for all, as it has a key. A tick that
 * cannot add its job (the database is away) is left out: the job is due by its row, and the crontab adds it within the hour.
 */
export function startTicks(
  { currencyRates }: Pick<Config, 'currencyRates'>,
  addJob: AddJob,
  log: Logger,
  { items = currencyRates === 'off' ? [] : ticks, spreadMs = SPREAD_MS }: TicksOptions = {},
): Ticks {
  const throttle = createThrottle();

  async function add({ task, key }: Tick): Promise<void> {
    try {
      await addJob(task, {}, { key });
    } catch (error) {
      const { log: now } = throttle(task);
      if (now) log.warn({ task, err: error }, 'a tick could not add its job: the crontab does');
    }
  }

  const scheduled = items.map((tick) => {
    const task = schedule(tick.match, () => add(tick), {
      name: tick.task,
      timezone: tick.zone,
      maxRandomDelay: spreadMs,
      missedExecutionTolerance: LATE_MS,
      suppressMissedWarning: true,
      logger: {
        info: (message) => log.debug(message),
        debug: (message) => log.debug(String(message)),
        warn: (message) => log.debug(message),
        error: (message) => log.warn(`ticks: ${String(message)}`),
      },
      // A process lives by its queue alone.
      unref: true,
    });
    task.on('execution:missed', () => log.debug({ task: tick.task }, 'a tick was missed: the crontab adds its job'));
    return task;
  });
  return {
    stop() {
      for (const task of scheduled) void task.destroy();
    },
  };
}
