// The values of an action's states, as docs/interface.md 2.12 has them.
export const ACTION_KINDS = ['provider_write', 'git_push'] as const;
export const ACTION_STATUSES = [
  'awaiting_approval',
  'approved',
  'rejected',
  'expired',
  'cancelled',
  'executing',
  'succeeded',
  'failed',
  'unknown',
  'not_executed',
] as const;
export const ACTION_DECISIONS = ['approved', 'rejected'] as const;
export const ACTION_RECONCILIATIONS = ['succeeded', 'failed', 'not_executed'] as const;
