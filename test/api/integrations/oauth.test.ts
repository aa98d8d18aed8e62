import t from 'tap';
import { finishFlow } from '../../../engine/integrations/index.ts';
import { expectSuccess, refusalOf, sqlOf } from '../../support/api_fixtures.ts';
import { auditEntries } from '../../support/audit_fixtures.ts';
import {
  atIntegrations,
  CONSOLE,
  ended,
  openFlows,
  press,
  resultOf,
  toConsole,
} from '../../support/authorization_flows.ts';
import { openBrowser } from '../../support/authorization_server.ts';
import { createTestOrganization, updateOrganization } from '../../support/fixtures.ts';
import { consumeFlow } from '../../support/integration_fixtures.ts';
import { startIssuer } from '../../support/jwt.ts';
import { transition } from '../../support/transitions.ts';
import { GMAIL, KEY, openGoogle, openGoogleFlows, result, SCOPE } from './google.ts';

const { server: google, ...at } = await openGoogle(t);
const app = await at.startApp();
const sql = sqlOf(app);
// The same database, for people who sign in; browsers end at a page of the service itself.
const issuer = await startIssuer(t);
const signedIn = await at.startApp({ database: app.database, config: { ownerAuth: issuer.ownerAuth } }, null);
at.open(app, signedIn);
t.beforeEach(at.forgetPerson);
const { flows, create, read, start, authorize, verify } = openGoogleFlows(app);

t.test('a page says what is asked for, and its button leads to a connection', async (test) => {
  const org = await createTestOrganization(sql);
  await create(org);
  const page = await start(org);
  test.match(page, `${app.url}/oauth/begin/`);
  const browser = openBrowser();
  const shown = await (await browser.go(page, toConsole)).response?.text();
  test.match(shown, /Connect Google Workspace/);
  test.match(shown, /office/);
  test.match(shown, /Gmail, Calendar/);
  test.match(shown, /read only/);
  test.equal(browser.cookies(app.url)?.size, 0, 'looking at it begins nothing');
  test.same(resultOf(await press(browser, page)), result('connected'));
  const connected = await read(org);
  test.match(connected, {
    readiness: 'ready',
    services: ['gmail', 'calendar'],
    accessMode: 'read_only',
    connection: { kind: 'oauth2', account: { label: /^p….?@example\.com$|^p…@example\.com$/ }, revision: 1 },
  });
  test.same(connected.connection?.grantedScopes.toSorted(), [
    'email',
    `${SCOPE}/calendar.readonly`,
    `${SCOPE}/gmail.readonly`,
    'openid',
  ]);
  test.ok(await verify(org));
  const { id } = connected;
  test.match(
    (await auditEntries(sql, org.organizationId)).slice(-2),
    [
      { action: 'integration.authorize', subject_id: id },
      {
        action: 'integration.connect',
        subject_id: id,
        outcome: 'done',
        arguments: { services: ['gmail', 'calendar'] },
      },
    ],
    'the connection is an entry of its own',
  );
  test.equal((await press(openBrowser(), page)).response?.status, 404, 'the page begins once');
  test.equal((await fetch(page, { method: 'PUT' })).status, 405);
  for (const [mistyped, status] of [
    [`${page}%`, 400],
    [`${page}/`, 404],
    [`${page}/x`, 404],
  ] as const) {
    const response = await fetch(mistyped);
    test.match([response.status, response.headers.get('content-type')], [status, /^text\/html/], mistyped);
    test.match(await response.text(), /<h1>Nothing to see/, mistyped);
  }
  const ticket = page.split('/').at(-1) ?? '';
  test.notMatch(JSON.stringify(app.logged), ticket);
});

t.test('where nothing is to be chosen, an authorization begins without a body', async (test) => {
  const org = await createTestOrganization(sql);
  await openFlows(app, 'google-analytics').create(org);
  const path = atIntegrations(org, '/google-analytics/oauth/google-analytics/start');
  const { authorizationUrl } = expectSuccess(await app.owner.post<{ authorizationUrl: string }>(path), 200);
  test.same(resultOf(await press(openBrowser(), authorizationUrl)), ended('connected', 'google-analytics'));
});

