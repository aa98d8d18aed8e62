import { createHash } from 'node:crypto';
import { generateKeyPair, SignJWT } from 'jose';
import type * as Tap from 'tap';
import t from 'tap';
import { github } from '../../../engine/providers/github/index.ts';
import { googleAnalytics } from '../../../engine/providers/google-analytics/index.ts';
import { googleWorkspace } from '../../../engine/providers/google-workspace/index.ts';
import type { OAuth2, Provider } from '../../../engine/providers/index.ts';
import {
  beginAuthorization,
  finishAuthorization,
  OAuthError,
  type OAuthReason,
  type PendingAuthorization,
  refreshTokens,
} from '../../../engine/providers/oauth/index.ts';
import { fails, json, openClient, openServer, type Reply } from './support.ts';

const GOOGLE = { 'https://oauth2.googleapis.com': '', 'https://accounts.google.com': '' };
const redirectUri = 'https://runner.example/oauth/google-workspace/callback';
const client = { id: 'client-1', secret: 's3cret', authentication: 'post' } as const;
const PLANTED = 'planted-4711';

function oauthOf(provider: Provider): OAuth2 {
  if (provider.oauth2 === undefined || 'discover' in provider.oauth2)
    throw new Error(`${provider.key} has no known server`);
  return provider.oauth2;
}

async function refuses(test: Tap.Test, promise: Promise<unknown>, reason: OAuthReason, what: string) {
  const error = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof OAuthError)) throw new Error(`${what}: ${error}`, { cause: error });
  test.equal(error.reason, reason, what);
  test.notOk(error.cause);
  test.notMatch(JSON.stringify([error.message, error.code]), PLANTED);
  return error;
}

const { privateKey } = await generateKeyPair('RS256');
const idToken = (nonce: string | null, audience = 'client-1') =>
  new SignJWT({ email: 'anna@example.com', nonce })
    .setProtectedHeader({ alg: 'RS256' })
    .setIssuer('https://accounts.google.com')
    .setAudience(audience)
    .setSubject('10769150350006150715113082367')
    .setIssuedAt()
    .setExpirationTime('1h')
    .sign(privateKey);

/** Google's token endpoint, or what `reply` makes of it; and a flow that was begun. */
async function begun(
  test: Tap.Test,
  reply: (pending: () => PendingAuthorization) => Reply,
  provider = googleWorkspace,
) {
  let kept: PendingAuthorization | undefined;
  const server = await openServer(
    test,
    reply(() => {
      if (!kept) throw new Error('not begun');
      return kept;
    }),
  );
  const origins = Object.fromEntries(Object.keys(GOOGLE).map((origin) => [origin, server.origin]));
  const opened = openClient(test, origins);
  const oauth = oauthOf(provider);
  const pending = await beginAuthorization({ client: opened }, oauth.server, {
    client,
    redirectUri,
    scopes: oauth.scopes(['gmail'], 'read_only'),
    openId: oauth.openId,
    parameters: oauth.parameters,
  });
  kept = pending;
  const finish = (callback: Record<string, string>) =>
    finishAuthorization({ client: opened }, oauth.server, {
      client,
      callback: new URLSearchParams({ state: pending.state, ...callback }),
      pending,
      redirectUri,
      now: () => Date.parse('2026-11-29T12:00:00Z'),
    });
  return { server, opened, oauth, pending, finish };
}

t.test('an authorization of Google asks for what the services need, with PKCE, and offline', async (test) => {
  const { pending, server } = await begun(test, () => () => ({}));
  test.equal(pending.url.origin, server.origin, 'the browser goes to what stands in');
  test.equal(pending.url.pathname, '/o/oauth2/v2/auth');
  test.same(Object.fromEntries(pending.url.searchParams), {
    access_type: 'offline',
    prompt: 'consent',
    response_type: 'code',
    client_id: 'client-1',
    redirect_uri: redirectUri,
    scope: 'openid email https://www.googleapis.com/auth/gmail.readonly',
    state: pending.state,
    code_challenge: createHash('sha256').update(pending.verifier).digest('base64url'),
    code_challenge_method: 'S256',
    nonce: pending.nonce,
  });
});

t.test('scopes are the union of the services, and of analytics always the one', async (test) => {
  const scope = (name: string) => `https://www.googleapis.com/auth/${name}`;
  const { scopes } = oauthOf(googleWorkspace);
  test.same(scopes(['tasks', 'docs'], 'full'), ['openid', 'email', scope('documents'), scope('tasks')]);
  test.same(scopes([], 'full'), ['openid', 'email']);
  test.same(oauthOf(googleAnalytics).scopes([], 'full'), ['openid', 'email', scope('analytics.readonly')]);
});

