import {
  type AuthorizationServer,
  allowInsecureRequests,
  customFetch,
  dynamicClientRegistrationRequest,
  processDynamicClientRegistrationResponse,
} from 'oauth4webapi';
import { z } from 'zod';
import type { IntegrationConfig } from '../../integration_settings.ts';
import { oauthFailure } from '../oauth/errors.ts';
import { oauthFetch } from '../oauth/fetch.ts';
import { type OAuthClient, OAuthError, type OAuthServer } from '../oauth/index.ts';
import { ProviderError, storableJson } from '../outgoing/index.ts';
import type { ConnectedScopes, DiscoveredAuthorization, DiscoveredOAuth2, ProviderContext } from '../provider.ts';
import { buckets, KEY, settings, site } from './site.ts';

/** What a server asked for with a 401 or a 403. */
export type Challenge = Readonly<{
  metadataUrl: string | undefined;
  scopes: readonly string[];
  error: string | undefined;
}>;

const MAX_BYTES = 128 * 1024;

const resourceMetadata = z.object({
  resource: z.string(),
  authorization_servers: z.array(z.string()).min(1),
  scopes_supported: z.array(z.string()).optional(),
});

const serverMetadata = z.object({
  issuer: z.string(),
  authorization_endpoint: z.string(),
  token_endpoint: z.string(),
  registration_endpoint: z.string().exactOptional(),
  revocation_endpoint: z.string().exactOptional(),
  code_challenge_methods_supported: z.array(z.string()).exactOptional(),
  authorization_response_iss_parameter_supported: z.boolean().exactOptional(),
  client_id_metadata_document_supported: z.boolean().exactOptional(),
  token_endpoint_auth_methods_supported: z.array(z.string()).exactOptional(),
});
type ServerMetadata = z.output<typeof serverMetadata>;

const failed = (message: string) => new ProviderError(KEY, 'failed', message);

/** The metadata, or undefined where there is none at this address. @throws ProviderError */
async function read<S extends z.ZodType>(context: ProviderContext, url: string, schema: S) {
  const request = {
    effect: 'read',
    url,
    buckets: buckets(context, url),
    signal: context.signal,
    maxBytes: MAX_BYTES,
  } as const;
  const accepts = (status: number) => status >= 400 && status < 500 && status !== 429;
  const response = await context.client.send(site, { ...request, accepts });
  if (response.status >= 400) return undefined;
  try {
    // Whatever its media type: files behind `/.well-known/` are often served without the right one.
    return schema.parse(storableJson(response.body));
  } catch {
    throw failed('The server describes its authorization in a form that is not the documented one.');
  }
}

async function first<T>(urls: readonly string[], ask: (url: string) => Promise<T | undefined>): Promise<T | undefined> {
  for (const url of urls) {
    const found = await ask(url);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** `/path`, or nothing for the root. */
const pathOf = (url: URL) => url.pathname.replace(/(?<!\/)\/+$/, '');

async function challengeOf(headers: Readonly<Record<string, string>>): Promise<Challenge> {
  const { extractWWWAuthenticateParams } = await import('@modelcontextprotocol/sdk/client/auth.js');
  const given = headers['www-authenticate'];
  const response = new Response(null, given === undefined ? {} : { headers: { 'www-authenticate': given } });
  const { resourceMetadataUrl, scope, error } = extractWWWAuthenticateParams(response);
  const scopes = (scope ?? '').split(' ').filter((one) => one !== '');
  return { metadataUrl: resourceMetadataUrl?.href, scopes, error };
}

/** Begins a session, without a credential or with one. @returns undefined where the server asks for no other */
async function challenge(
  context: ProviderContext,
  serverUrl: string,
  accessToken?: string,
): Promise<Challenge | undefined> {
  const params = {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'business-runner', version: '0.1' },
  };
  const response = await context.client.send(site, {
    method: 'POST',
    effect: 'read',
    url: serverUrl,
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...(accessToken === undefined ? {} : { authorization: `Bearer ${accessToken}` }),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params }),
    buckets: buckets(context, serverUrl),
    signal: context.signal,
    // Only whether it asks for an authorization matters here; a stream of events could stay open.
    isComplete: () => () => true,
    accepts: (status) => status === 401 || (status === 403 && accessToken !== undefined),
  });
  return response.status >= 400 ? challengeOf(response.headers) : undefined;
}

/** The resource has to be the server itself, or a part of its address: another's tokens are not for us to ask for. */
function covers(resource: string, serverUrl: string): boolean {
  const [wide, narrow] = [URL.parse(resource), URL.parse(serverUrl)];
  if (!wide || !narrow || wide.origin !== narrow.origin || wide.hash !== '') return false;
  return `${pathOf(narrow)}/`.startsWith(`${pathOf(wide)}/`);
}

