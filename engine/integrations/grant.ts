import { z } from 'zod';
import { call, type Queries } from '../db/call.ts';
import type { Decision } from '../db/decision.ts';
import { DEADLINE_MS, inTime } from '../providers/index.ts';
import { type OAuth2Credential, OAuthError, revokeToken } from '../providers/oauth/index.ts';
import { ProviderError } from '../providers/outgoing/index.ts';
import { isDiscovered, knownAuthorization, openAuthorization } from './authorization.ts';
import type { Integrations } from './integrations.ts';
import { notReady } from './problems.ts';
import { type ReadIntegration, targetOf } from './record.ts';
import { readFresh } from './refresh.ts';
import { accessOf, type ConnectionTarget, contextOf, oauth2Credential, readStored, type Stored } from './stored.ts';

const linkSchema = z.object({ id: z.uuid(), key: z.string() });
const readSchema = z.object({
  grantHash: z.string(),
  readAt: z.string(),
  connections: z.array(linkSchema.extend({ revision: z.int() })),
});
const deletedSchema = z.object({
  unlinked: z.array(linkSchema),
  changedMeanwhile: z.array(linkSchema),
  otherOrganizations: z.int(),
});
export type DeletedGrant = z.output<typeof deletedSchema>;

/** What was done at the provider, for `deleteGrant`. */
export type RevokedGrant = Readonly<{
  organizationId: string;
  grantHash: string;
  connections: z.output<typeof readSchema>['connections'];
  /** False: the provider could not be reached, or has no way to revoke. What is here is unlinked all the same. */
  revoked: boolean;
  /** By the database's clock, which connections are dated by. */
  beganAt: string;
}>;

/** Ends the authorization at the provider. @returns false where the provider has no way to. @throws OAuthError, ProviderError */
async function revokeAt(integrations: Integrations, stored: Stored, signal: AbortSignal): Promise<boolean> {
  const { provider, fields } = stored;
  const context = await contextOf(integrations, stored, { signal });
  if (provider.oauth1 !== undefined) {
    const { credential } = accessOf(stored);
    await provider.oauth1.revoke(context, credential);
    return true;
  }
  const credential = oauth2Credential(stored);
  const { oauth2 } = provider;
  if (oauth2 === undefined || credential === undefined) return false;
  if (!isDiscovered(oauth2)) {
    const { client } = knownAuthorization(integrations, provider, oauth2);
    const token = revocable(oauth2.needsRefreshToken, credential);
    const isKnown = await oauth2.revoke(context, client, token);
    // A token that the provider does not know was revoked before, unless it has expired: then the grant may still stand.
    return isKnown || token !== credential.accessToken || !hasEnded(credential);
  }
  const kept = fields.get('authorization');
  if (kept === undefined) return false;
  const { server, client } = openAuthorization(oauth2, kept);
  if (server.metadata.revocation_endpoint === undefined) return false;
  await revokeToken(context, server, client, credential.refreshToken ?? credential.accessToken);
  return true;
}

const hasEnded = ({ expiresAt }: Pick<OAuth2Credential, 'expiresAt'>): boolean =>
  expiresAt !== null && Date.parse(expiresAt) <= Date.now();

/** The connection; where the provider revokes by access token, with a fresh one if it can be had. */
async function readRevocable(
  integrations: Integrations,
  target: ConnectionTarget,
  { signal, withinMs }: Readonly<{ signal: AbortSignal; withinMs: number }>,
): Promise<Stored> {
  const read = () => readStored(integrations, target, { evenRefused: true });
  const stored = await read();
  const { oauth2 } = stored.provider;
  if (oauth2 === undefined || isDiscovered(oauth2) || oauth2.needsRefreshToken) return stored;
  // Another process may hold the lease of a refresh for longer: then it is tried with the token that there is.
  const soon = AbortSignal.any([signal, AbortSignal.timeout(withinMs)]);
  return readFresh(integrations, target, soon).catch(() => {
    signal.throwIfAborted();
    return read();
  });
}

/** The refresh token where the provider always gives one: it outlives the access token. */
function revocable(
  prefersRefresh: boolean,
  { refreshToken, accessToken }: Readonly<{ refreshToken: string | null; accessToken: string }>,
): string {
  return prefersRefresh ? (refreshToken ?? accessToken) : accessToken;
}

/**
 * Revokes the authorization of a connection at its provider, for all connections that hang on it. Nothing is unlinked yet:
 * `deleteGrant` does. A provider that does not work is no reason to keep a connection: `revoked` says whether it did.
 * @throws Problem 404, 409 `integration_not_ready`; the signal's reason
 */
export async function revokeGrant(
  integrations: Integrations,
  integration: ReadIntegration,
  options: Readonly<{ signal?: AbortSignal | undefined; deadlineMs?: number }> = {},
): Promise<RevokedGrant> {
  const { organizationId, record, provider } = integration;
  if (provider.oauth2 === undefined && provider.oauth1 === undefined) {
    throw notReady('provider', 'no_authorization', 'this provider takes a credential instead');
  }
  const args = { organizationId, integrationRef: record.id };
  const { grantHash, readAt, connections } = await call(
    integrations.db.of(organizationId),
    'integration_grant_read',
    args,
    readSchema,
  );
  let revoked = false;
  try {
    revoked = await inTime(provider.key, options, async (signal) => {
      const withinMs = Math.ceil((options.deadlineMs ?? DEADLINE_MS) / 2);
      const stored = await readRevocable(integrations, targetOf(integration), { signal, withinMs });
      return revokeAt(integrations, stored, signal);
    });
  } catch (error) {
    options.signal?.throwIfAborted();
    const facts = { organizationId, integrationId: record.id, provider: provider.key };
    if (error instanceof OAuthError || error instanceof ProviderError) {
      integrations.log.warn({ ...facts, reason: error.reason, code: error.code }, 'a grant was not revoked');
    } else integrations.log.warn({ ...facts, err: error }, 'a grant was not revoked');
  }
  return { organizationId, grantHash, connections, revoked, beganAt: readAt };
}

/** Unlinks what hung on a grant here, and has other organizations authorize theirs again. @throws Problem 404 */
export function deleteGrant(db: Queries, grant: RevokedGrant, decision?: Decision): Promise<DeletedGrant> {
  return call(db, 'integration_grant_delete', grant, deletedSchema, decision);
}
