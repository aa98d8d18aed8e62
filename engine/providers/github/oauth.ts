import type { OAuthClient, OAuthServer } from '../oauth/index.ts';
import { accountBucket, type OAuth2, type ProviderContext } from '../provider.ts';
import { API, apiHeaders, site, WEB } from './site.ts';

/** Its name as it stands in GitHub's own metadata (RFC 8414). */
const ISSUER = `${WEB}/login/oauth`;

const server: OAuthServer = {
  metadata: {
    issuer: ISSUER,
    authorization_endpoint: `${ISSUER}/authorize`,
    token_endpoint: `${ISSUER}/access_token`,
    code_challenge_methods_supported: ['S256'],
  },
  site: { provider: 'github', origins: [WEB] },
  codes: new Map([
    ['bad_verification_code', 'invalid_grant'],
    ['bad_refresh_token', 'invalid_grant'],
    ['incorrect_client_credentials', 'client_refused'],
  ]),
};

/** Takes the App's authorization of this person back, with all of its tokens. */
async function revoke(context: ProviderContext, { id, secret = '' }: OAuthClient, token: string): Promise<boolean> {
  const { status } = await context.client.send(site, {
    method: 'DELETE',
    effect: 'write',
    url: `${API}/applications/${encodeURIComponent(id)}/grant`,
    headers: {
      ...apiHeaders(`Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`),
      'content-type': 'application/json',
    },
    body: JSON.stringify({ access_token: token }),
    secrets: [token],
    buckets: [accountBucket('github', context, 10, 1)],
    signal: context.signal,
    // It does not know the token: revoked before, or over.
    accepts: (code) => code === 404 || code === 422,
  });
  return status !== 404 && status !== 422;
}

export const oauth2: OAuth2 = {
  authentication: 'post',
  server,
  openId: false,
  parameters: {},
  grant: 'github',
  // Where the App lets its tokens never end, there is none.
  needsRefreshToken: false,
  // A GitHub App has permissions, of its installations, in place of scopes.
  scopes: () => [],
  grantedScopes: () => [],
  revoke,
};