t.test('a person says no', async (test) => {
  const org = await createTestOrganization(sql);
  await create(org);
  google.person.denies = true;
  test.same(await authorize(org), result('denied'));
  test.match(await read(org), { readiness: 'not_connected', connection: null });
  test.notMatch(JSON.stringify(app.logged), 'planted text of a provider');
});

t.test('a callback that comes again leads to the same page, and changes nothing', async (test) => {
  const org = await createTestOrganization(sql);
  await create(org);
  const browser = openBrowser();
  const callback = await flows.comeBack(browser, await start(org));
  const cookie = [...(browser.cookies(app.url) ?? [])].map(([name, value]) => `${name}=${value}`).join('; ');
  const asked = await fetch(callback, { method: 'HEAD', redirect: 'manual', headers: { cookie } });
  test.match([asked.status, await read(org)], [200, { readiness: 'not_connected' }], 'HEAD does nothing');
  callback.searchParams.append('unknown', 'one');
  callback.searchParams.append('unknown', 'two');
  test.same(resultOf(await browser.go(callback, toConsole)), result('connected'));
  const before = await read(org);
  test.same(resultOf(await browser.go(callback, toConsole)), result('connected'));
  const twice = await Promise.all([browser.go(callback, toConsole), browser.go(callback, toConsole)]);
  test.same(twice.map(resultOf), [result('connected'), result('connected')]);
  test.same(await read(org), before);
});

t.test('one callback that is delivered twice at once connects once', async (test) => {
  const org = await createTestOrganization(sql);
  await create(org);
  const browser = openBrowser();
  const callback = await flows.comeBack(browser, await start(org));
  const both = await Promise.all([browser.go(callback, toConsole), browser.go(callback, toConsole)]);
  test.same(both.map(resultOf), [result('connected'), result('connected')]);
  test.match(await read(org), { connection: { revision: 1 } });
});

t.test('another browser than the one that began fails, and the right one still connects', async (test) => {
  const org = await createTestOrganization(sql);
  await create(org);
  const browser = openBrowser();
  const callback = await flows.comeBack(browser, await start(org));
  test.same(resultOf(await openBrowser().go(callback, toConsole)), result('failed'));
  test.match(await read(org), { connection: null });
  test.same(resultOf(await browser.go(callback, toConsole)), result('connected'));
});

t.test('at another provider’s address nobody knows the flow, which still connects at its own', async (test) => {
  const org = await createTestOrganization(sql);
  await create(org);
  const browser = openBrowser();
  const callback = await flows.comeBack(browser, await start(org));
  const elsewhere = new URL(callback);
  elsewhere.pathname = '/oauth/google-analytics/callback';
  const last = `${CONSOLE}/integrations/callback`;
  test.same(resultOf(await browser.go(elsewhere, toConsole)), { path: last, result: 'expired' });
  test.same(resultOf(await browser.go(callback, toConsole)), result('connected'));
});

t.test('an integration that is deleted during its callback is a conflict, and no error of ours', async (test) => {
  const org = await createTestOrganization(sql);
  const { id } = await create(org);
  const browser = openBrowser();
  const callback = await flows.comeBack(browser, await start(org));
  google.before.push(async (req) => {
    if (req.url === '/token') await sql.owner.query('delete from app.integrations where id = $1', [id]);
    return false;
  });
  const both = await Promise.all([browser.go(callback, toConsole), browser.go(callback, toConsole)]);
  google.before.pop();
  const results = both.map(({ url }) => url.searchParams.get('result'));
  test.ok(results.includes('conflict'), results.join());
  test.notOk(results.includes('failed'), results.join());
  const { url } = await browser.go(callback, toConsole);
  test.equal(url.searchParams.get('result'), 'expired', 'its flow is gone with it');
  test.notOk(app.logged.some((line) => line['integrationId'] === id && Number(line['level']) >= 50));
});

