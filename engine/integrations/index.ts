// An authorization by OAuth, in order: startFlow (an owner asks, and gets a page's address with a ticket of ten minutes), readTicket
// (that page), beginFlow (its button binds the browser and sends it to the provider), finishFlow (the callback: code, tokens, account,
// connection). Then useConnection and refreshConnection renew the tokens, and revokeGrant ends them. Over HTTP the first is
// api/integrations/oauth.ts, the pages are api/integrations/oauth_pages.ts.

export { storeCredential, type VerifiedCredential, verifyCredential } from './connect.ts';
export { type OpenConnection, type UseOptions, useConnection } from './connection.ts';
export { checkSettings, type DiscoverOptions, discover, lookUp } from './discover.ts';
export { beginFlow, type Flow, readTicket } from './flow_begin.ts';
export { type Callback, type FlowOutcome, finishFlow } from './flow_finish.ts';
export { checkAuthorization, type FlowRequest, isAuthorized, startFlow } from './flow_start.ts';
export { type DeletedGrant, deleteGrant, type RevokedGrant, revokeGrant } from './grant.ts';
export { type Health, healthOf, markHealth } from './health.ts';
export { type Integrations, type IntegrationsOptions, openIntegrations } from './integrations.ts';
export { type Given, integrationProblem, needsReauthorization, notReady, withProblems } from './problems.ts';
export {
  type IntegrationRecord,
  type IntegrationRef,
  newIntegrationFacts,
  type ReadIntegration,
  readIntegration,
  targetOf,
  toolRows,
} from './record.ts';
export { refreshConnection } from './refresh.ts';
export { type ConnectionTarget, markReauthorization } from './stored.ts';
