/** What all endpoints of contract 4.1 have in common: one code for every refusal. */
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
    503: 'request_failed',
  },
} as const;

export const missing = {
  status: 404,
  code: 'request_failed',
  when: 'there is no onboarding with this id, or not for you',
} as const;

export const notPermitted = {
  status: 409,
  code: 'request_failed',
  when: 'the state does not permit it, or expectedGeneration is not the generation; `issues[0].code` says which: `not_permitted`, `stale`',
} as const;
