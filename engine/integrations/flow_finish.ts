import { setTimeout as pause } from 'node:timers/promises';
import { z } from 'zod';
import { call } from '../db/call.ts';
import { Problem } from '../db/problem.ts';
import type { OAUTH_RESULTS } from '../integration_states.ts';
import type { Account, OAuth2, Provider } from '../providers/index.ts';
import { finishAuthorization, OAuthError, type OAuthReason, type Tokens } from '../providers/oauth/index.ts';
import { type ProviderClient, ProviderError } from '../providers/outgoing/index.ts';
import {
  type Authorization,
  deploymentClient,
  isDiscovered,
  knownAuthorization,
  openAuthorization,
} from './authorization.ts';
import { connectionFacts } from './connect.ts';
import { storedTexts } from './credential_texts.ts';
import { grantHash, newSecret, secretHash } from './digests.ts';
import { FLOW_FIELD, type Flow, findFlow, flowResult, type Pending, pendingSchema } from './flow_begin.ts';
import { type Integrations, organizationClient } from './integrations.ts';
import { planSchema } from './plan.ts';
import { integrationProblem } from './problems.ts';
import { type ReadIntegration, readIntegration } from './record.ts';
import { refreshDueAt } from './refresh.ts';
import { coversNothing } from './scopes.ts';
import { openField, sealedSchema, sealFields } from './secrets.ts';
import { providerContext } from './stored.ts';

export type FlowOutcome = Readonly<{
  /** Null: of a flow that nobody knows. */
  integrationKey: string | null;
  result: (typeof OAUTH_RESULTS)[number];
}>;

export type Callback = Readonly<{
  /** As the path names it. */
  provider: string;
  parameters: URLSearchParams;
  /** The secret of the cookie of this flow, by its id. */
  browserOf: (flowId: string) => string | undefined;
  /** Who is signed in; null: nobody, or nobody knows. */
  starter: string | null;
  /** For all requests to the provider together. A second delivery waits longer than that. Default: 25 s. */
  withinMs?: number;
}>;

const consumedSchema = flowResult.extend({
  outcome: z.enum(['consumed', 'repeat', 'expired', 'foreign']),
  sealed: sealedSchema.nullish(),
});

/** What is to be stored at the end of a flow. */
type Granted = Readonly<{
  account: Account;
  kind: 'oauth2' | 'oauth1';
  grantHash: string | null;
  tokenExpiresAt: string | null;
  refreshDueAt: string | null;
  /** The provider gave none, and the connection needs one: that of before, if it is of the same account. */
  reuseRefreshToken: boolean;
  secrets: ReadonlyMap<string, string>;
}>;

type Ending = Readonly<{
  integrations: Integrations;
  integration: ReadIntegration;
  flow: Flow;
  pending: Pending;
  client: ProviderClient;
  callback: Callback;
  /** Aborted when the time of the callback is over. */
  signal: AbortSignal;
}>;

function authorizationOf({ integrations, integration, pending }: Ending): Authorization {
  const { provider } = integration;
  if (provider.oauth2 === undefined) throw new TypeError(`${provider.key} has no OAuth 2`);
  if (!isDiscovered(provider.oauth2)) return knownAuthorization(integrations, provider, provider.oauth2);
  if (pending.authorization === null) throw new TypeError('the flow knows no server');
  return openAuthorization(provider.oauth2, pending.authorization);
}

const knownServer = ({ oauth2 }: Provider): OAuth2 | undefined =>
  oauth2 === undefined || isDiscovered(oauth2) ? undefined : oauth2;

function contextOf({ integrations, integration, client, signal }: Ending) {
  const { provider, record } = integration;
  return providerContext(integrations, provider, client, { account: record.id, signal });
}

function secretsOf(tokens: Tokens, kept: string | null): ReadonlyMap<string, string> {
  return new Map([
    ['access_token', tokens.accessToken],
    ...(tokens.refreshToken === null ? [] : [['refresh_token', tokens.refreshToken] as const]),
    ...(kept === null ? [] : [['authorization', kept] as const]),
  ]);
}

