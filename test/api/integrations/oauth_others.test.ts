import t from 'tap';
import { integrationConfig } from '../../engine/integrations/support.ts';
import { expectSuccess, refusalOf, sqlOf } from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { CONSOLE, ended, openFlows, press, resultOf, toConsole } from '../../support/authorization_flows.ts';
import { openBrowser } from '../../support/authorization_server.ts';
import { createTestOrganization } from '../../support/fixtures.ts';
import { until } from '../../support/wait.ts';
import { openGithub } from './github.ts';
import { openX } from './x.ts';

const [{ server: github, ...atGithub }, { state: x, origins }] = [await openGithub(t), await openX(t)];
const config = integrationConfig({ origins: { ...atGithub.origins, ...origins } });
const app = await startTestApp(t, {
  config: { integrations: { ...config.integrations, frontendUrl: CONSOLE }, allowPrivateAddresses: true },
});
const sql = sqlOf(app);
atGithub.open(app.url);

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
  test.notOk(x.isAuthorized('7'));
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
  x.consumer.secret = 'another';
  const { response } = await press(openBrowser(), await start(org));
  test.equal(response?.status, 502);
  test.match(await response?.text(), /Not connected/);
  x.consumer.secret = 'x-secret';
});
