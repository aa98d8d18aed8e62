import {
  type AuthorizationServer,
  allowInsecureRequests,
  authorizationCodeGrantRequest,
  type Client,
  type ClientAuth,
  ClientSecretBasic,
  ClientSecretPost,
  calculatePKCECodeChallenge,
  customFetch,
  generateRandomCodeVerifier,
  generateRandomNonce,
  generateRandomState,
  getValidatedIdTokenClaims,
  None,
  processAuthorizationCodeResponse,
  processRefreshTokenResponse,
  processRevocationResponse,
  refreshTokenGrantRequest,
  revocationRequest,
  type TokenEndpointResponse,
  validateAuthResponse,
} from 'oauth4webapi';
import { repeating } from '../../secret_values.ts';
import type { Site } from '../outgoing/index.ts';
import { badResponse, type OAuthCodes, OAuthError, oauthFailure } from './errors.ts';
import { type OAuthContext, oauthFetch } from './fetch.ts';

// OAuth 2 with PKCE, as functions without a memory: what a flow needs later is handed out, and handed in again.

/** How this deployment is known to an authorization server. */
export type OAuthClient = Readonly<{
  id: string;
  /** Undefined: a public client, which PKCE alone protects. */
  secret: string | undefined;
  authentication: 'basic' | 'post';
}>;

/** An authorization server, and where its requests may go. */
export type OAuthServer = Readonly<{
  metadata: AuthorizationServer;
  site: Site;
  /** Its codes that are none of the standard's. */
  codes?: OAuthCodes;
}>;

export type AuthorizationRequest = Readonly<{
  client: OAuthClient;
  redirectUri: string;
  scopes: readonly string[];
  /** Asks for an ID token, which is bound to this flow by a nonce. */
  openId: boolean;
  /** The server that the tokens are for (RFC 8707), byte by byte. */
  resource?: string | undefined;
  /** What this server takes beside the standard's. */
  parameters?: Readonly<Record<string, string>>;
}>;

/** What the callback needs. `state` is looked up by its hash; verifier and nonce are secrets. */
export type PendingAuthorization = Readonly<{ state: string; verifier: string; nonce: string | null; url: URL }>;

export type Tokens = Readonly<{
  accessToken: string;
  /** Null where it does not end, or nobody said when. */
  expiresAt: Date | null;
  refreshToken: string | null;
  /** Null: the server did not tell, so that those are granted that were asked for (RFC 6749, 5.1). */
  scopes: readonly string[] | null;
  /** Of the ID token, where there is one. */
  identity: Readonly<{ subject: string; email: string | null }> | null;
}>;

const CALLBACK = ['code', 'state', 'iss', 'error'] as const;

function authentication({ secret, authentication: method }: OAuthClient): ClientAuth {
  if (secret === undefined) return None();
  return method === 'basic' ? ClientSecretBasic(secret) : ClientSecretPost(secret);
}

const clientOf = ({ id }: OAuthClient): Client => ({ client_id: id });

/** Our client checks the scheme, and lets http pass in tests alone. */
function through(context: OAuthContext, { site }: OAuthServer) {
  return { [customFetch]: oauthFetch(context.client, site, context.signal), [allowInsecureRequests]: true } as const;
}

/** Some separate scopes by commas. */
const scopesOf = (text: string | undefined) =>
  text === undefined ? null : text.split(/[\s,]+/).filter((scope) => scope !== '');

/** Later years have five digits, which neither ISO 8601 nor our columns take. */
const LAST_MS = Date.UTC(9999, 11, 31);

/** When tokens end. @throws OAuthError for a number that is no time */
function endOf(expiresIn: number | undefined, now: number): Date | null {
  if (expiresIn === undefined) return null;
  const end = now + expiresIn * 1_000;
  if (end <= LAST_MS) return new Date(end);
  throw badResponse('bad_expires_in');
}

/** No scope may hold one (RFC 6749, 3.3), and Postgres stores no NUL. */
const CONTROL = /\p{Cc}/u;

/** `sent`: the secrets of the request. Scopes are shown, and so none may repeat one of them or a token. */
function tokensOf(response: TokenEndpointResponse, now: number, sent: readonly (string | null | undefined)[]): Tokens {
  if (response.scope !== undefined && CONTROL.test(response.scope)) throw badResponse('bad_scope');
  const claims = getValidatedIdTokenClaims(response);
  const email = claims?.['email'];
  const { access_token: accessToken, refresh_token: refreshToken, id_token: idToken } = response;
  const isRepeat = repeating([...sent, accessToken, refreshToken, idToken].flatMap((secret) => secret ?? []));
  return {
    accessToken,
    expiresAt: endOf(response.expires_in, now),
    refreshToken: refreshToken ?? null,
    scopes: scopesOf(response.scope)?.filter((scope) => !isRepeat(scope)) ?? null,
    identity: claims === undefined ? null : { subject: claims.sub, email: typeof email === 'string' ? email : null },
  };
}

