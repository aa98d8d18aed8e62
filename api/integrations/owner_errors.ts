// What the calls of integrations are refused with (docs/interface.md 7).
export const notFound = {
  status: 404,
  code: 'integration_not_found',
  when: 'the integration does not exist in this organization',
} as const;
export const forbidden = {
  status: 403,
  code: 'provider_forbidden',
  when: 'the organization does not allow the provider, or blocks its domain',
} as const;
export const conflict = {
  status: 409,
  code: 'integration_conflict',
  when: 'the connection has changed meanwhile',
} as const;
export const notReady = {
  status: 409,
  code: 'integration_not_ready',
  when: 'a step or a setting is missing; the issue says which',
} as const;
export const providerFailed = {
  status: 502,
  code: 'provider_failed',
  when: 'the provider refuses, or sends what cannot be read',
} as const;
export const providerUnavailable = {
  status: 503,
  code: 'provider_unavailable',
  when: 'the provider is down, slow or limits us; retry after the seconds in `Retry-After`',
} as const;
/** Of each call that asks a provider. */
export const ofProvider = [forbidden, providerFailed, providerUnavailable] as const;
