// The values of the states of insights, as docs/interface.md 2.14 has them: the one list of each in the code. The database has its own, and
// test/states.test.ts compares them.
export const INSIGHT_ENVIRONMENTS = ['live', 'test'] as const;
/** See `CollectMode` (engine/providers/dataset.ts). */
export const INSIGHT_CURSOR_MODES = ['tail', 'backfill', 'rescan'] as const;
export const INSIGHT_UNIT_MODES = ['discovery', ...INSIGHT_CURSOR_MODES] as const;
export const INSIGHT_UNIT_STATES = ['leased', 'committed', 'discarded', 'failed', 'released', 'expired'] as const;
/** Computed by app.insight_source_status. */
export const INSIGHT_SOURCE_STATUSES = ['active', 'paused', 'unavailable'] as const;
/** Why a refresh leaves a source as it is (app.insight_refresh), in the order in which they are judged. */
export const INSIGHT_REFRESH_REASONS = [
  'paused',
  'unavailable',
  'leased',
  'retry_not_before',
  'due',
  'recent',
] as const;
