// The values of an integration's states, as docs/interface.md 2.13 has them.
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
export const REPAIR_STATUSES = ['queued', 'applied', 'failed'] as const;
