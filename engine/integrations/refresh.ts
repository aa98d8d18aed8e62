import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { z } from 'zod';
import { call } from '../db/call.ts';
import { isTransient, isUnavailable } from '../db/errors.ts';
import { Problem } from '../db/problem.ts';
import { OAuthError, refreshedCredential, refreshTokens, type Tokens } from '../providers/oauth/index.ts';
import { ProviderError } from '../providers/outgoing/index.ts';
import { type Authorization, isDiscovered, knownAuthorization, openAuthorization } from './authorization.ts';
import { healthOf, markHealth } from './health.ts';
import type { Integrations } from './integrations.ts';
import { needsReauthorization } from './problems.ts';
import { changedScopes } from './scopes.ts';
import { sealFields } from './secrets.ts';
import {
  type ConnectionTarget,
  contextOf,
  markReauthorization,
  oauth2Credential,
  readStored,
  type Stored,
} from './stored.ts';

// One process of all exchanges the tokens of a connection. It holds a lease in the connection's row, and no transaction while the
// provider is asked. The others read again until there are newer tokens.

/** A token that ends sooner is exchanged before it is used. */
const MARGIN_MS = 60_000;
/** Longer than the request for new tokens may take, with what is written after it. */
const LEASE_S = 30;
/** How long a process waits for another one's refresh: for its whole lease, and for one of its own. */
const WAIT_MS = 45_000;
const POLL_MS = 100;
/** Refresh tokens that nobody uses die: at Google and GitHub after six months, at servers that people run sooner. */
const UNUSED_MS = 14 * 24 * 3_600_000;

const leaseSchema = z.object({ leased: z.boolean(), tokenVersion: z.int() });
const savedSchema = z.object({ saved: z.boolean(), tokenVersion: z.int() });

/** When tokens are exchanged although nobody uses the connection; null: never, as nothing dies of that. */
export function refreshDueAt(tokens: Readonly<{ refreshToken: string | null }>, now = Date.now()): string | null {
  if (tokens.refreshToken === null) return null;
  return new Date(now + UNUSED_MS * (0.9 + Math.random() * 0.2)).toISOString();
}

function authorizationOf(integrations: Integrations, { provider, fields }: Stored): Authorization {
  const { oauth2 } = provider;
  if (oauth2 === undefined) throw new TypeError(`${provider.key} has no OAuth 2`);
  if (!isDiscovered(oauth2)) return knownAuthorization(integrations, provider, oauth2);
  const kept = fields.get('authorization');
  if (kept === undefined) throw new TypeError('the connection was not authorized');
  return openAuthorization(oauth2, kept);
}

/** Whether the client is one of the settings; false: its server has registered it, or it is that of settings that are gone. */
function isDeploymentClient(integrations: Integrations, stored: Stored): boolean {
  const { oauth2 } = stored.provider;
  if (oauth2 === undefined || !isDiscovered(oauth2)) return true;
  const { mcpClient } = integrations.settings;
  const id = mcpClient?.kind === 'metadata' ? mcpClient.url : mcpClient?.id;
  return authorizationOf(integrations, stored).client.id === id;
}

/** True where the access token is over, or about to be. */
function isOver(stored: Stored): boolean {
  const expiresAt = oauth2Credential(stored)?.expiresAt ?? null;
  return expiresAt !== null && Date.parse(expiresAt) - MARGIN_MS <= Date.now();
}

/** What a provider gave once it gives to nobody again: while Postgres restarts, saving is tried again. */
async function saving<T>(run: () => Promise<T>): Promise<T> {
  for (let number = 1; ; number += 1) {
    try {
      return await run();
    } catch (error) {
      if (number >= 8 || !(isUnavailable(error) || isTransient(error))) throw error;
      await pause(Math.min(2_000, 100 * 2 ** number));
    }
  }
}

function rotated(integrations: Integrations, stored: Stored, tokens: Tokens) {
  const { target, provider, row } = stored;
  const credential = oauth2Credential(stored);
  if (!credential) throw new TypeError('the connection has no tokens');
  const next = refreshedCredential(credential, tokens);
  const secrets = new Map([['access_token', next.accessToken]]);
  if (next.refreshToken !== null && tokens.refreshToken !== null) secrets.set('refresh_token', next.refreshToken);
  const { organizationId, integrationId, revision } = target;
  return {
    organizationId,
    integrationId,
    connectionRevision: revision,
    tokenVersion: row.connection.tokenVersion,
    tokens: {
      tokenExpiresAt: next.expiresAt,
      refreshDueAt: refreshDueAt(next),
      ...changedScopes(stored, credential, tokens),
    },
    secrets: sealFields(integrations.settings.encryptionKeys, provider.key, target, secrets),
  };
}

/** What was refused were older tokens than those that there are now: with these it may work. */
export function tokensMoved({ key }: Stored['provider']): ProviderError {
  return new ProviderError(key, 'unavailable', 'The tokens of the connection have changed meanwhile.', {
    isOurs: true,
  });
}