t.test('a callback becomes tokens, whatever else is in it', async (test) => {
  const { finish, server, pending } = await begun(test, (kept) => async () => ({
    access_token: 'ya29.access',
    refresh_token: '1//refresh',
    expires_in: 3599,
    token_type: 'Bearer',
    scope: 'openid https://www.googleapis.com/auth/gmail.readonly',
    id_token: await idToken(kept().nonce),
  }));
  const tokens = await finish({
    code: '4/code',
    authuser: '0',
    prompt: 'consent',
    id_token: 'not ours to read here',
    iss: 'https://accounts.google.com',
  });
  test.same(tokens, {
    accessToken: 'ya29.access',
    expiresAt: new Date('2026-11-29T12:59:59Z'),
    refreshToken: '1//refresh',
    scopes: ['openid', 'https://www.googleapis.com/auth/gmail.readonly'],
    identity: { subject: '10769150350006150715113082367', email: 'anna@example.com' },
  });
  const sent = Object.fromEntries(new URLSearchParams(server.calls[0]?.body));
  test.match(sent, {
    grant_type: 'authorization_code',
    code: '4/code',
    redirect_uri: redirectUri,
    code_verifier: pending.verifier,
    client_id: 'client-1',
    client_secret: 's3cret',
  });
});

t.test('a callback with a no, another issuer or another state sends nothing', async (test) => {
  const { finish, server } = await begun(test, () => () => ({}));
  const denied = await refuses(test, finish({ error: 'access_denied', error_description: PLANTED }), 'denied', 'no');
  test.equal(denied.code, 'access_denied');
  await refuses(test, finish({ code: 'c', iss: 'https://evil.example' }), 'failed', 'another issuer');
  await refuses(test, finish({ code: 'c', state: 'another' }), 'failed', 'another state');
  await refuses(test, finish({ error: `constructor` }), 'failed', 'a code of nobody');
  test.equal(server.calls.length, 0);
});

t.test('an ID token has to be of this flow, of this client, and there', async (test) => {
  const answers: Record<string, (nonce: string | null) => Promise<object> | object> = {
    'another nonce': async () => ({ id_token: await idToken('another') }),
    'another client': async (nonce) => ({ id_token: await idToken(nonce, 'another') }),
    none: () => ({}),
  };
  for (const [what, answer] of Object.entries(answers)) {
    const { finish } = await begun(test, (kept) => async () => ({
      access_token: 'ya29.access',
      token_type: 'Bearer',
      ...(await answer(kept().nonce)),
    }));
    await refuses(test, finish({ code: 'c' }), 'failed', what);
  }
});

t.test('what the token endpoint says no with has a reason, and is sent once', async (test) => {
  for (const [status, body, reason] of [
    [400, { error: 'invalid_grant', error_description: PLANTED }, 'invalid_grant'],
    [401, { error: 'invalid_client' }, 'client_refused'],
    [400, { error: PLANTED.repeat(9) }, 'failed'],
    [400, PLANTED, 'failed'],
  ] as const) {
    const { finish, server } = await begun(test, () => (_call, res) => json(res, status, body));
    await refuses(test, finish({ code: 'c' }), reason, JSON.stringify(body));
    test.equal(server.calls.length, 1);
  }
  const limited = await begun(test, () => (_call, res) => json(res, 429, {}, { 'retry-after': '1' }));
  await fails(test, limited.finish({ code: 'c' }), 'rate_limited', '429');
  const down = await begun(test, () => (_call, res) => json(res, 503, {}));
  await fails(test, down.finish({ code: 'c' }), 'unavailable', '503');
  test.equal(down.server.calls.length, 1, 'a code is worth one request');
});

t.test('what a request holds is no code of its refusal', async (test) => {
  const refreshToken = 'ghr_4711-0815';
  let repeated = refreshToken;
  const { opened, oauth, server } = await begun(test, () => (_call, res) => json(res, 400, { error: repeated }));
  for (const error of [refreshToken, client.secret ?? '', 'of_nobody']) {
    repeated = error;
    const refused = refreshTokens({ client: opened }, oauth.server, { client, refreshToken });
    const { code } = await refuses(test, refused, 'failed', error);
    test.equal(code, error === 'of_nobody' ? error : undefined);
  }
  test.equal(server.calls.length, 3);
});

