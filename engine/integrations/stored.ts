import { z } from 'zod';
import { call } from '../db/call.ts';
import { Problem } from '../db/problem.ts';
import { ACCESS_MODES, CONNECTION_KINDS, INTEGRATION_STATUSES, READINESSES } from '../integration_states.ts';
import { type Access, type Provider, type ProviderContext, providers } from '../providers/index.ts';
import type { OAuth2Credential } from '../providers/oauth/index.ts';
import type { ProviderClient } from '../providers/outgoing/index.ts';
import { SecretError } from '../secrets/index.ts';
import { deploymentClient } from './authorization.ts';
import { type Integrations, organizationClient } from './integrations.ts';
import { integrationProblem, needsReauthorization } from './problems.ts';
import { openFields, secretRow } from './secrets.ts';

/** A connection as somebody has seen it: at another revision it is another one, and nothing is done with it. */
export type ConnectionTarget = Readonly<{ organizationId: string; integrationId: string; revision: number }>;

const storedSchema = z.object({
  connection: z.object({
    kind: z.enum(CONNECTION_KINDS),
    tokenVersion: z.int(),
    tokenExpiresAt: z.string().nullable(),
    grantedScopes: z.array(z.string()).nullable(),
    missingScopes: z.array(z.string()),
    subjectHash: z.string().nullable(),
  }),
  integration: z.object({
    id: z.uuid(),
    key: z.string(),
    provider: z.string(),
    status: z.enum(INTEGRATION_STATUSES),
    accessMode: z.enum(ACCESS_MODES),
    services: z.array(z.string()),
    settings: z.record(z.string(), z.unknown()).nullable(),
    readiness: z.enum(READINESSES),
  }),
  secrets: z.array(secretRow),
});
export type StoredRow = z.output<typeof storedSchema>;

/** A connection with its secrets, as it is stored. */
export type Stored = Readonly<{
  target: ConnectionTarget;
  provider: Provider;
  row: Omit<StoredRow, 'secrets'>;
  /** By field, opened. */
  fields: ReadonlyMap<string, string>;
}>;

/** Of an integration whose provider is no longer one of ours. @throws Problem 409 */
export function providerOf(key: string): Provider {
  const provider = providers.get(key);
  if (provider) return provider;
  throw new Problem(409, 'integration_not_ready', 'The integration is not ready for this.', [
    { path: 'provider', code: 'unknown_provider', message: 'this version does not know the provider' },
  ]);
}

export type ReauthorizationReason = 'refresh_refused' | 'key_lost' | 'scopes_withdrawn' | 'revoked' | 'client_refused';

const markedSchema = z.object({ marked: z.boolean() });

/**
 * Says of a connection that it has to be authorized again. A refusal counts for the tokens that it was of (`tokenVersion`), unless
 * others have taken their place; null: whatever they are.
 */
export async function markReauthorization(
  { db }: Pick<Integrations, 'db'>,
  { organizationId, integrationId, revision }: ConnectionTarget,
  reason: ReauthorizationReason,
  tokenVersion: number | null,
): Promise<boolean> {
  const args = { organizationId, integrationId, connectionRevision: revision, tokenVersion, reason };
  const { marked } = await call(db.of(organizationId), 'integration_reauthorization_mark', args, markedSchema);
  return marked;
}

/** Secrets whose key is gone, or that were damaged: the connection says so, and nobody gets a 500. */
async function openOrMark(integrations: Integrations, target: ConnectionTarget, row: StoredRow) {
  const { encryptionKeys } = integrations.settings;
  try {
    return openFields(encryptionKeys, target, row.secrets);
  } catch (error) {
    if (!(error instanceof SecretError)) throw error;
    // Without any key the deployment is at fault, and no connection: with its keys all of them work again.
    if (encryptionKeys.length === 0) throw integrationProblem(new SecretError('no_keys', error.message));
    integrations.log.warn(
      { organizationId: target.organizationId, integrationId: target.integrationId, reason: error.reason },
      'the secrets of a connection do not open',
    );
    await markReauthorization(integrations, target, 'key_lost', null);
    throw needsReauthorization();
  }
}

/**
 * Reads a connection and opens its secrets: the only way to them. `evenRefused`: also of one that has to be authorized again, for
 * whoever ends it.
 * @throws Problem 403, 404, 409
 */
export async function readStored(
  integrations: Integrations,
  target: ConnectionTarget,
  options: Readonly<{ evenRefused?: boolean }> = {},
): Promise<Stored> {
  const { organizationId, integrationId, revision } = target;
  const args = { organizationId, integrationId, connectionRevision: revision };
  const row = await call(integrations.db.of(organizationId), 'integration_secrets_read', args, storedSchema);
  const provider = providerOf(row.integration.provider);
  if (row.integration.readiness === 'needs_reauthorization' && !options.evenRefused) throw needsReauthorization();
  const { secrets: _sealed, ...rest } = row;
  return { target, provider, row: rest, fields: await openOrMark(integrations, target, row) };
}

/** The tokens of a connection by OAuth 2; undefined: it is connected in another way. */
export function oauth2Credential({ row, fields }: Pick<Stored, 'row' | 'fields'>): OAuth2Credential | undefined {
  const accessToken = fields.get('access_token');
  if (row.connection.kind !== 'oauth2' || accessToken === undefined) return undefined;
  const { tokenExpiresAt, grantedScopes } = row.connection;
  return {
    kind: 'oauth2',
    accessToken,
    expiresAt: tokenExpiresAt === null ? null : new Date(tokenExpiresAt).toISOString(),
    refreshToken: fields.get('refresh_token') ?? null,
    scopes: grantedScopes ?? [],
  };
}

/** What the provider is called with. */
export function accessOf(stored: Stored): Access {
  const credential = oauth2Credential(stored) ?? JSON.parse(stored.fields.get('credential') ?? '{"kind":"none"}');
  return { credential, settings: stored.row.integration.settings };
}

/** A context for calls in the name of a connection, or of one that is about to be. */
export function providerContext(
  integrations: Integrations,
  provider: Provider,
  client: ProviderClient,
  options: Readonly<{ account: string; signal?: AbortSignal | undefined; deadlineMs?: number }>,
): ProviderContext {
  return { client, deploymentClient: deploymentClient(integrations, provider), ...options };
}

/** The context of a stored connection. Budgets are those of its account. */
export async function contextOf(
  integrations: Integrations,
  { target, provider, row }: Stored,
  options: Readonly<{ signal?: AbortSignal | undefined; deadlineMs?: number }>,
): Promise<ProviderContext> {
  const client = await organizationClient(integrations, target.organizationId, provider.key);
  const account = row.connection.subjectHash ?? target.integrationId;
  return providerContext(integrations, provider, client, { account, ...options });
}