/** `sent`: the secrets of the request, which no error repeats. */
async function reading<T>(
  { codes }: OAuthServer,
  sent: readonly (string | null | undefined)[],
  run: () => Promise<T>,
): Promise<T> {
  try {
    return await run();
  } catch (error) {
    throw oauthFailure(
      error,
      codes,
      sent.flatMap((secret) => secret ?? []),
    );
  }
}

/** Where the browser goes, and what has to be kept until it comes back. */
export async function beginAuthorization(
  context: Pick<OAuthContext, 'client'>,
  server: OAuthServer,
  request: AuthorizationRequest,
): Promise<PendingAuthorization> {
  const endpoint = server.metadata.authorization_endpoint;
  if (endpoint === undefined) throw new TypeError('the authorization server has no authorization endpoint');
  const [state, verifier] = [generateRandomState(), generateRandomCodeVerifier()];
  const nonce = request.openId ? generateRandomNonce() : null;
  const url = new URL(endpoint);
  const parameters: Readonly<Record<string, string | undefined>> = {
    ...request.parameters,
    response_type: 'code',
    client_id: request.client.id,
    redirect_uri: request.redirectUri,
    scope: request.scopes.length === 0 ? undefined : request.scopes.join(' '),
    state,
    code_challenge: await calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
    nonce: nonce ?? undefined,
    resource: request.resource,
  };
  for (const [name, value] of Object.entries(parameters)) if (value !== undefined) url.searchParams.set(name, value);
  return { state, verifier, nonce, url: context.client.browserUrl(url) };
}

/**
 * The tokens for what a callback brought. Unknown parameters do not count: providers add their own.
 * @throws OAuthError or ProviderError
 */
export async function finishAuthorization(
  context: OAuthContext,
  server: OAuthServer,
  options: Readonly<{
    client: OAuthClient;
    callback: URLSearchParams;
    pending: Pick<PendingAuthorization, 'state' | 'verifier' | 'nonce'>;
    redirectUri: string;
    resource?: string | undefined;
    now?: () => number;
  }>,
): Promise<Tokens> {
  const { client, callback, pending, redirectUri, resource, now = Date.now } = options;
  const secrets = [callback.get('code'), pending.state, pending.verifier, pending.nonce, client.secret];
  return reading(server, secrets, async () => {
    const known = new URLSearchParams();
    for (const name of CALLBACK) for (const value of callback.getAll(name)) known.append(name, value);
    const parameters = validateAuthResponse(server.metadata, clientOf(client), known, pending.state);
    const response = await authorizationCodeGrantRequest(
      server.metadata,
      clientOf(client),
      authentication(client),
      parameters,
      redirectUri,
      pending.verifier,
      { ...through(context, server), ...(resource === undefined ? {} : { additionalParameters: { resource } }) },
    );
    const given = pending.nonce === null ? {} : { expectedNonce: pending.nonce, requireIdToken: true };
    const granted = await processAuthorizationCodeResponse(server.metadata, clientOf(client), response, given);
    return tokensOf(granted, now(), secrets);
  });
}

/**
 * New tokens for a refresh token. Sent once: of a rotating one a second request could revoke the whole grant.
 * `refreshToken` null in what comes back: the one that was used stays.
 * @throws OAuthError or ProviderError
 */
export async function refreshTokens(
  context: OAuthContext,
  server: OAuthServer,
  options: Readonly<{
    client: OAuthClient;
    refreshToken: string;
    resource?: string | undefined;
    now?: () => number;
  }>,
): Promise<Tokens> {
  const { client, refreshToken, resource, now = Date.now } = options;
  const secrets = [refreshToken, client.secret];
  return reading(server, secrets, async () => {
    const response = await refreshTokenGrantRequest(
      server.metadata,
      clientOf(client),
      authentication(client),
      refreshToken,
      { ...through(context, server), ...(resource === undefined ? {} : { additionalParameters: { resource } }) },
    );
    return tokensOf(await processRefreshTokenResponse(server.metadata, clientOf(client), response), now(), secrets);
  });
}

/**
 * Revokes a token (RFC 7009). One that the server no longer knows is revoked.
 * @throws OAuthError or ProviderError
 */
export async function revokeToken(
  context: OAuthContext,
  server: OAuthServer,
  client: OAuthClient,
  token: string,
): Promise<void> {
  await reading(server, [token, client.secret], async () => {
    const response = await revocationRequest(
      server.metadata,
      clientOf(client),
      authentication(client),
      token,
      through(context, server),
    );
    await processRevocationResponse(response);
  }).catch((error: unknown) => {
    if (!(error instanceof OAuthError && error.code === 'invalid_token')) throw error;
  });
}
