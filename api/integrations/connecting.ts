import type { z } from 'zod';
import { call } from '../../engine/db/call.ts';
import { Problem } from '../../engine/db/problem.ts';
import {
  checkSettings,
  discover,
  lookUp,
  type ReadIntegration,
  readIntegration,
  storeCredential,
  verifyCredential,
} from '../../engine/integrations/index.ts';
import type { Discovery } from '../../engine/providers/index.ts';
import type { Context } from '../http/endpoint.ts';
import type { credentialBody } from './changes.ts';
import { type Integration, integrationResult } from './schema.ts';

/** A call about one integration that asks its provider, outside of any transaction. */
export type Asking = Pick<Context<'owner'>, 'services' | 'decision' | 'signal' | 'commit'> &
  Readonly<{ params: Readonly<{ organizationId: string; integrationRef: string }> }>;

/** Where its credential is sent; undefined: to the provider's own address. */
function addressOf({ provider }: ReadIntegration, settings: Readonly<Record<string, unknown>> | null): unknown {
  const field = provider.settings?.address;
  return field === undefined ? undefined : settings?.[field];
}

/**
 * Sets what of the provider may be reached, after the provider was asked. Settings that name another server end the connection, and
 * what is under way for it: its secrets are for the other one, and so are the tools of a server that has its own.
 * @throws Problem 400 `settings_invalid`, 403, 404, 409, 502, 503
 */
export async function putSettings({ services, params, decision, signal, commit }: Asking, given: unknown) {
  const { integrations } = services;
  const integration = await readIntegration(integrations, params);
  const checked = await checkSettings(integrations, integration, given, { signal });
  const settings = checked.settings as Readonly<Record<string, unknown>>;
  const { record } = integration;
  const args = {
    organizationId: params.organizationId,
    integrationRef: record.id,
    connectionRevision: record.connection_revision,
    settings,
    disconnect: addressOf(integration, record.settings) !== addressOf(integration, settings),
    forgetTools: integration.provider.hasServerTools,
  };
  const changed = await commit((db) => call(db, 'integration_settings_put', args, integrationResult, decision));
  return changed.integration;
}

/**
 * Connects by a credential that the provider has accepted.
 * @throws Problem 400 `credential_rejected`, 403, 404, 409, 502, 503
 */
export async function putCredential(
  { services, params, decision, signal, commit }: Asking,
  { replaceAccount = false, ...credential }: z.output<typeof credentialBody>,
): Promise<Integration> {
  const { integrations } = services;
  const integration = await readIntegration(integrations, params);
  const verified = await verifyCredential(integrations, integration, credential, { signal });
  const options = { replaceAccount, decision, schema: integrationResult };
  return (await commit((db) => storeCredential(db, verified, options))).integration;
}

/** What a response calls `truncated`: items are missing, or details of some. */
export const isTruncated = ({ truncated, partial = false }: Discovery): boolean => truncated || partial;

/** Asks what there is, and records how that went. @throws Problem 403, 404, 409, 502, 503 */
export async function discoverIntegration({ services, params, signal }: Asking) {
  const { integrations } = services;
  const integration = await readIntegration(integrations, params);
  const found = await discover(integrations, integration, { signal });
  const { discovery } = integrationResult.parse({ integration: found.integration }).integration;
  if (discovery === null) throw new Error('a discovery was not recorded');
  const { items } = found.discovery;
  return { discovery, items: [...items], truncated: isTruncated(found.discovery) };
}

/** An integration of the provider that the path names. @throws Problem 404 */
export async function readOf(
  { services, params }: Pick<Asking, 'services' | 'params'>,
  provider: string,
): Promise<ReadIntegration> {
  const integration = await readIntegration(services.integrations, params);
  if (integration.provider.key === provider) return integration;
  throw new Problem(404, 'integration_not_found', `There is no integration of ${provider} with this id or key.`, [
    {
      path: 'integrationRef',
      code: 'another_provider',
      message: `is an integration of ${integration.provider.title}`,
    },
  ]);
}

/**
 * What a person may choose from, of an integration of this provider. Nothing of it is kept.
 * @throws Problem 400 `credential_rejected`, 403, 404, 409, 502, 503
 */
export async function lookUpChoices(
  asking: Omit<Asking, 'decision' | 'commit'>,
  provider: string,
  given: Readonly<{ credential?: unknown; settings?: unknown }>,
): Promise<Discovery> {
  const { services, signal } = asking;
  return lookUp(services.integrations, await readOf(asking, provider), { ...given, signal });
}