/** Tokens for the code, and whose they are. @throws OAuthError, ProviderError */
async function grantedByOAuth2(ending: Ending): Promise<Granted> {
  const { integration, flow, pending, callback } = ending;
  const { provider, record } = integration;
  const context = contextOf(ending);
  const authorization = authorizationOf(ending);
  const known = knownServer(provider);
  const { server, client, resource } = authorization;
  const { redirectUri } = pending;
  const options = { client, callback: callback.parameters, pending, redirectUri, resource };
  const tokens = await finishAuthorization(context, server, options);
  const told = known ? known.grantedScopes(tokens) : tokens.scopes;
  const scopes = [...(told ?? pending.scopes)];
  // All of it was unticked: a no, said in another way. What was connected before stays.
  if (known && coversNothing(provider, flow.services, scopes)) {
    throw new OAuthError('denied', 'The person granted nothing of what was asked for.');
  }
  const expiresAt = tokens.expiresAt?.toISOString() ?? null;
  const { accessToken, refreshToken } = tokens;
  const credential = { kind: 'oauth2', accessToken, expiresAt, refreshToken, scopes };
  const account = await provider.verify(context, { credential, settings: record.settings });
  // The ID token is of this flow; the account that the tokens open has to be the same.
  if (tokens.identity !== null && tokens.identity.subject !== account.subject) {
    throw new OAuthError('failed', 'The provider names another account than that of the ID token.');
  }
  return {
    account: { ...account, grantedScopes: scopes },
    kind: 'oauth2',
    // A server that does not say whose its tokens are keeps an authorization for each.
    grantHash: grantHash(known?.grant ?? provider.key, client.id, known ? account.subject : newSecret()),
    tokenExpiresAt: expiresAt,
    refreshDueAt: known?.needsRefreshToken || refreshToken !== null ? refreshDueAt({ refreshToken: 'any' }) : null,
    reuseRefreshToken: refreshToken === null && known !== undefined && (known.needsRefreshToken || expiresAt !== null),
    secrets: secretsOf(tokens, pending.authorization),
  };
}

/** @throws OAuthError, ProviderError */
async function grantedByOAuth1(ending: Ending): Promise<Granted> {
  const { integration, pending, callback } = ending;
  const { provider } = integration;
  const token = callback.parameters.get('oauth_token');
  const verifier = callback.parameters.get('oauth_verifier');
  const kept = pending.requestToken;
  if (provider.oauth1 === undefined || kept === null || token !== kept.token || verifier === null) {
    throw new OAuthError('failed', 'The callback is not one of this flow.');
  }
  const context = contextOf(ending);
  const { credential, account } = await provider.oauth1.finish(context, { ...kept, verifier });
  return {
    account,
    kind: 'oauth1',
    grantHash: grantHash(provider.key, context.deploymentClient?.id ?? '', account.subject),
    tokenExpiresAt: null,
    refreshDueAt: null,
    reuseRefreshToken: false,
    secrets: new Map([['credential', JSON.stringify(credential)]]),
  };
}

const completedSchema = flowResult.extend({ flow: z.object({ result: z.string() }) });

/** Writes the connection, under the integration's lock and against the revision that the flow began with. */
async function complete({ integrations, integration, flow }: Ending, granted: Granted): Promise<void> {
  const { organizationId, integrationId } = flow;
  const { provider } = integration;
  const { account, kind, secrets, ...facts } = granted;
  const texts = storedTexts({ provider, fields: secrets }, deploymentClient(integrations, provider)?.secret);
  const connection = { ...connectionFacts(provider, kind, account, texts), ...facts };
  const db = integrations.db.of(organizationId);
  const planned = { organizationId, integrationRef: integrationId, connection };
  const { nextRevision } = await call(db, 'integration_connection_plan', planned, planSchema);
  const place = { organizationId, integrationId, revision: nextRevision };
  const args = {
    organizationId,
    integrationId,
    flowId: flow.id,
    nextRevision,
    connection,
    secrets: sealFields(integrations.settings.encryptionKeys, provider.key, place, secrets),
  };
  await call(db, 'integration_oauth_complete', args, completedSchema);
}

/** The person said no: at the provider, or by leaving it. */
function isDenied(parameters: URLSearchParams): boolean {
  return parameters.has('denied') || parameters.get('error') === 'access_denied';
}

const reasonOf = (error: unknown): OAuthReason | undefined => (error instanceof OAuthError ? error.reason : undefined);

function logFailure({ integrations, flow }: Pick<Ending, 'integrations' | 'flow'>, error: unknown): void {
  const { organizationId, integrationId, provider } = flow;
  const facts = { organizationId, integrationId, provider };
  const problem = integrationProblem(error);
  if (error instanceof OAuthError || error instanceof ProviderError) {
    const { reason, code, message } = error;
    integrations.log.warn({ ...facts, reason, code, why: message }, 'an authorization failed');
  } else if (problem instanceof Problem) {
    // Deleted, or forbidden to it, while the person was at the provider.
    integrations.log.warn({ ...facts, code: problem.code, why: problem.message }, 'an authorization failed');
  } else integrations.log.error({ ...facts, err: error }, 'an authorization failed');
}

