import { call, ignored } from '../db/call.ts';
import type { Access, Provider, ProviderContext } from '../providers/index.ts';
import { cutShort, ProviderError } from '../providers/outgoing/index.ts';
import { ToolChangedError } from '../providers/tool.ts';
import { repeating } from '../secret_values.ts';
import { storedTexts } from './credential_texts.ts';
import { healthOf, markHealth } from './health.ts';
import type { Integrations } from './integrations.ts';
import { needsReauthorization, notReady } from './problems.ts';
import { readFresh, refreshed, tokensMoved } from './refresh.ts';
import { recordDiscovery, shownDiscovery } from './server_tools.ts';
import {
  accessOf,
  type ConnectionTarget,
  contextOf,
  markReauthorization,
  oauth2Credential,
  type Stored,
  type StoredRow,
} from './stored.ts';

/** A connection to work with: its secrets are open, and its tokens are fresh. */
export type OpenConnection = Readonly<{
  target: ConnectionTarget;
  provider: Provider;
  integration: StoredRow['integration'];
  grantedScopes: readonly string[] | null;
  access: Access;
  context: ProviderContext;
  /** What no response may repeat: `withoutCredential` takes it out. */
  secrets: readonly string[];
}>;

export type UseOptions = Readonly<{
  signal?: AbortSignal | undefined;
  /** Also of an integration that is disabled: its owner looks at it. Default: 409. */
  evenDisabled?: boolean;
  /** `run` asks about the connection itself: however it ends is the connection's health, and is recorded. */
  isCheck?: boolean;
  /** All of it together: refreshing, and what is done then. */
  withinMs?: number;
  /** The caller chose that time, and it is shorter than is usual: that it was not enough says nothing of the provider. */
  isShort?: boolean;
}>;

/** The provider works. A call records that only where the connection was degraded, and does not fail if it cannot. */
async function noteSuccess(
  integrations: Integrations,
  { target, row }: Stored,
  { isCheck }: UseOptions,
): Promise<void> {
  if (isCheck) return markHealth(integrations, target, { state: 'works' });
  if (row.integration.readiness !== 'degraded') return;
  await markHealth(integrations, target, { state: 'works' }).catch((error: unknown) => {
    integrations.log.warn({ err: error, integrationId: target.integrationId }, 'a recovery was not recorded');
  });
}

/** What a server offers in place of the tool that was to be called: the tool is off. What cannot be recorded shows at the next call. */
async function noteTools(
  integrations: Integrations,
  stored: Stored,
  secrets: readonly string[],
  error: ToolChangedError,
) {
  const { target } = stored;
  const { tools = [] } = shownDiscovery(error.discovery, secrets);
  await recordDiscovery(integrations, target, { status: 'ok' }, tools).catch((cause: unknown) => {
    integrations.log.warn({ err: cause, integrationId: target.integrationId }, 'a changed tool was not recorded');
  });
}

/** Scopes that a provider says are missing: the next authorization asks for them. What cannot be recorded shows at the next call. */
async function noteScopes(integrations: Integrations, stored: Stored, { scopes }: ProviderError): Promise<void> {
  const { organizationId, integrationId, revision } = stored.target;
  const isRepeat = repeating(storedTexts(stored, undefined));
  const missing = scopes.filter((scope) => !isRepeat(scope));
  if (missing.length === 0) return;
  const args = { organizationId, integrationId, connectionRevision: revision, scopes: missing };
  await call(integrations.db.of(organizationId), 'integration_scopes_note', args, ignored).catch((cause: unknown) => {
    integrations.log.warn({ err: cause, integrationId }, 'missing scopes were not recorded');
  });
}