async function authorizationServer(context: ProviderContext, issuer: string): Promise<ServerMetadata> {
  const url = context.client.secureUrl(KEY, issuer);
  const path = pathOf(url);
  const urls = [
    `${url.origin}/.well-known/oauth-authorization-server${path}`,
    `${url.origin}/.well-known/openid-configuration${path}`,
    ...(path === '' ? [] : [`${url.origin}${path}/.well-known/openid-configuration`]),
  ];
  const metadata = await first(urls, (one) => read(context, one, serverMetadata));
  if (metadata === undefined) throw failed('The authorization server of this server has no metadata.');
  if (metadata.issuer !== issuer) throw failed('The authorization server calls itself by another name.');
  // Without the list there is no saying that a code cannot be used by who intercepts it.
  if (!metadata.code_challenge_methods_supported?.includes('S256')) {
    throw failed('The authorization server does not say that it supports PKCE.');
  }
  // The browser is sent there without our client.
  context.client.secureUrl(KEY, metadata.authorization_endpoint);
  return metadata;
}

/**
 * How a server is authorized (RFC 9728, RFC 8414); null where it asks for nothing.
 * @throws ProviderError
 */
export async function discoverAuthorization(
  context: ProviderContext,
  serverUrl: string,
): Promise<DiscoveredAuthorization | null> {
  const asked = await challenge(context, serverUrl);
  if (asked === undefined) return null;
  const url = new URL(serverUrl);
  const path = pathOf(url);
  const wellKnown = `${url.origin}/.well-known/oauth-protected-resource`;
  const urls = asked.metadataUrl === undefined ? [...new Set([`${wellKnown}${path}`, wellKnown])] : [asked.metadataUrl];
  const resource = await first(urls, (one) => read(context, one, resourceMetadata));
  if (resource === undefined) throw failed('The server asks for an authorization, and does not say of whom.');
  if (!covers(resource.resource, serverUrl)) throw failed('The server describes another one than itself.');
  const [issuer = ''] = resource.authorization_servers;
  const metadata: AuthorizationServer = await authorizationServer(context, issuer);
  const scopes = asked.scopes.length > 0 ? asked.scopes : (resource.scopes_supported ?? []);
  return { server: { metadata, site }, resource: resource.resource, scopes };
}

/**
 * The client that an authorization server knows us by: the one of the settings, else the metadata document where it reads such,
 * else one that it registers now, which is stored by its issuer and used again.
 * @throws OAuthError or ProviderError
 */
export async function clientFor(
  context: ProviderContext,
  { server }: DiscoveredAuthorization,
  options: Readonly<{
    configured: IntegrationConfig['mcpClient'];
    /** Of this issuer, from an earlier registration. */
    registered: OAuthClient | undefined;
    redirectUri: string;
  }>,
): Promise<Readonly<{ client: OAuthClient; isNew: boolean }>> {
  const { configured, registered, redirectUri } = options;
  const known = (id: string) => ({ client: { id, secret: undefined, authentication: 'post' }, isNew: false }) as const;
  if (configured?.kind === 'registered') return known(configured.id);
  if (configured && server.metadata['client_id_metadata_document_supported'] === true) return known(configured.url);
  if (registered) return { client: registered, isNew: false };
  if (server.metadata.registration_endpoint === undefined) {
    throw new OAuthError(
      'client_refused',
      'The authorization server knows no client of this deployment: set MCP_CLIENT_ID.',
    );
  }
  return { client: await register(context, server, redirectUri), isNew: true };
}

async function register(context: ProviderContext, server: OAuthServer, redirectUri: string): Promise<OAuthClient> {
  const wanted = {
    client_name: 'Business Runner',
    redirect_uris: [redirectUri],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
  };
  try {
    const response = await dynamicClientRegistrationRequest(server.metadata, wanted, {
      [customFetch]: oauthFetch(context.client, site, context.signal),
      [allowInsecureRequests]: true,
    });
    const given = await processDynamicClientRegistrationResponse(response);
    const method = given['token_endpoint_auth_method'];
    return {
      id: given.client_id,
      secret: typeof given['client_secret'] === 'string' && method !== 'none' ? given['client_secret'] : undefined,
      authentication: method === 'client_secret_post' ? 'post' : 'basic',
    };
  } catch (error) {
    throw oauthFailure(error);
  }
}

/** The scopes of a step-up: those that are granted, and those that a tool asked for. At most 50, so that it ends. */
export function widenedScopes(granted: readonly string[], asked: readonly string[]): readonly string[] {
  return [...new Set([...granted, ...asked])].slice(0, 50);
}

/** What is granted at this server, and what it says that it needs: a new authorization takes the place of the old one. */
async function scopesToAsk(
  context: ProviderContext,
  serverUrl: string,
  found: DiscoveredAuthorization,
  { issuer, accessToken, scopes, missing }: ConnectedScopes,
): Promise<readonly string[]> {
  // Scopes of another server are none of this one.
  if (issuer !== found.server.metadata.issuer) return found.scopes;
  const asked = accessToken === null ? undefined : await challenge(context, serverUrl, accessToken);
  const needed = asked?.error === 'insufficient_scope' ? asked.scopes : [];
  return widenedScopes(scopes, [...missing, ...needed, ...found.scopes]);
}

export const oauth2: DiscoveredOAuth2 = {
  site,
  async discover(context, { settings: given, connected }) {
    const { serverUrl } = settings.parse(given);
    const found = await discoverAuthorization(context, serverUrl);
    if (found === null || connected === undefined) return found;
    return { ...found, scopes: await scopesToAsk(context, serverUrl, found, connected) };
  },
  client: clientFor,
};
