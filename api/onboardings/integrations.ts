import { newIntegrationFacts } from '../../engine/integrations/index.ts';
import { providers } from '../../engine/providers/index.ts';
import type { Onboarding } from './schema.ts';

/** What the completion makes integrations of where they are missing: the providers among the keys that were decided on. */
export function plannedIntegrations({ integrations }: Pick<Onboarding, 'integrations'>) {
  return integrations
    .filter(({ integrationKey }) => providers.has(integrationKey))
    .map(({ integrationKey }) => ({ key: integrationKey, ...newIntegrationFacts(integrationKey) }));
}
