import { SESSION_COOKIE } from '../auth/admin_session.ts';
import type { Audience } from '../caller.ts';

export const securitySchemes = {
  ownerToken: {
    type: 'http',
    scheme: 'bearer',
    description:
      'Owners: an operator token (`OWNER_AUTH=token`) or a JWT (`OWNER_AUTH=jwt`). With `OWNER_AUTH=open`, which is only possible on a loopback address, no token is needed.',
  },
  agentServiceToken: {
    type: 'http',
    scheme: 'bearer',
    description:
      'Trusted agent runtimes and workers: a token of `AGENT_SERVICE_TOKENS`. It is valid for every organization.',
  },
  agentExecutionCapability: {
    type: 'http',
    scheme: 'bearer',
    description:
      'Agents: the `executionToken` that the start of a run returns. It is valid for one organization, one profile and one run, and expires with the lease of the run.',
  },
  integrationGatewayCapability: {
    type: 'http',
    scheme: 'bearer',
    description:
      'Executions: the `capability` of `resolveIntegration`, for one integration and at most 15 minutes. Git sends it as a password.',
  },
  adminToken: { type: 'http', scheme: 'bearer', description: 'Administrators: a token of `ADMIN_TOKENS`.' },
  adminSession: {
    type: 'apiKey',
    in: 'cookie',
    name: SESSION_COOKIE,
    description:
      'Administrators: the session cookie of the explorer. Only the pages of the explorer itself can use it.',
  },
} as const;

type Security = readonly Record<string, readonly never[]>[];

/** What owners authenticate with, and so most operations ask for: stated once, at the root of the document. */
export const commonSecurity: Security = [{ ownerToken: [] }, {}];

/** What a caller of each other audience authenticates with: one of the alternatives. */
export const securityOf: Record<Exclude<Audience, 'owner'>, Security> = {
  agent: [{ agentServiceToken: [] }, { agentExecutionCapability: [] }],
  gateway: [{ integrationGatewayCapability: [] }],
  worker: [{ agentServiceToken: [] }],
  admin: [{ adminToken: [] }, { adminSession: [] }],
  public: [],
};