/** Why a connection has to be authorized again whose refresh was refused; undefined: that would mend nothing. */
function reauthorizationOf(integrations: Integrations, stored: Stored, error: unknown) {
  if (!(error instanceof OAuthError)) return undefined;
  if (error.reason === 'invalid_grant') return 'refresh_refused';
  // With the next authorization the server registers another client.
  const isForgotten = error.reason === 'client_refused' && !isDeploymentClient(integrations, stored);
  return isForgotten ? 'client_refused' : undefined;
}

/** Why a refresh failed: of what the connection is at fault for, it is marked. */
async function failed(integrations: Integrations, stored: Stored, leaseId: string, error: unknown): Promise<never> {
  const { target, row } = stored;
  const reason = reauthorizationOf(integrations, stored, error);
  if (reason !== undefined) {
    const { tokenVersion } = row.connection;
    // Unless another process has newer tokens: then the refused ones were old.
    if (await markReauthorization(integrations, target, reason, tokenVersion)) throw needsReauthorization();
    throw tokensMoved(stored.provider);
  }
  // A Problem is ours (a setting of the deployment, a provider that is not allowed): whoever is next gets it at once too.
  if (error instanceof ProviderError || error instanceof OAuthError || error instanceof Problem) {
    await markHealth(integrations, target, healthOf(error, 'check'), { leaseId });
  }
  throw error;
}

/** The lease is ours: asks the provider, and saves what it gives before anybody uses it. */
async function exchange(integrations: Integrations, stored: Stored, leaseId: string): Promise<void> {
  const { target } = stored;
  const refreshToken = oauth2Credential(stored)?.refreshToken ?? null;
  if (refreshToken === null) return failed(integrations, stored, leaseId, new OAuthError('invalid_grant', 'none'));
  let tokens: Tokens;
  try {
    const { server, client, resource } = authorizationOf(integrations, stored);
    const context = await contextOf(integrations, stored, {});
    tokens = await refreshTokens(context, server, { client, refreshToken, resource });
  } catch (error) {
    return failed(integrations, stored, leaseId, error);
  }
  const args = rotated(integrations, stored, tokens);
  await saving(() => call(integrations.db.of(target.organizationId), 'integration_tokens_rotate', args, savedSchema));
}

/** Exchanges these tokens, or waits until somebody has. */
async function refreshOnce(integrations: Integrations, stored: Stored): Promise<void> {
  const { organizationId, integrationId, revision } = stored.target;
  const { tokenVersion } = stored.row.connection;
  const leaseId = randomUUID();
  const end = Date.now() + WAIT_MS;
  const args = { organizationId, integrationId, connectionRevision: revision, tokenVersion, leaseId, seconds: LEASE_S };
  for (;;) {
    const lease = await call(integrations.db.of(organizationId), 'integration_refresh_lease', args, leaseSchema);
    if (lease.leased) return exchange(integrations, stored, leaseId);
    if (lease.tokenVersion !== tokenVersion) return;
    if (Date.now() > end) {
      const message = 'Another process refreshes the tokens for too long.';
      throw new ProviderError(stored.provider.key, 'unavailable', message, { isOurs: true });
    }
    await pause(POLL_MS + Math.random() * POLL_MS);
  }
}

/** One refresh a connection and version of its tokens in this process, whoever asks; it goes on though they leave. */
function shared(integrations: Integrations, stored: Stored): Promise<void> {
  const { organizationId, integrationId, revision } = stored.target;
  const key = [organizationId, integrationId, revision, stored.row.connection.tokenVersion].join('|');
  const running = integrations.refreshes.get(key);
  if (running) return running;
  const refresh = refreshOnce(integrations, stored).finally(() => integrations.refreshes.delete(key));
  // Whoever waited may have left.
  refresh.catch(() => undefined);
  integrations.refreshes.set(key, refresh);
  return refresh;
}

async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const abort = () => aborted.reject(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await Promise.race([promise, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

/**
 * The connection with newer tokens than these. Status, revision and organization are read again with them.
 * @throws Problem 403, 404, 409; ProviderError; OAuthError; the signal's reason
 */
export async function refreshed(
  integrations: Integrations,
  stored: Stored,
  signal: AbortSignal | undefined,
): Promise<Stored> {
  await unlessAborted(shared(integrations, stored), signal);
  return readStored(integrations, stored.target);
}

/**
 * Exchanges the tokens of a connection that nobody uses, before its refresh token dies of that.
 * @throws Problem 403, 404, 409; ProviderError and OAuthError, which are recorded; the signal's reason
 */
export async function refreshConnection(
  integrations: Integrations,
  target: ConnectionTarget,
  signal: AbortSignal | undefined,
): Promise<void> {
  await refreshed(integrations, await readStored(integrations, target), signal);
}

/** The connection, with tokens that are good for another minute. `check` sees it before they are exchanged too. @throws as `refreshed` */
export async function readFresh(
  integrations: Integrations,
  target: ConnectionTarget,
  signal: AbortSignal | undefined,
  check: (stored: Stored) => void = () => undefined,
): Promise<Stored> {
  const stored = await readStored(integrations, target);
  check(stored);
  if (!isOver(stored)) return stored;
  const fresh = await refreshed(integrations, stored, signal);
  check(fresh);
  return fresh;
}
