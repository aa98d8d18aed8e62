import type { CollectMode, DatasetAdapter, Rhythm } from '../providers/dataset.ts';
import { nextFire } from '../schedules/index.ts';

const DAY_S = 86_400;
const MIDNIGHT = '0 0 * * *';

/** Until a mode is first due that does not begin at once. */
export function firstDueSeconds(rhythm: Rhythm): number {
  return rhythm === 'midnight' ? DAY_S : rhythm.everySeconds;
}

/**
 * When a mode is due whose round is done, an instant; null: never again. At midnight on the clock of the source, or after so many
 * seconds.
 */
export function nextDue(
  { rhythm }: Pick<DatasetAdapter, 'rhythm'>,
  mode: CollectMode,
  timezone: string,
  now: Date,
): Date | null {
  const own = mode === 'backfill' ? undefined : rhythm[mode];
  if (own === undefined) return null;
  if (own !== 'midnight') return new Date(now.getTime() + own.everySeconds * 1_000);
  return nextFire(MIDNIGHT, timezone, now) ?? new Date(now.getTime() + DAY_S * 1_000);
}
