import { LOOKS, ZONE } from '../engine/currency_rates/index.ts';
import type { JobName, Payload } from './catalog.ts';
import { COLLECT } from './crontab.ts';

/** A job without a payload of its own. */
type Plain = { [N in JobName]: Record<string, never> extends Payload<N> ? N : never }[JobName];

export type Tick = Readonly<{
  task: Plain;
  key: string;
  /** A cron expression, by clocks of the zone. */
  match: string;
  zone: string;
}>;

/**
 * What clocks of a zone start: the crontab of the queue knows UTC alone. A tick adds a job, and no more: when the work is due is a row,
 * and the crontab looks at it too.
 */
export const ticks: readonly Tick[] = [{ task: 'currency_rates__collect', key: COLLECT.key, match: LOOKS, zone: ZONE }];
