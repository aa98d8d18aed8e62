import { z } from 'zod';
import { maskedEmail } from '../mask.ts';
import type { OAuthServer } from '../oauth/index.ts';
import { jsonOf, ProviderError, providerCode, type ReadRefusal, type Site } from '../outgoing/index.ts';
import { type Account, accountBucket, type OAuth2, type ProviderContext } from '../provider.ts';

// What the connections of one Google Cloud project have in common. Whoever revokes a token of one ends all of them.

const ACCOUNTS = 'https://accounts.google.com';
const OAUTH = 'https://oauth2.googleapis.com';
const USERINFO = 'https://openidconnect.googleapis.com';
const IDENTITY_SCOPES = ['openid', 'email'];

const refusal = z.object({
  error: z.object({
    status: z.string().optional(),
    errors: z.array(z.object({ reason: z.string().optional() })).optional(),
    details: z.array(z.object({ reason: z.string().optional() })).optional(),
  }),
});

const RATE_REASONS = new Set([
  'rateLimitExceeded',
  'userRateLimitExceeded',
  'quotaExceeded',
  'dailyLimitExceeded',
  'RATE_LIMIT_EXCEEDED',
  'RESOURCE_EXHAUSTED',
]);

/** Google tells some limits, those of the project among them, as 403. */
export const readRefusal: ReadRefusal = ({ status, json }) => {
  const { error } = refusal.safeParse(json).data ?? {};
  const codes = [
    ...(error?.errors ?? []).map(({ reason }) => reason),
    ...(error?.details ?? []).map(({ reason }) => reason),
    error?.status,
  ].flatMap((code) => code ?? []);
  const limit = codes.find((code) => RATE_REASONS.has(code));
  if (limit !== undefined && (status === 403 || status === 429)) return { reason: 'rate_limited', code: limit };
  return { code: codes[0] };
};

export function googleSite(
  provider: string,
  origins: readonly string[],
): Site & Readonly<{ origins: readonly string[] }> {
  return { provider, origins: [...origins, USERINFO], readRefusal };
}

function oauthServer(provider: string): OAuthServer {
  return {
    metadata: {
      issuer: ACCOUNTS,
      authorization_endpoint: `${ACCOUNTS}/o/oauth2/v2/auth`,
      token_endpoint: `${OAUTH}/token`,
      code_challenge_methods_supported: ['S256'],
      id_token_signing_alg_values_supported: ['RS256'],
    },
    site: { provider, origins: [OAUTH] },
  };
}

/** Ends everything that the person granted to this project, whichever of its tokens it is. */
async function revoke(provider: string, context: ProviderContext, token: string): Promise<boolean> {
  const response = await context.client.send(
    { provider, origins: [OAUTH] },
    {
      method: 'POST',
      effect: 'write',
      url: `${OAUTH}/revoke`,
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({ token }).toString(),
      buckets: [accountBucket(provider, context, 10, 1)],
      signal: context.signal,
      // It does not know the token: revoked before, or over.
      accepts: (status) => status === 400,
    },
  );
  if (response.status !== 400) return true;
  const code = z.object({ error: z.string() }).safeParse(jsonOf(response)).data?.error;
  if (code === 'invalid_token') return false;
  const facts = { status: 400, code: providerCode(code, [token]) };
  throw new ProviderError(provider, 'failed', 'The provider refuses to revoke the authorization.', facts);
}

export function googleOAuth(provider: string, scopes: OAuth2['scopes']): OAuth2 {
  return {
    authentication: 'post',
    server: oauthServer(provider),
    openId: true,
    // Without `consent` a second authorization brings no refresh token. `include_granted_scopes` would pull in siblings' scopes.
    parameters: { access_type: 'offline', prompt: 'consent' },
    grant: 'google',
    needsRefreshToken: true,
    scopes: (services, accessMode) => [...IDENTITY_SCOPES, ...scopes(services, accessMode)],
    grantedScopes: ({ scopes: granted }) => granted,
    revoke: (context, _client, token) => revoke(provider, context, token),
  };
}

const userinfo = z.object({ sub: z.string().min(1), email: z.string().optional() });

/** Who the token belongs to. It fails as soon as the grant is revoked. */
export async function readAccount(
  site: Site,
  context: ProviderContext,
  credential: Readonly<{ accessToken: string; scopes: readonly string[] }>,
): Promise<Account> {
  const { sub, email } = await context.client.json(
    site,
    {
      effect: 'read',
      url: `${USERINFO}/v1/userinfo`,
      headers: { authorization: `Bearer ${credential.accessToken}` },
      buckets: [accountBucket(site.provider, context, 10, 1)],
      signal: context.signal,
    },
    userinfo,
  );
  return { subject: sub, label: maskedEmail(email ?? sub), grantedScopes: credential.scopes };
}