t.test('a provider that is forbidden meanwhile is asked for nothing more', async (test) => {
  const org = await createTestOrganization(sql);
  await create(org);
  const allow = (allowedIntegrations: string[]) =>
    updateOrganization(sql.api, org, { constraints: { allowedIntegrations } });
  const [browser, page] = [openBrowser(), await start(org)];
  await allow(['stripe']);
  const refused = await press(browser, page);
  test.match([refused.url.href, refused.response?.status], [page, 502], 'its button leads nowhere');
  await allow([]);
  const callback = await flows.comeBack(browser, page);
  await allow(['stripe']);
  const asked: (string | undefined)[] = [];
  google.before.push((req) => asked.push(req.url) < 0);
  test.same(resultOf(await browser.go(callback, toConsole)), result('failed'));
  google.before.pop();
  test.same(asked, [], 'its code is not exchanged');
  test.match(await read(org), { readiness: 'not_connected' });
});

t.test('a callback has one time for all that it asks, and connects nothing after it', async (test) => {
  const org = await createTestOrganization(sql);
  await create(org);
  const browser = openBrowser();
  const { searchParams: parameters } = await flows.comeBack(browser, await start(org));
  const browserOf = (flowId: string) => browser.cookies(app.url)?.get(`runner_oauth_${flowId.replaceAll('-', '')}`);
  const callback = { provider: 'google-workspace', parameters, browserOf, starter: null, withinMs: 0 };
  const ends = await Promise.all([1, 2].map(() => finishFlow(app.services.integrations, callback)));
  const failed = { integrationKey: KEY, result: 'failed' };
  test.same(ends, [failed, failed]);
  test.match(await read(org), { readiness: 'not_connected' });
});

t.test('a process that dies during a callback leaves a failure, and the connection of before', async (test) => {
  const org = await createTestOrganization(sql);
  await create(org);
  test.same(await authorize(org), result('connected'));
  const before = await read(org);
  const browser = openBrowser();
  const { searchParams: parameters } = await flows.comeBack(browser, await start(org));
  const browserOf = (flowId: string) => browser.cookies(app.url)?.get(`runner_oauth_${flowId.replaceAll('-', '')}`);
  const states = async () => {
    const query = 'select id, result from app.integration_oauth_states where organization_id = $1 order by created_at';
    return (await sql.owner.query<{ id: string; result: string | null }>(query, [org.organizationId])).rows;
  };
  const id = (await states())[1]?.id ?? '';
  // All that the process did that died then.
  const taken = await consumeFlow(sql.api, org, { id, browser: browserOf(id) ?? '' });
  test.match(taken, { outcome: 'consumed', flow: { result: null } });
  const asked: (string | undefined)[] = [];
  google.before.push((req) => asked.push(req.url) < 0);
  // The time of the callback is over, and so is that for writing what it granted.
  const callback = { provider: 'google-workspace', parameters, browserOf, starter: null, withinMs: -60_000 };
  const failed = { integrationKey: KEY, result: 'failed' };
  test.same(await finishFlow(app.services.integrations, callback), failed);
  test.match(await states(), [{ result: 'connected' }, { id, result: 'failed' }]);
  const { withinMs: _over, ...again } = callback;
  test.same(await finishFlow(app.services.integrations, again), failed, 'it is over, so that nobody waits');
  google.before.pop();
  test.same(asked, [], 'its code is not exchanged');
  test.same(await read(org), before);
  test.ok(await verify(org));
});

t.test('what took too long, or what nobody knows, is expired', async (test) => {
  const org = await createTestOrganization(sql);
  const { id } = await create(org);
  const browser = openBrowser();
  const callback = await flows.comeBack(browser, await start(org));
  await sql.owner.query('update app.integration_oauth_states set expires_at = now() where integration_id = $1', [id]);
  test.same(resultOf(await browser.go(callback, toConsole)), result('expired'));
  const page = await start(org);
  await sql.owner.query('update app.integration_oauth_states set expires_at = now() where integration_id = $1', [id]);
  test.equal((await browser.go(page, toConsole)).response?.status, 404);
  test.equal((await press(browser, page)).response?.status, 404);
  for (const query of ['', '?state=unknown', '?state=%00', '?state=a&state=b', '?oauth_token=x', '?denied=x']) {
    const { url } = await browser.go(`${app.url}/oauth/google-workspace/callback${query}`, toConsole);
    test.match(resultOf({ url }), { path: `${CONSOLE}/integrations/callback`, result: /expired|failed/ }, query);
    test.notOk(url.searchParams.has('integration'), query);
  }
});

