import { createHmac } from 'node:crypto';
import OAuth from 'oauth-1.0a';
import t from 'tap';
import { integrationConfig } from '../../engine/integrations/support.ts';
import { type Call, json, openServer } from '../../engine/providers/support.ts';
import { expectSuccess, refusalOf, sqlOf } from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { CONSOLE, ended, openFlows, press, resultOf, toConsole } from '../../support/authorization_flows.ts';
import { openAuthorizationServer, openBrowser } from '../../support/authorization_server.ts';
import { createTestOrganization } from '../../support/fixtures.ts';
import { until } from '../../support/wait.ts';

const bodyOf = async (stream: AsyncIterable<unknown>) => {
  let text = '';
  for await (const chunk of stream) text += chunk;
  return text;
};

// GitHub: a token opens `/user`, and the App's grant is deleted by the client.
const github = await openAuthorizationServer(t, {
  issuer: 'https://github.com/login/oauth',
  routes: { authorization: '/login/oauth/authorize', token: '/login/oauth/access_token' },
  scopes: ['account'],
  client: { id: 'github-client', secret: 'github-secret' },
});
// Of an App nobody asks for scopes; this server ends what asks for none.
github.before.push((req) => {
  if (req.url?.startsWith('/login/oauth/authorize?')) req.url += '&scope=account';
  return false;
});

// X: what it signs is checked by a library that is not ours.
const consumer = { key: 'x-consumer', secret: 'x-secret' };
const signer = new OAuth({
  consumer,
  signature_method: 'HMAC-SHA1',
  hash_function: (base, key) => createHmac('sha1', key).update(base).digest('base64'),
});
const secrets: Record<string, string> = { '': '', '7-access': 'access-secret' };
const x = { denies: false, revoked: false, isLimiting: false, requests: 0, steps: [] as string[] };

function isSigned({ method, url, headers }: Call): boolean {
  const given = Object.fromEntries(
    [...(headers.authorization ?? '').matchAll(/(oauth_\w+)="([^"]*)"/g)].map(([, name = '', value = '']) => [
      name,
      decodeURIComponent(value),
    ]),
  );
  const { oauth_signature: signature, ...rest } = given;
  const request = { url: `https://api.x.com${url.pathname}${url.search}`, method, data: {} };
  const expected = signer.getSignature(request, secrets[rest['oauth_token'] ?? ''], rest as unknown as OAuth.Data);
  return signature === expected;
}

const xServer = await openServer(t, (call, res) => {
  const { pathname, searchParams } = call.url;
  x.steps.push(pathname);
  if (pathname === '/oauth/authorize') {
    const token = searchParams.get('oauth_token') ?? '';
    const query = x.denies ? `denied=${token}` : `oauth_token=${token}&oauth_verifier=verified`;
    res.writeHead(302, { location: `${app.url}/oauth/x-ads/callback?${query}` }).end();
    return undefined;
  }
  if (!isSigned(call)) {
    json(res, 401, { errors: [{ code: 'WRONG_SIGNATURE' }] });
    return undefined;
  }
  if (pathname === '/oauth/request_token' && x.isLimiting) {
    json(res, 429, {}, { 'retry-after': '1' });
    return undefined;
  }
  if (pathname === '/oauth/request_token') {
    x.requests += 1;
    const token = `request-${x.requests}`;
    secrets[token] = `request-secret-${x.requests}`;
    res.end(`oauth_token=${token}&oauth_token_secret=${secrets[token]}&oauth_callback_confirmed=true`);
    return undefined;
  }
  if (pathname === '/oauth/access_token') {
    res.end('oauth_token=7-access&oauth_token_secret=access-secret&user_id=7&screen_name=acme');
    return undefined;
  }
  if (pathname === '/1.1/oauth/invalidate_token.json') {
    x.revoked = true;
    return {};
  }
  return { data: { id: '7', username: 'acme' } };
});

const config = integrationConfig({
  origins: {
    'https://github.com': github.origin,
    'https://api.github.com': github.origin,
    'https://api.x.com': xServer.origin,
  },
});
const app = await startTestApp(t, {
  config: { integrations: { ...config.integrations, frontendUrl: CONSOLE }, allowPrivateAddresses: true },
});
const sql = sqlOf(app);
const provider = github.open([`${app.url}/oauth/github/callback`]);
github.before.push(async (req, res) => {
  if (req.url === '/user') {
    const token = await provider.AccessToken.find((req.headers.authorization ?? '').slice('Bearer '.length));
    if (token) json(res, 200, { id: 7, login: token.accountId });
    else json(res, 401, { message: 'Bad credentials' });
    return true;
  }
  if (req.method !== 'DELETE' || req.url !== '/applications/github-client/grant') return false;
  const { access_token: value } = JSON.parse(await bodyOf(req)) as { access_token: string };
  const basic = Buffer.from('github-client:github-secret').toString('base64');
  const token = await provider.AccessToken.find(value);
  if (!token || req.headers.authorization !== `Basic ${basic}`) {
    json(res, 404, { message: 'Not Found' });
    return true;
  }
  await provider.RefreshToken.revokeByGrantId(token.grantId ?? '');
  await provider.AccessToken.revokeByGrantId(token.grantId ?? '');
  res.writeHead(204).end();
  return true;
});

