import type { z } from 'zod';
import type { Queries } from '../db/call.ts';
import { call } from '../db/call.ts';
import type { Decision } from '../db/decision.ts';
import { Problem } from '../db/problem.ts';
import { issueText } from '../issue_text.ts';
import type { Account, Provider } from '../providers/index.ts';
import { shownText } from '../providers/texts.ts';
import { toIssues } from '../schema_issues.ts';
import { credentialTexts, withoutCredential } from './credential_texts.ts';
import { subjectHash } from './digests.ts';
import { type Integrations, organizationClient } from './integrations.ts';
import { planSchema } from './plan.ts';
import { withProblems } from './problems.ts';
import { type ReadIntegration, recordResult, requireSettings } from './record.ts';
import { sealFields } from './secrets.ts';
import { providerContext } from './stored.ts';

/** A credential that the provider has accepted, sealed for the revision that it is going to have. */
export type VerifiedCredential = Readonly<{
  organizationId: string;
  integrationId: string;
  revision: number;
  nextRevision: number;
  connection: Readonly<Record<string, unknown>>;
  secrets: readonly Readonly<Record<string, unknown>>[];
}>;

const kindOf = (credential: unknown) =>
  typeof credential === 'object' && credential !== null && 'kind' in credential ? String(credential.kind) : '';

/**
 * The credential as the provider reads it.
 * @throws Problem 400 `credential_rejected`: its kind is not one of the provider, or a person does not send it; messages repeat nothing
 */
export function parseCredential(provider: Provider, credential: unknown): Readonly<{ kind: string }> {
  const kind = kindOf(credential);
  const isOAuth = kind === 'oauth2' || kind === 'oauth1';
  if (isOAuth || !provider.connections.some((one) => one === kind)) {
    const kinds = provider.connections.filter((one) => one !== 'oauth2' && one !== 'oauth1');
    const message = kinds.length === 0 ? 'authorize this provider instead' : `must be ${kinds.join(' or ')}`;
    const issues = [{ path: 'kind', code: 'invalid_value', message }];
    throw new Problem(400, 'credential_rejected', 'The provider takes no credential of this kind.', issues);
  }
  const parsed = provider.credential.safeParse(credential, { error: issueText });
  if (parsed.success) return { ...(parsed.data as object), kind };
  // Messages tell what was expected, and not what was given.
  throw new Problem(400, 'credential_rejected', 'The credential is not one of this provider.', toIssues(parsed.error));
}

const MAX_SCOPES = 200;
/** RFC 6749, 3.3, with a length. */
const SCOPE = /^[\x21\x23-\x5b\x5d-\x7e]{1,300}$/;

/** Those that are scopes. */
export function knownScopes(scopes: readonly string[]): readonly string[] {
  return scopes.filter((scope) => SCOPE.test(scope)).slice(0, MAX_SCOPES);
}

/** The facts of a connection as SQL takes them. `secrets`: of its credential, which no name that a provider tells may repeat. */
export function connectionFacts(provider: Provider, kind: string, account: Account, secrets: readonly string[]) {
  return {
    kind,
    accountLabel: shownText(withoutCredential(account.label, secrets)) || null,
    // Without a credential there is no account to compare.
    subjectHash: kind === 'none' ? null : subjectHash(provider.key, account.subject),
    grantedScopes: account.grantedScopes === undefined ? null : knownScopes(account.grantedScopes),
  };
}

/**
 * Asks the provider whose a credential is, and seals it. Stores nothing: `storeCredential` does, against the revision that
 * `integration` was read at, so that a disconnect meanwhile is not undone.
 * @throws Problem 400 `credential_rejected`, 403, 404, 409 `integration_not_ready`, 502, 503; the signal's reason
 */
export async function verifyCredential(
  integrations: Integrations,
  integration: ReadIntegration,
  credential: unknown,
  options: Readonly<{ signal?: AbortSignal | undefined; deadlineMs?: number }> = {},
): Promise<VerifiedCredential> {
  const { organizationId, record, provider } = integration;
  const given = parseCredential(provider, credential);
  requireSettings(integration);
  return withProblems(async () => {
    const { encryptionKeys } = integrations.settings;
    const client = await organizationClient(integrations, organizationId, provider.key);
    const context = providerContext(integrations, provider, client, { account: record.id, ...options });
    const account = await provider.verify(context, { credential: given, settings: record.settings });
    const connection = connectionFacts(provider, given.kind, account, credentialTexts(given));
    const args = { organizationId, integrationRef: record.id, connection };
    const { nextRevision } = await call(
      integrations.db.of(organizationId),
      'integration_connection_plan',
      args,
      planSchema,
    );
    const place = { organizationId, integrationId: record.id, revision: nextRevision };
    const fields = new Map(given.kind === 'none' ? [] : [['credential', JSON.stringify(given)] as const]);
    return {
      organizationId,
      integrationId: record.id,
      revision: record.connection_revision,
      nextRevision,
      connection,
      secrets: sealFields(encryptionKeys, provider.key, place, fields),
    };
  }, 'credential');
}

/**
 * Connects an integration by what was verified: one statement, with the decision of its owner.
 * @throws Problem 403 `provider_forbidden`, 404, 409 `integration_conflict` | `integration_account_differs`
 */
export async function storeCredential<S extends z.ZodType = typeof recordResult>(
  db: Queries,
  verified: VerifiedCredential,
  options: Readonly<{ replaceAccount: boolean; decision?: Decision | undefined; schema?: S }>,
): Promise<z.output<S>> {
  const { integrationId, connection, secrets, ...rest } = verified;
  const { replaceAccount, decision, schema = recordResult as unknown as S } = options;
  const args = { ...rest, integrationRef: integrationId, connection, secrets, replaceAccount };
  return call(db, 'integration_connect', args, schema, decision);
}