/** What a failed call says about its connection. @returns what its caller gets */
async function noteFailure(
  integrations: Integrations,
  stored: Stored,
  error: ProviderError,
  { isCheck = false }: UseOptions,
): Promise<Error> {
  const { target, row, provider } = stored;
  if (error.reason === 'rejected') {
    const isNewest = await markReauthorization(integrations, target, 'revoked', row.connection.tokenVersion);
    return isNewest ? needsReauthorization() : tokensMoved(provider);
  }
  await noteScopes(integrations, stored, error);
  const health = healthOf(error, isCheck ? 'check' : 'call');
  if (health.state !== 'not_asked') await markHealth(integrations, target, health);
  return error;
}

function requireUsable(stored: Stored, { evenDisabled = false }: UseOptions): void {
  if (stored.row.integration.status === 'disabled' && !evenDisabled) {
    throw notReady('status', 'disabled', 'enable the integration first');
  }
}

const isRejected = (error: unknown): error is ProviderError =>
  error instanceof ProviderError && error.reason === 'rejected';

/** A signal that is also aborted when the time is over; what then comes is a provider that did not respond. */
function within(provider: () => string, { signal, withinMs, isShort = false }: UseOptions) {
  const late = withinMs === undefined ? undefined : AbortSignal.timeout(withinMs);
  const endMs = performance.now() + (withinMs ?? Number.POSITIVE_INFINITY);
  const signals = [signal, late].flatMap((one) => one ?? []);
  return {
    signal: signals.length === 0 ? undefined : AbortSignal.any(signals),
    /** `isOurs`: the time went by waiting for tokens, whose refresh goes on and records how it ends. */
    failure(error: unknown, isOurs: boolean): unknown {
      const isProviders = error instanceof ProviderError;
      // Who leaves breaks off what is under way, in whatever words: of the provider nothing is known.
      if (signal?.aborted) return isProviders ? signal.reason : error;
      if (isProviders) return isShort ? cutShort(error, endMs) : error;
      if (!late?.aborted) return error;
      const facts = { isOurs: isOurs || isShort };
      return new ProviderError(provider(), 'unavailable', 'The provider did not respond in time.', facts);
    },
  };
}

/**
 * Does something in the name of a connection: opens its secrets, refreshes its tokens where they are over, and once more where the
 * provider no longer takes them; says of the connection what the outcome says about it.
 * @throws Problem 403, 404, 409 (`integration_not_ready`, `integration_conflict`); ProviderError and OAuthError, which
 *   `integrationProblem` maps; the signal's reason
 */
export async function useConnection<T>(
  integrations: Integrations,
  target: ConnectionTarget,
  run: (connection: OpenConnection) => Promise<T>,
  options: UseOptions = {},
): Promise<T> {
  let providerKey = '';
  const time = within(() => providerKey, options);
  async function once(stored: Stored): Promise<T> {
    const { provider, row } = stored;
    providerKey = provider.key;
    const context = await contextOf(integrations, stored, { signal: time.signal });
    const secrets = storedTexts(stored, context.deploymentClient?.secret);
    const result = run({
      target,
      provider,
      integration: row.integration,
      grantedScopes: row.connection.grantedScopes,
      access: accessOf(stored),
      context,
      secrets,
    });
    return result.catch(async (error: unknown) => {
      if (error instanceof ToolChangedError) await noteTools(integrations, stored, secrets, error);
      throw error;
    });
  }
  // While it is in use. How a refresh of its tokens ends is recorded there.
  let used: Stored | undefined;
  async function use(stored: Stored): Promise<T> {
    used = stored;
    const result = await once(stored);
    await noteSuccess(integrations, stored, options);
    return result;
  }
  try {
    const first = await readFresh(integrations, target, time.signal, (read) => requireUsable(read, options));
    return await use(first).catch(async (error: unknown) => {
      // An access token may end before its time. What was rejected was not done, so that it may be sent again.
      if (!isRejected(error) || !oauth2Credential(first)?.refreshToken) throw error;
      used = undefined;
      const again = await refreshed(integrations, first, time.signal);
      requireUsable(again, options);
      return use(again);
    });
  } catch (error) {
    const failure = time.failure(error, used === undefined);
    if (used && failure instanceof ProviderError) throw await noteFailure(integrations, used, failure, options);
    throw failure;
  }
}