t.test('a refresh brings new tokens, and keeps the old refresh token where there is no new one', async (test) => {
  const { opened, oauth, server } = await begun(test, () => () => ({
    access_token: 'ya29.new',
    token_type: 'Bearer',
    expires_in: 60,
  }));
  const tokens = await refreshTokens({ client: opened }, oauth.server, {
    client,
    refreshToken: '1//old',
    now: () => 0,
  });
  test.same(tokens, {
    accessToken: 'ya29.new',
    expiresAt: new Date(60_000),
    refreshToken: null,
    scopes: null,
    identity: null,
  });
  test.match(Object.fromEntries(new URLSearchParams(server.calls[0]?.body)), {
    grant_type: 'refresh_token',
    refresh_token: '1//old',
  });
});

t.test('a token response that no column takes is the server’s bad one', async (test) => {
  for (const [given, code] of [
    [{ expires_in: 1e300 }, 'bad_expires_in'],
    [{ expires_in: 1e12 }, 'bad_expires_in'],
    [{ expires_in: 60, scope: 'openid\u0000' }, 'bad_scope'],
  ] as const) {
    const { opened, oauth } = await begun(test, () => () => ({ access_token: 'a', token_type: 'Bearer', ...given }));
    const refreshed = refreshTokens({ client: opened }, oauth.server, { client, refreshToken: '1//old' });
    await test.rejects(refreshed, { name: 'OAuthError', reason: 'failed', code });
  }
});

t.test('a grant of Google is revoked once, and again without harm', async (test) => {
  let status = 200;
  const { opened, oauth, server } = await begun(test, () => (_call, res) => {
    json(res, status, status === 200 ? {} : { error: 'invalid_token', error_description: PLANTED });
  });
  const context = { client: opened, account: '107' };
  test.equal(await oauth.revoke(context, client, '1//refresh'), true);
  test.match(server.calls, [{ method: 'POST', body: 'token=1%2F%2Frefresh' }]);
  test.equal(server.calls[0]?.url.pathname, '/revoke');
  status = 400;
  test.equal(await oauth.revoke(context, client, '1//refresh'), false, 'it does not know the token');
});

t.test('GitHub refuses with status 200, and lists what its installations were given', async (test) => {
  const oauth = oauthOf(github);
  const server = await openServer(test, ({ url }) => {
    if (url.pathname === '/login/oauth/access_token') return { error: 'bad_refresh_token', error_description: PLANTED };
    if (url.pathname === '/user') return { id: 7, login: 'anna', email: PLANTED };
    if (url.pathname === '/user/installations') return { total_count: 1, installations: [{ id: 3, account: {} }] };
    if (url.pathname === '/user/installations/3/repositories') {
      const one = {
        id: 11,
        name: 'Site',
        owner: { login: 'acme' },
        private: true,
        permissions: { push: true, admin: false },
      };
      return { total_count: 1, repositories: [one] };
    }
    return {};
  });
  const opened = openClient(test, {
    'https://github.com': server.origin,
    'https://api.github.com': server.origin,
  });
  const refreshed = refreshTokens({ client: opened }, oauth.server, { client, refreshToken: 'ghr_old' });
  await refuses(test, refreshed, 'invalid_grant', 'a used refresh token');
  const credential = { kind: 'oauth2', accessToken: 'ghu_x', refreshToken: null, expiresAt: null, scopes: [] };
  const context = { client: opened, account: 'i1' };
  test.same(await github.verify(context, { credential, settings: null }), { subject: '7', label: 'anna' });
  const found = await github.discover(context, { credential, settings: null });
  test.same(found, {
    items: [
      {
        id: '11',
        name: 'Site',
        owner: 'acme',
        private: true,
        archived: false,
        defaultBranch: null,
        permissions: ['push'],
      },
    ],
    truncated: false,
  });
  const settings = { kind: 'github', owner: 'Acme', repositories: ['site', 'other'] };
  test.match(github.checkSettings(settings, found), [{ path: ['repositories', 1] }]);
  test.notOk(github.settings?.schema.safeParse({ ...settings, repositories: ['..'] }).success);
  await oauth.revoke(context, client, 'ghu_x');
  test.match(server.calls.at(-1), {
    method: 'DELETE',
    body: '{"access_token":"ghu_x"}',
    headers: { authorization: `Basic ${Buffer.from('client-1:s3cret').toString('base64')}` },
  });
  test.equal(server.calls.at(-1)?.url.pathname, '/applications/client-1/grant');
});

