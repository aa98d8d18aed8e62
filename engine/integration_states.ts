// The values of an integration's states, as docs/interface.md 2.13 has them: the one list of each in the code. The database has its
// own, and test/states.test.ts compares them.
export const INTEGRATION_STATUSES = ['enabled', 'disabled'] as const;
export const ACCESS_MODES = ['read_only', 'full'] as const;
export const DISCOVERY_STATUSES = ['ok', 'failed'] as const;
export const TOOL_EFFECTS = ['read', 'write'] as const;
export const TOOL_RISKS = ['low', 'external', 'high'] as const;
export const CONNECTION_KINDS = [
  'none',
  'api_key',
  'bearer_token',
  'github_token',
  'mongodb',
  'oauth1',
  'oauth2',
] as const;
export const OAUTH_RESULTS = ['connected', 'denied', 'failed', 'expired', 'conflict'] as const;
export const GATEWAY_KINDS = ['cli', 'git'] as const;
export const REPAIR_STATUSES = ['queued', 'applied'] as const;
/** Computed by app.integration_readiness. Agents see the last two as `ready`. */
export const READINESSES = [
  'not_connected',
  'needs_configuration',
  'needs_reauthorization',
  'ready',
  'degraded',
] as const;
/** Why a tool cannot be used as its integration stands (app.integration_tool_unavailable). */
export const TOOL_REASONS = ['not_offered', 'read_only', 'not_connected', 'scopes_missing'] as const;
/** Why a profile may not use an integration (app.integration_unavailable). */
export const UNAVAILABLE_REASONS = [
  'disabled',
  'provider_forbidden',
  'not_connected',
  'needs_configuration',
  'needs_reauthorization',
  'profile_disabled',
  'department',
  'tool_policy',
] as const;
