/** What all onboarding endpoints have in common: one code for every refusal. */
export const common = {
  audience: 'owner',
  tag: 'Onboarding',
  codes: {
    400: 'request_failed',
    404: 'request_failed',
    408: 'request_failed',
    409: 'request_failed',
    413: 'request_failed',
    415: 'request_failed',
    429: 'request_failed',
    503: 'request_failed',
  },
} as const;

export const missing = {
  status: 404,
  code: 'request_failed',
  when: 'the organization has no onboarding, or you are not a member of it',
} as const;

export const notPermitted = {
  status: 409,
  code: 'request_failed',
  when: '`issues[0].code` is `not_permitted` (not in this status) or `stale` (`expectedGeneration` is not the current generation)',
} as const;