t.test('GitHub is connected, its rotating tokens are refreshed, and its grant revoked', async (test) => {
  const org = await createTestOrganization(sql);
  const { create, read, authorize, verify, revoke } = openFlows(app, 'github');
  await create(org);
  test.same(await authorize(org), ended('connected', 'github'));
  test.match(await read(org), { readiness: 'needs_configuration', connection: { account: { label: 'anna' } } });
  const { id } = await read(org);
  for (const version of [2, 3]) {
    await sql.owner.query('update app.integration_connections set token_expires_at = now() where integration_id = $1', [
      id,
    ]);
    test.match(await verify(org), { label: 'anna' });
    const { rows } = await sql.owner.query(
      'select token_version from app.integration_connections where integration_id = $1',
      [id],
    );
    test.same(rows, [{ token_version: version }]);
  }
  test.match(expectSuccess(await revoke(org), 200), { revoked: true, unlinked: [{ key: 'github' }] });
  test.match(await read(org), { readiness: 'not_connected' });
  test.equal(refusalOf(await revoke(org)), '409 integration_not_ready not_connected');
});

t.test('a token of GitHub that ends, and that nothing refreshes, connects nothing', async (test) => {
  const org = await createTestOrganization(sql);
  const { create, read, authorize } = openFlows(app, 'github');
  await create(org);
  github.refresh.isOn = false;
  test.same(await authorize(org), ended('failed', 'github'));
  test.match(await read(org), { readiness: 'not_connected', connection: null });
  github.refresh.isOn = true;
});

t.test('a person says no to GitHub', async (test) => {
  const org = await createTestOrganization(sql);
  const { create, authorize } = openFlows(app, 'github');
  await create(org);
  github.person.denies = true;
  test.same(await authorize(org), ended('denied', 'github'));
  github.person.denies = false;
});

t.test('X is connected by three signed steps, and its token revoked', async (test) => {
  const org = await createTestOrganization(sql);
  const { create, start, read, comeBack, verify, revoke } = openFlows(app, 'x-ads');
  await create(org);
  const browser = openBrowser();
  const callback = await comeBack(browser, await start(org));
  test.same(resultOf(await openBrowser().go(callback, toConsole)), ended('failed', 'x-ads'), 'another browser');
  test.same(resultOf(await browser.go(callback, toConsole)), ended('connected', 'x-ads'));
  test.same(x.steps, ['/oauth/request_token', '/oauth/authorize', '/oauth/access_token']);
  test.same(resultOf(await browser.go(callback, toConsole)), ended('connected', 'x-ads'), 'again');
  test.match(await read(org), { connection: { kind: 'oauth1', account: { label: '@acme' } } });
  test.match(await verify(org), { subject: '7' });
  test.match(expectSuccess(await revoke(org), 200), { revoked: true, unlinked: [{ key: 'x-ads' }] });
  test.ok(x.revoked);
  test.notMatch(JSON.stringify(app.logged), /access-secret|request-secret/);
});

t.test('a provider that limits us as an authorization begins is asked again from the same page', async (test) => {
  const { create, start } = openFlows(app, 'x-ads');
  const org = await createTestOrganization(sql);
  await create(org);
  const page = await start(org);
  x.isLimiting = true;
  const { response } = await press(openBrowser(), page);
  test.match([response?.status, response?.headers.get('retry-after')], [503, /^[12]$/]);
  test.match(await response?.text(), /<form method="post"><button type="submit">Try again/);
  x.isLimiting = false;
  const browser = openBrowser();
  const again = async () => {
    const { url } = await press(browser, page);
    return toConsole(url) ? resultOf({ url }) : undefined;
  };
  test.same(await until('the limit is over', again), ended('connected', 'x-ads'));
});

t.test('a person says no to X', async (test) => {
  const org = await createTestOrganization(sql);
  const { create, start, read } = openFlows(app, 'x-ads');
  await create(org);
  x.denies = true;
  test.same(resultOf(await press(openBrowser(), await start(org))), ended('denied', 'x-ads'));
  test.match(await read(org), { readiness: 'not_connected' });
  x.denies = false;
});

t.test('a provider that does not let a flow begin leads to a page', async (test) => {
  const org = await createTestOrganization(sql);
  const { create, start } = openFlows(app, 'x-ads');
  await create(org);
  consumer.secret = 'another';
  const { response } = await press(openBrowser(), await start(org));
  test.equal(response?.status, 502);
  test.match(await response?.text(), /Not connected/);
  consumer.secret = 'x-secret';
});