t.test('of two tabs the old one does not restore what was disconnected', async (test) => {
  const org = await createTestOrganization(sql);
  const { id } = await create(org);
  const [first, second] = [openBrowser(), openBrowser()];
  const old = await flows.comeBack(first, await start(org));
  const other = await flows.comeBack(second, await start(org));
  test.same(resultOf(await second.go(other, toConsole)), result('connected'));
  test.same(resultOf(await first.go(old, toConsole)), result('conflict'), 'the connection is another one by now');
  const again = await flows.comeBack(first, await start(org));
  const { organizationId } = org;
  await transition(sql.api, 'integration_disconnect', { organizationId, integrationRef: id });
  test.same(resultOf(await first.go(again, toConsole)), result('conflict'));
  test.match(await read(org), { readiness: 'not_connected' });
});

t.test('what cannot be authorized is said at the start', async (test) => {
  const org = await createTestOrganization(sql);
  await create(org);
  await openFlows(app, 'stripe').create(org, 'payments');
  const start = '/office/oauth/google-workspace/start';
  for (const [path, body, expected] of [
    [start, {}, '400 validation_failed invalid_value'],
    [start, { enabledTools: ['maps'] }, '400 validation_failed invalid_value'],
    [start, { ...GMAIL, clientId: 'x' }, '400 validation_failed unrecognized_keys'],
    ['/payments/oauth/google-workspace/start', GMAIL, '404 integration_not_found another_provider'],
    ['/nothing/oauth/google-workspace/start', GMAIL, '404 integration_not_found'],
  ] as const) {
    test.equal(refusalOf(await app.owner.post(atIntegrations(org, path), body)), expected);
  }
  const grant = atIntegrations(org, '/payments/oauth/google-workspace/grant');
  test.equal(refusalOf(await app.owner.delete(grant)), '404 integration_not_found another_provider');
  for (const missing of ['accessMode', 'enabledTools']) {
    const { body } = await app.owner.post(atIntegrations(org, start), { ...GMAIL, [missing]: undefined });
    test.match(body.error, { code: 'validation_failed', issues: [{ path: missing, message: 'is required' }] });
  }
  for (const [provider, domain, body] of [
    ['google-analytics', 'accounts.google.com', {}],
    ['google-analytics', 'analyticsadmin.googleapis.com', {}],
    ['google-workspace', 'oauth2.googleapis.com', GMAIL],
    ['google-workspace', 'openidconnect.googleapis.com', GMAIL],
    ['github', 'github.com', {}],
    ['github', 'api.github.com', {}],
    ['x-ads', 'x.com', {}],
    ['x-ads', 'ads-api.x.com', {}],
  ] as const) {
    const blocking = await createTestOrganization(sql);
    await openFlows(app, provider).create(blocking);
    const path = atIntegrations(blocking, `/${provider}/oauth/${provider}/start`);
    const setBlocked = (name: string) =>
      updateOrganization(sql.api, blocking, { constraints: { blockedDomains: [name] } });
    await setBlocked(domain);
    test.equal(refusalOf(await app.owner.post(path, body)), '403 provider_forbidden blocked', domain);
    await setBlocked('example.com');
    expectSuccess(await app.owner.post(path, body), 200);
  }
  const foreign = await createTestOrganization(sql);
  test.equal(refusalOf(await app.owner.post(atIntegrations(foreign, start), GMAIL)), '404 integration_not_found');
});

