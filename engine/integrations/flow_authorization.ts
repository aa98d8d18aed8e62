import type { ConnectedScopes, DiscoveredAuthorization, DiscoveredOAuth2 } from '../providers/index.ts';
import type { OAuthClient } from '../providers/oauth/index.ts';
import { repeating } from '../secret_values.ts';
import { keptAuthorization, openAuthorization } from './authorization.ts';
import { storedTexts } from './credential_texts.ts';
import { type Integrations, organizationClient } from './integrations.ts';
import { asksForReauthorization } from './problems.ts';
import { type ReadIntegration, targetOf } from './record.ts';
import { oauth2Credential, providerContext, readStored, type Stored } from './stored.ts';

type Options = Readonly<{
  /** The connection that there is. */
  stored: Stored | undefined;
  signal?: AbortSignal | undefined;
}>;

/**
 * The connection that a new authorization takes the place of, where there is one whose secrets open.
 * @throws Problem 403, 404, 409
 */
export async function readConnected(
  integrations: Integrations,
  integration: ReadIntegration,
): Promise<Stored | undefined> {
  if (integration.record.readiness === 'not_connected') return undefined;
  return readStored(integrations, targetOf(integration), { evenRefused: true }).catch((error: unknown) => {
    if (asksForReauthorization(error)) return undefined;
    throw error;
  });
}

async function contextFor(
  integrations: Integrations,
  { organizationId, provider, record }: ReadIntegration,
  { signal }: Pick<Options, 'signal'>,
) {
  const client = await organizationClient(integrations, organizationId, provider.key);
  return providerContext(integrations, provider, client, { account: record.id, signal });
}

/** The server that a connection was authorized at, and who we are to it; undefined: it was connected in another way. */
function authorizationOf(oauth2: DiscoveredOAuth2, stored: Stored | undefined) {
  const kept = stored?.fields.get('authorization');
  return kept === undefined ? undefined : openAuthorization(oauth2, kept);
}

/** What a connection by OAuth 2 has of its server. */
function connectedScopes(oauth2: DiscoveredOAuth2, stored: Stored | undefined): ConnectedScopes | undefined {
  const credential = stored && oauth2Credential(stored);
  const authorization = authorizationOf(oauth2, stored);
  if (!credential || !authorization) return undefined;
  const isRefused = stored.row.integration.readiness === 'needs_reauthorization';
  return {
    issuer: authorization.server.metadata.issuer,
    accessToken: isRefused ? null : credential.accessToken,
    scopes: credential.scopes,
    missing: stored.row.connection.missingScopes,
  };
}

/** How a server wants to be authorized now; null: it asks for nothing. @throws ProviderError */
export async function discoverAuthorization(
  integrations: Integrations,
  integration: ReadIntegration,
  oauth2: DiscoveredOAuth2,
  options: Options,
): Promise<DiscoveredAuthorization | null> {
  const { stored } = options;
  const context = await contextFor(integrations, integration, options);
  const found = await oauth2.discover(context, {
    settings: integration.record.settings,
    connected: connectedScopes(oauth2, stored),
  });
  if (found === null || stored === undefined) return found;
  // They stand in the address that the browser is sent to, and are shown later.
  const isRepeat = repeating(storedTexts(stored, undefined));
  return { ...found, scopes: found.scopes.filter((scope) => !isRepeat(scope)) };
}

/** The client of an earlier authorization, where it was one at the same server, which sends browsers back to the same address. */
function registeredClient(
  oauth2: DiscoveredOAuth2,
  stored: Stored | undefined,
  issuer: string,
  redirectUri: string,
): OAuthClient | undefined {
  const known = authorizationOf(oauth2, stored);
  return known?.server.metadata.issuer === issuer && known.redirectUri === redirectUri ? known.client : undefined;
}

/**
 * The server that was found, with the client that it knows us by; kept as text until the flow ends, and with the connection after.
 * `isNewClient`: another one is registered.
 * @throws ProviderError, OAuthError
 */
export async function registeredAuthorization(
  integrations: Integrations,
  integration: ReadIntegration,
  oauth2: DiscoveredOAuth2,
  found: DiscoveredAuthorization,
  options: Options & Readonly<{ redirectUri: string; isNewClient: boolean }>,
): Promise<string> {
  const { provider } = integration;
  const { stored, redirectUri, isNewClient } = options;
  const context = await contextFor(integrations, integration, options);
  const { client } = await oauth2.client(context, found, {
    configured: integrations.settings.mcpClient,
    registered: isNewClient ? undefined : registeredClient(oauth2, stored, found.server.metadata.issuer, redirectUri),
    redirectUri,
  });
  const kept = keptAuthorization(provider, { server: found.server, client, resource: found.resource }, redirectUri);
  if (kept === undefined) throw new TypeError('the server was not found at the address of settings');
  return kept;
}
