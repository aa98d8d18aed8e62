import type { z } from 'zod';
import { call, type Queries } from '../../engine/db/call.ts';
import type { Decision } from '../../engine/db/decision.ts';
import { newIntegrationFacts } from '../../engine/integrations/index.ts';
import { providers } from '../../engine/providers/index.ts';
import { invalid } from '../http/errors.ts';
import type { newIntegrationSchema, toolsBody } from './changes.ts';
import { type Integration, integrationResult, type StoredIntegration } from './schema.ts';

/** A decision about integrations of an organization. */
export type Deciding = Readonly<{
  db: Queries;
  params: Readonly<{ organizationId: string }>;
  decision: Decision | undefined;
}>;
export type DecidingOne = Deciding & Readonly<{ params: Readonly<{ integrationRef: string }> }>;

/** @throws Problem of the transition */
export async function createIntegration(
  { db, params, decision }: Deciding,
  body: z.output<typeof newIntegrationSchema>,
): Promise<Integration> {
  const integration = { ...newIntegrationFacts(body.provider), ...body };
  const args = { organizationId: params.organizationId, integration };
  return (await call(db, 'integration_create', args, integrationResult, decision)).integration;
}

/** @throws Problem 404 */
export function readIntegration(
  db: Queries,
  { organizationId, integrationRef }: Readonly<{ organizationId: string; integrationRef: string }>,
): Promise<StoredIntegration> {
  return call(db, 'integration_read', { organizationId, integrationRef }, integrationResult);
}

/**
 * Of a provider's own tools we know what they do. Where they are a server's, its owner says which of them only read.
 * @throws Problem 400
 */
function checkEffects(integration: Integration, effects: Readonly<Record<string, unknown>>): void {
  const own = new Set(providers.get(integration.provider)?.tools.map(({ key }) => key));
  const fixed = Object.keys(effects).find((key) => own.has(key));
  if (fixed !== undefined) throw invalid(`effects.${fixed}`, 'is a tool whose effect is known', 'effect_known');
}

/** @throws Problem of the transition, and 400 for an effect that is not the owner's to say */
export async function selectTools(
  { db, params, decision }: DecidingOne,
  change: z.output<typeof toolsBody>,
): Promise<Integration> {
  if (change.effects) checkEffects((await readIntegration(db, params)).integration, change.effects);
  return (await call(db, 'integration_tools_put', { ...params, change }, integrationResult, decision)).integration;
}
