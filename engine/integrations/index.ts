// An authorization by OAuth, in order: startFlow (an owner asks, and gets a page's address with a ticket of ten minutes), readTicket
// (that page), beginFlow (its button binds the browser and sends it to the provider), finishFlow (the callback: code, tokens, account,
// connection). Then useConnection and refreshConnection renew the tokens, and revokeGrant ends them. Over HTTP the first is
// api/integrations/oauth.ts, the pages are api/integrations/oauth_pages.ts.

export { storeCredential, verifyCredential } from './connect.ts';
export { type OpenConnection, useConnection } from './connection.ts';
export { withoutCredential } from './credential_texts.ts';
export { checkSettings, discover, lookUp } from './discover.ts';
export { beginFlow, type Flow, readTicket } from './flow_begin.ts';
export { type FlowOutcome, finishFlow } from './flow_finish.ts';
export { checkAuthorization, isAuthorized, startFlow } from './flow_start.ts';
export { deleteGrant, revokeGrant } from './grant.ts';
export { healthOf, markHealth } from './health.ts';
export { type Integrations, openIntegrations } from './integrations.ts';
export { integrationProblem, notReady, tooLarge, tooMuch } from './problems.ts';
export { newIntegrationFacts, type ReadIntegration, readIntegration } from './record.ts';
export { refreshConnection } from './refresh.ts';
export { recordDiscovery, shownDiscovery } from './server_tools.ts';
export type { ConnectionTarget } from './stored.ts';
