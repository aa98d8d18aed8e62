import { z } from 'zod';
import { call, type Queries } from '../db/call.ts';
import type { Decision } from '../db/decision.ts';
import { Problem } from '../db/problem.ts';
import { type AccessMode, inTime, type Provider } from '../providers/index.ts';
import { isDiscovered, requireDeploymentClient } from './authorization.ts';
import { newSecret, secretHash } from './digests.ts';
import { discoverAuthorization, readConnected } from './flow_authorization.ts';
import { type Integrations, organizationClient } from './integrations.ts';
import { notReady, withProblems } from './problems.ts';
import { type ReadIntegration, requireSettings } from './record.ts';

export type FlowRequest = Readonly<{
  services: readonly string[];
  accessMode: AccessMode;
  replaceAccount: boolean;
  /** The person who begins it; null: there is no session. */
  starter: string | null;
}>;

const startedSchema = z.object({ flow: z.object({ id: z.uuid(), expiresAt: z.string() }) });

/** Whether people authorize it, in one way or the other. */
export function isAuthorized(provider: Provider): boolean {
  return provider.oauth2 !== undefined || provider.oauth1 !== undefined;
}

function checkServices(provider: Provider, services: readonly string[]): void {
  const known = new Set(provider.services.map(({ key }) => key));
  const unknown = services.flatMap((service, index) =>
    known.has(service)
      ? []
      : [{ path: `enabledTools.${index}`, code: 'invalid_value', message: 'is no service of this provider' }],
  );
  if (unknown.length > 0) throw new Problem(400, 'validation_failed', 'The request is not valid.', unknown);
  if (known.size > 0 && services.length === 0) {
    throw new Problem(400, 'validation_failed', 'The request is not valid.', [
      { path: 'enabledTools', code: 'too_small', message: `select at least one of ${[...known].join(', ')}` },
    ]);
  }
}

/** Where the authorization and the connection lead of a provider that is known: none of it may be of a domain that is blocked. */
async function requireReachable(
  integrations: Integrations,
  { organizationId, provider }: ReadIntegration,
): Promise<void> {
  const { oauth1, oauth2, origins = [] } = provider;
  const known = oauth2 === undefined || isDiscovered(oauth2) ? undefined : oauth2.server.metadata;
  const steps = [known?.authorization_endpoint, known?.token_endpoint, ...(oauth1?.addresses ?? [])];
  const addresses = [...steps, ...origins];
  const client = await organizationClient(integrations, organizationId, provider.key);
  for (const address of addresses) if (address !== undefined) client.secureUrl(provider.key, address);
}

/**
 * Whether an authorization can begin at all, before anything is written: what the deployment and the integration lack, and what the
 * server says of itself, the starter gets the error now, and not in a browser.
 * @throws Problem 400, 403, 409, 502, 503; the signal's reason
 */
export async function checkAuthorization(
  integrations: Integrations,
  integration: ReadIntegration,
  request: FlowRequest,
  options: Readonly<{ signal?: AbortSignal | undefined; deadlineMs?: number }> = {},
): Promise<void> {
  const { provider } = integration;
  if (!isAuthorized(provider))
    throw notReady('provider', 'no_authorization', 'this provider takes a credential instead');
  if (integrations.settings.encryptionKeys.length === 0) {
    throw notReady('ENCRYPTION_KEYS', 'deployment_setting', 'is not set, so that no credential can be kept');
  }
  checkServices(provider, request.services);
  requireSettings(integration);
  if (provider.oauth2 === undefined || !isDiscovered(provider.oauth2)) {
    requireDeploymentClient(integrations, provider);
    return withProblems(() => requireReachable(integrations, integration));
  }
  const { oauth2 } = provider;
  const found = await withProblems(() =>
    inTime(provider.key, options, async (signal) => {
      const stored = await readConnected(integrations, integration);
      return discoverAuthorization(integrations, integration, oauth2, { stored, signal });
    }),
  );
  if (found === null) {
    throw notReady(
      'connection',
      'no_authorization',
      'the server asks for no authorization: put a credential of kind none',
    );
  }
}

/**
 * Starts a flow: ten minutes for whoever has the ticket, which stands in the address of the page that begins it.
 * @throws Problem 403 `provider_forbidden`, 404
 */
export async function startFlow(
  db: Queries,
  { organizationId, record }: ReadIntegration,
  request: FlowRequest,
  decision?: Decision,
): Promise<Readonly<{ ticket: string; expiresAt: string }>> {
  const ticket = newSecret();
  const flow = { ticketHash: secretHash(ticket), ...request };
  const args = { organizationId, integrationRef: record.id, flow };
  const started = await call(db, 'integration_oauth_start', args, startedSchema, decision);
  return { ticket, expiresAt: new Date(started.flow.expiresAt).toISOString() };
}
