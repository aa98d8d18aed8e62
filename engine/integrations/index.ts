export { storeCredential, type VerifiedCredential, verifyCredential } from './connect.ts';
export { type OpenConnection, type UseOptions, useConnection } from './connection.ts';
export { checkSettings, type DiscoverOptions, discover, lookUp } from './discover.ts';
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
export { type ConnectionTarget, type Health, markHealth, markReauthorization } from './stored.ts';