t.test('a revocation that is refused repeats nothing of its token', async (test) => {
  const token = 'token_of_a-person';
  for (const [provider, status] of [
    [googleWorkspace, 400],
    [github, 403],
  ] as const) {
    let error = '';
    const server = await openServer(test, (_call, res) => json(res, status, { error }));
    const origins = ['https://oauth2.googleapis.com', 'https://api.github.com'].map((one) => [one, server.origin]);
    const context = { client: openClient(test, Object.fromEntries(origins)), account: 'i1' };
    for (const code of ['some_reason', token, `x.${Buffer.from(token).toString('base64url')}`]) {
      error = code;
      const expected = code === 'some_reason' ? code : undefined;
      await test.rejects(oauthOf(provider).revoke(context, client, token), { name: 'ProviderError', code: expected });
    }
  }
});

t.test('GitHub tells its limits as 403', async (test) => {
  const now = Date.parse('2026-11-29T12:00:00Z');
  const limits: [Record<string, string>, object, string][] = [
    [{ 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': String(now / 1_000 + 600) }, {}, 'rate_limited'],
    [{}, { message: 'You have exceeded a secondary rate limit.' }, 'rate_limited'],
    [{}, { message: 'Resource not accessible by integration' }, 'forbidden'],
  ];
  for (const [headers, body, reason] of limits) {
    const server = await openServer(test, (_call, res) => json(res, 403, body, headers));
    const opened = openClient(test, { 'https://api.github.com': server.origin }, { now: () => now });
    const credential = { kind: 'github_token', token: `ghp_${'a'.repeat(36)}` };
    const verified = github.verify({ client: opened, account: 'i1' }, { credential, settings: null });
    const error = await fails(test, verified, reason as never, JSON.stringify(body));
    if (headers['x-ratelimit-reset']) test.same(error.retryNotBefore, new Date(now + 600_000));
  }
});

t.test('properties of Google Analytics have their time zone and currency', async (test) => {
  const server = await openServer(test, ({ url }, res) => {
    if (url.pathname === '/v1beta/accountSummaries') {
      const isFirst = !url.searchParams.has('pageToken');
      const property = isFirst ? 'properties/1' : 'properties/2';
      return {
        accountSummaries: [{ displayName: 'Acme', propertySummaries: [{ property, displayName: property }] }],
        ...(isFirst ? { nextPageToken: 'next' } : {}),
      };
    }
    if (url.pathname === '/v1beta/properties/1') return { timeZone: 'Europe/Berlin', currencyCode: 'EUR' };
    if (url.pathname === '/v1beta/properties/2') return {};
    json(res, 403, { error: { status: 'PERMISSION_DENIED', details: [{ reason: 'RATE_LIMIT_EXCEEDED' }] } });
    return undefined;
  });
  const origins = {
    'https://analyticsadmin.googleapis.com': server.origin,
    'https://openidconnect.googleapis.com': server.origin,
  };
  const opened = openClient(test, origins);
  const context = { client: opened, account: '107' };
  const credential = { kind: 'oauth2', accessToken: 'ya29', refreshToken: 'r', expiresAt: null, scopes: [] };
  const found = await googleAnalytics.discover(context, { credential, settings: null });
  test.same(found, {
    items: [
      { id: '1', name: 'properties/1', account: 'Acme', timeZone: 'Europe/Berlin', currency: 'EUR' },
      { id: '2', name: 'properties/2', account: 'Acme', timeZone: null, currency: null },
    ],
    truncated: false,
  });
  const issues = googleAnalytics.checkSettings({ kind: 'google_analytics', propertyIds: ['2', '3'] }, found);
  test.match(issues, [{ path: ['propertyIds', 1] }]);
  const limited = googleAnalytics.verify(context, { credential, settings: null });
  const error = await fails(test, limited, 'rate_limited', 'a limit of the project');
  test.match(error, { status: 403, code: 'RATE_LIMIT_EXCEEDED' });
});

t.test('services of Google Workspace are those that were granted', async (test) => {
  const scope = (name: string) => `https://www.googleapis.com/auth/${name}`;
  const server = await openServer(test, () => ({ sub: '107', email: 'anna@example.com' }));
  const opened = openClient(test, { 'https://openidconnect.googleapis.com': server.origin });
  const scopes = ['openid', scope('gmail.readonly'), scope('documents')];
  const credential = { kind: 'oauth2', accessToken: 'ya29', refreshToken: 'r', expiresAt: null, scopes };
  const context = { client: opened, account: '107' };
  test.match(await googleWorkspace.verify(context, { credential, settings: null }), {
    subject: '107',
    label: 'a…@example.com',
    grantedScopes: scopes,
  });
  const { items } = await googleWorkspace.discover(context, { credential, settings: null });
  test.match(items, [
    { id: 'gmail', read: true, write: false },
    { id: 'calendar', read: false, write: false },
    { id: 'drive', read: false, write: false },
    { id: 'docs', read: true, write: true },
  ]);
});