async function end({ db }: Integrations, flow: Flow, result: 'denied' | 'failed' | 'conflict'): Promise<void> {
  const { organizationId, id } = flow;
  await call(db.of(organizationId), 'integration_oauth_end', { organizationId, flowId: id, result }, flowResult);
}

/** For all of a callback: code, tokens and account. */
const WITHIN_MS = 25_000;

/** The flow is consumed: whatever happens now, it ends. */
async function carryOut(
  integrations: Integrations,
  flow: Flow,
  sealed: z.output<typeof sealedSchema>,
  callback: Callback,
): Promise<void> {
  if (isDenied(callback.parameters)) return end(integrations, flow, 'denied');
  const { organizationId, integrationId, connectionRevision: revision } = flow;
  const signal = AbortSignal.timeout(callback.withinMs ?? WITHIN_MS);
  try {
    const place = { organizationId, integrationId, field: FLOW_FIELD, revision };
    const pending = pendingSchema.parse(JSON.parse(openField(integrations.settings.encryptionKeys, place, sealed)));
    const integration = await readIntegration(integrations, { organizationId, integrationRef: integrationId });
    // Its settings may name another server by now, which must not get the tokens of this one.
    if (integration.record.connection_revision !== revision) return await end(integrations, flow, 'conflict');
    // Forbidden, maybe, while the person was at the provider: then the code is not exchanged.
    const client = await organizationClient(integrations, organizationId, integration.provider.key);
    const ending: Ending = { integrations, integration, flow, pending, client, callback, signal };
    const granted = await (integration.provider.oauth1 === undefined
      ? grantedByOAuth2(ending)
      : grantedByOAuth1(ending));
    signal.throwIfAborted();
    await complete(ending, granted);
  } catch (caught) {
    const isLate = signal.aborted && !(caught instanceof ProviderError);
    const error = isLate
      ? new ProviderError(flow.provider, 'unavailable', 'The provider did not respond in time.')
      : caught;
    logFailure({ integrations, flow }, error);
    await end(integrations, flow, reasonOf(error) === 'denied' ? 'denied' : 'failed');
  }
}

/** For what is written after the provider has responded. */
const WRITING_MS = 10_000;
const POLL_MS = 100;

/** How a flow ended that another delivery of the same callback is ending, or has ended. */
async function resultOf(
  integrations: Integrations,
  flow: Flow,
  { withinMs = WITHIN_MS }: Callback,
  read: () => Promise<Flow | null>,
): Promise<FlowOutcome> {
  const until = Date.now() + withinMs + WRITING_MS;
  let current = await read();
  while (current !== null && current.result === null && Date.now() < until) {
    await pause(POLL_MS);
    current = await read();
  }
  // The flow went with its integration: there is nothing left to connect.
  if (current === null) return { integrationKey: flow.integrationKey, result: 'conflict' };
  // The process that was ending it has died.
  if (current.result === null) await end(integrations, flow, 'failed');
  return { integrationKey: flow.integrationKey, result: current.result ?? 'failed' };
}

/**
 * Ends a flow by what the browser brings back from the provider. Delivered twice it ends alike and changes nothing. In another
 * browser than the one that began it fails, at another provider's address it is unknown (`expired`), and the flow stays open for
 * the right one. Never throws for what a provider does.
 */
export async function finishFlow(integrations: Integrations, callback: Callback): Promise<FlowOutcome> {
  const { parameters } = callback;
  const requestToken = parameters.get('oauth_token') ?? parameters.get('denied');
  const [kind, secret] =
    requestToken === null ? (['state', parameters.get('state')] as const) : (['request_token', requestToken] as const);
  const found = secret === null ? undefined : await findFlow(integrations, kind, secret);
  const unknown: FlowOutcome = { integrationKey: null, result: 'expired' };
  if (!found) return unknown;
  const { organizationId, id } = found;
  const browser = callback.browserOf(id);
  const { provider, starter } = callback;
  const args = { organizationId, flowId: id, provider, browserHash: secretHash(browser ?? ''), starter };
  const consume = () => call(integrations.db.of(organizationId), 'integration_oauth_consume', args, consumedSchema);
  const { flow, outcome, sealed } = await consume();
  if (flow === null) return unknown;
  const { integrationKey } = flow;
  if (outcome === 'foreign') return { integrationKey, result: 'failed' };
  if (outcome === 'expired') return { integrationKey, result: 'expired' };
  const again = async () => (await consume()).flow;
  if (outcome === 'consumed' && sealed) await carryOut(integrations, flow, sealed, callback);
  return resultOf(integrations, flow, callback, again);
}