t.test('nobody who is signed in ends what another one began, and the last page is ours', async (test) => {
  const org = await createTestOrganization(sql);
  const { organizationId } = org;
  for (const subject of ['anna', 'bob']) {
    await transition(sql.api, 'organization_member_put', { organizationId, subject, role: 'owner' });
  }
  const anna = signedIn.owner.as(await issuer.token('anna'));
  await anna.post(atIntegrations(org, ''), { key: 'office', provider: 'google-workspace' });
  const path = atIntegrations(org, '/office/oauth/google-workspace/start');
  const page = expectSuccess(await anna.post<{ authorizationUrl: string }>(path, GMAIL), 200).authorizationUrl;
  const browser = openBrowser();
  const callback = await flows.comeBack(browser, page);
  const isLast = (url: URL) => url.pathname === '/integrations/callback';
  const as = async (subject: string) => ({ headers: { authorization: `Bearer ${await issuer.token(subject)}` } });
  const bobs = await browser.go(callback, isLast, await as('bob'));
  test.equal(bobs.url.href, `${signedIn.url}/integrations/callback?integration=office&result=failed`);
  const annas = await browser.go(callback, isLast, await as('anna'));
  test.equal(annas.url.href, `${signedIn.url}/integrations/callback?integration=office&result=connected`);
  test.equal(issuer.fetches(), 1, 'the key set is asked for once, whatever asks who is signed in');
  const { response } = await browser.go(annas.url, () => false);
  test.equal(response?.status, 200);
  test.match(await response?.text(), /<h1>Connected<\/h1>[\s\S]*office/);
  const strange = await fetch(`${signedIn.url}/integrations/callback?result=connected&integration=%3Cscript%3E`);
  test.notMatch(await strange.text(), /<script>/);
  for (const [path, status, init] of [
    ['/integrations/callback?result=won', 400],
    ['/integrations/callback', 400],
    ['/integrations/callback?result=%E0%A4%A', 400],
    ['/integrations/callback?result=connected&integration=a&integration=%00', 200],
    ['/oauth/begin/short?utm_source=mail', 404],
    ['/oauth/begin/short?utm_source=mail', 404, { method: 'POST' }],
    ['/oauth/begin/short', 404],
    ['/oauth/begin/a%20b', 404, { method: 'POST' }],
    ['/oauth/begin/a%', 400],
    ['/oauth/begin/%ff', 400, { method: 'POST' }],
    ['/oauth/begin/a%00', 400],
    ['/oauth/begin/', 404],
    ['/oauth/google-workspace%/callback', 400],
    ['/oauth/google-workspace/callback/?state=x', 404],
    ['/oauth/unknown/callback?state=x', 404],
    ['/oauth', 404],
    ['/integrations/callback/', 404],
    ['/integrations/callback%', 400],
  ] as const) {
    const page = await fetch(`${signedIn.url}${path}`, init);
    test.match([page.status, page.headers.get('content-type')], [status, /^text\/html/], path);
    test.match(await page.text(), /<h1>/, path);
  }
});

t.test('what no browser asks for has its refusal as JSON, and a page hides what fails', async (test) => {
  const json = { headers: { accept: 'application/json' } };
  for (const [path, status, init] of [
    ['/oauth/begin/a%', 400, json],
    ['/oauth/unknown/callback', 404, json],
    ['/oauth/begin/short', 405, { method: 'PUT' }],
    ['/oauthx', 404],
    ['/integrations/callbacks', 404],
  ] as const) {
    const response = await fetch(`${app.url}${path}`, init);
    test.match([response.status, await response.json()], [status, { success: false }], path);
  }
  const { db } = app.services.integrations;
  Object.assign(app.services.integrations, { db: null });
  const broken = await fetch(`${app.url}/oauth/begin/short`);
  Object.assign(app.services.integrations, { db });
  test.match([broken.status, broken.headers.get('content-security-policy')], [500, /default-src 'none'/]);
  test.match(await broken.text(), /<h1>Not now/);
  test.ok(app.logged.some(({ msg }) => msg === 'a request failed'));
});

t.test('the button is that of our own page', async (test) => {
  const org = await createTestOrganization(sql);
  await create(org);
  const page = await start(org);
  for (const headers of [{ 'sec-fetch-site': 'cross-site' }, { origin: 'https://evil.example' }]) {
    const response = await fetch(page, { method: 'POST', redirect: 'manual', headers });
    test.equal(response.status, 403);
    await response.body?.cancel();
  }
  const { response } = await openBrowser().go(page, toConsole);
  test.match(response?.headers.get('content-security-policy'), /default-src 'none'.*frame-ancestors 'none'/);
  test.same(resultOf(await press(openBrowser(), page)), result('connected'));
});
