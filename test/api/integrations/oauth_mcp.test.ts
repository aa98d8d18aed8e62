import t from 'tap';
import { discover, readIntegration, useConnection } from '../../../engine/integrations/index.ts';
import { integrationConfig } from '../../engine/integrations/support.ts';
import { json } from '../../engine/providers/support.ts';
import { expectSuccess, refusalOf, sqlOf } from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
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
import { createTestOrganization, type TestOrganization } from '../../support/fixtures.ts';
import { transition } from '../../support/transitions.ts';
import { openMcpServer } from './mcp_server.ts';

const { server, wanted, said, requests, serverUrl, open } = await openMcpServer(t);
const atServer = open([]);

const config = integrationConfig({ origins: {} });
const app = await startTestApp(t, {
  config: { integrations: { ...config.integrations, frontendUrl: CONSOLE }, allowPrivateAddresses: true },
});
const sql = sqlOf(app);
const { create, read, start, comeBack, authorize, verify, revoke } = openFlows(app, 'mcp');

const at = (rest: string) => (org: TestOrganization) => atIntegrations(org, `/mcp${rest}`);
const [startPath, settingsPath] = [at('/oauth/mcp/start'), at('/settings')];

/** What is kept sealed of an integration: of its connection, and of its flows. */
async function sealedOf(integrationId: string): Promise<readonly string[]> {
  const { rows } = await sql.owner.query(
    `select field from app.integration_secrets where integration_id = $1
     union all select 'flow' from app.integration_oauth_states where integration_id = $1 and ciphertext is not null`,
    [integrationId],
  );
  return rows.map(({ field }) => field).sort();
}

async function createServer(org: TestOrganization) {
  const { id } = await create(org);
  const { organizationId } = org;
  const settings = { kind: 'mcp', serverUrl };
  const args = {
    organizationId,
    integrationRef: id,
    connectionRevision: 0,
    settings,
    disconnect: false,
    forgetTools: false,
  };
  await transition(sql.api, 'integration_settings_put', args);
  return id;
}

t.test('a server is found, knows us by registration, and is connected; its tools are off', async (test) => {
  const org = await createTestOrganization(sql);
  const id = await createServer(org);
  test.same(await authorize(org), ended('connected', 'mcp'));
  const connected = await read(org);
  test.match(connected, { readiness: 'ready', connection: { kind: 'oauth2', grantedScopes: ['tools:read'] } });
  const { organizationId } = org;
  const integration = await readIntegration(app.services.integrations, { organizationId, integrationRef: id });
  await discover(app.services.integrations, integration);
  test.match(await read(org), {
    discovery: { status: 'ok' },
    tools: [{ key: 'search', enabled: false, effect: 'write', risk: 'external' }],
  });
  await expire(id);
  test.match(await verify(org), { subject: serverUrl }, 'refreshed at the same server, by the same client');
});

t.test('a server that asks for more scopes gets those of both, and the connection stays the same', async (test) => {
  const org = await createTestOrganization(sql);
  const id = await createServer(org);
  await authorize(org);
  wanted.scope = 'tools:read tools:write';
  t.teardown(() => {
    wanted.scope = 'tools:read';
  });
  const { organizationId } = org;
  const integration = await readIntegration(app.services.integrations, { organizationId, integrationRef: id });
  await test.rejects(discover(app.services.integrations, integration), {
    code: 'provider_failed',
    message: /code insufficient_scope/,
    issues: [{ code: 'insufficient_scope' }],
  });
  test.match(await read(org), { discovery: { status: 'failed', error: { code: 'provider_failed' } } });
  test.same(await authorize(org), ended('connected', 'mcp'));
  const { connection } = await read(org);
  test.same(connection?.grantedScopes.toSorted(), ['tools:read', 'tools:write']);
  test.equal(connection?.revision, 1);
  await discover(app.services.integrations, integration);
  wanted.scope = 'tools:read';
  test.same(await authorize(org), ended('connected', 'mcp'));
  const again = await read(org);
  test.same(again.connection?.grantedScopes.toSorted(), ['tools:read', 'tools:write'], 'another one takes none away');
});

t.test('one that has to be authorized again keeps its client, and asks for all that it had', async (test) => {
  const org = await createTestOrganization(sql);
  await createServer(org);
  const registrations = () => requests.filter((line) => line === 'POST /reg').length;
  wanted.scope = 'tools:read tools:write';
  test.same(await authorize(org), ended('connected', 'mcp'));
  wanted.scope = 'tools:read';
  await atServer.revoke();
  await test.rejects(verify(org));
  test.match(await read(org), { readiness: 'needs_reauthorization' });
  const before = registrations();
  test.same(await authorize(org), ended('connected', 'mcp'));
  test.equal(registrations(), before);
  const { connection, readiness } = await read(org);
  test.equal(readiness, 'ready');
  test.same(connection?.grantedScopes.toSorted(), ['tools:read', 'tools:write']);
});

t.test('a server that no longer knows our client gets to know another one with the next try', async (test) => {
  const org = await createTestOrganization(sql);
  const id = await createServer(org);
  const registrations = () => requests.filter((line) => line === 'POST /reg').length;
  test.same(await authorize(org), ended('connected', 'mcp'));
  const before = registrations();
  let forgets = true;
  server.before.unshift(async (req, res) => {
    if (!forgets || req.url !== '/token') return false;
    json(res, 401, { error: 'invalid_client' });
    return true;
  });
  test.same(await authorize(org), ended('failed', 'mcp'));
  forgets = false;
  test.equal(registrations(), before);
  test.same(await authorize(org), ended('connected', 'mcp'));
  test.equal(registrations(), before + 1);
  test.same(await authorize(org), ended('connected', 'mcp'));
  test.equal(registrations(), before + 1, 'and keeps that one');
  // It says so to the person alone, who does not come back.
  await comeBack(openBrowser(), await start(org));
  test.equal(registrations(), before + 1);
  await sql.owner.query('update app.integration_oauth_states set expires_at = now() where integration_id = $1', [id]);
  await comeBack(openBrowser(), await start(org));
  test.equal(registrations(), before + 2);
});

/** Its tokens are over, so that the next use exchanges them. */
const expire = (id: string) =>
  sql.owner.query('update app.integration_connections set token_expires_at = now() where integration_id = $1', [id]);

t.test(
  'a refresh that the server refuses to our client asks for an authorization, which makes another client',
  async (test) => {
    const org = await createTestOrganization(sql);
    const id = await createServer(org);
    const registrations = () => requests.filter((line) => line === 'POST /reg').length;
    test.same(await authorize(org), ended('connected', 'mcp'));
    const before = registrations();
    const [clientId = ''] = (await atServer.forgetClients()).slice(-1);
    await expire(id);
    const { integrations } = app.services;
    const target = { organizationId: org.organizationId, integrationId: id, revision: 1 };
    const mcpClient = { kind: 'registered', id: clientId } as const;
    const asSetting = { ...integrations, settings: { ...integrations.settings, mcpClient } };
    const refused = useConnection(asSetting, target, async () => undefined);
    // One of the settings is mended there.
    await test.rejects(refused, { message: 'The provider does not accept our OAuth client.' });
    test.match(await read(org), { readiness: 'degraded' });
    await test.rejects(verify(org), { code: 'integration_not_ready', issues: [{ code: 'needs_reauthorization' }] });
    test.match(await read(org), { readiness: 'needs_reauthorization' });
    test.equal(registrations(), before);
    test.same(await authorize(org), ended('connected', 'mcp'));
    test.equal(registrations(), before + 1);
    test.match(await read(org), { readiness: 'ready', connection: { revision: 1 } });
    await expire(id);
    test.match(await verify(org), { subject: serverUrl }, 'refreshed by the new one');
    test.same(await authorize(org), ended('connected', 'mcp'));
    test.equal(registrations(), before + 1, 'which is kept');
  },
);

t.test('a connection that cannot be read makes no other client', async (test) => {
  const org = await createTestOrganization(sql);
  await createServer(org);
  test.same(await authorize(org), ended('connected', 'mcp'));
  const page = await start(org);
  const before = requests.length;
  await sql.owner.query('alter function app.integration_secrets_read rename to integration_secrets_away');
  test.teardown(async () => {
    await sql.owner.query('alter function app.integration_secrets_away rename to integration_secrets_read');
  });
  const { response } = await press(openBrowser(), page);
  test.equal(response?.status, 502);
  test.same(requests.slice(before), []);
});

t.test('its grant is revoked where the server says how', async (test) => {
  const org = await createTestOrganization(sql);
  await createServer(org);
  await authorize(org);
  test.match(expectSuccess(await revoke(org), 200), { revoked: true, unlinked: [{ key: 'mcp' }] });
  test.match(await read(org), { readiness: 'not_connected' });
});

t.test('a callback of another issuer, or of none, connects nothing and asks for no tokens', async (test) => {
  const org = await createTestOrganization(sql);
  await createServer(org);
  const asked = () => requests.filter((line) => line === 'POST /token').length;
  const before = asked();
  for (const issuer of ['https://accounts.example', `${new URL(serverUrl).origin}/`, undefined]) {
    const browser = openBrowser();
    const callback = await comeBack(browser, await start(org));
    test.ok(callback.searchParams.has('iss'));
    if (issuer === undefined) callback.searchParams.delete('iss');
    else callback.searchParams.set('iss', issuer);
    test.same(resultOf(await browser.go(callback, toConsole)), ended('failed', 'mcp'), String(issuer));
  }
  test.equal(asked(), before);
  test.match(await read(org), { readiness: 'not_connected', connection: null });
  test.same(await authorize(org), ended('connected', 'mcp'), 'its own one does');
  test.equal(asked(), before + 1);
});

t.test('a server whose metadata is of another resource, or of none, is not authorized', async (test) => {
  const org = await createTestOrganization(sql);
  const id = await createServer(org);
  test.teardown(() => delete said.resource);
  for (const resource of ['https://bank.example/mcp', `${serverUrl}/more`, undefined]) {
    said.resource = resource;
    const refused = await app.owner.post(startPath(org), {});
    test.equal(refusalOf(refused), '502 provider_failed failed', String(resource));
  }
  delete said.resource;
  const page = await start(org);
  said.resource = 'https://bank.example/mcp';
  test.equal((await press(openBrowser(), page, () => false)).response?.status, 502, 'nor where it changes meanwhile');
  test.same(await sealedOf(id), []);
  test.match(await read(org), { readiness: 'not_connected' });
});

t.test('another server ends the connection and what is under way, and nothing of either is kept', async (test) => {
  const org = await createTestOrganization(sql);
  const id = await createServer(org);
  await authorize(org);
  const browser = openBrowser();
  const callback = await comeBack(browser, await start(org));
  test.same(await sealedOf(id), ['access_token', 'authorization', 'flow', 'refresh_token']);
  const put = (address: string) => app.owner.put(settingsPath(org), { settings: { kind: 'mcp', serverUrl: address } });
  expectSuccess(await put(serverUrl));
  test.match(await read(org), { connection: { revision: 1 } }, 'the same one');
  test.match(expectSuccess(await put(`${serverUrl}/other`)), { readiness: 'not_connected', connection: null });
  const before = requests.length;
  test.same(resultOf(await browser.go(callback, toConsole)), ended('conflict', 'mcp'));
  test.same(requests.slice(before), [], 'neither server was asked: the tokens of one are not for the other');
  test.same(await sealedOf(id), []);
  test.match(await read(org), { connection: null });
});

t.test('a server that is deleted leaves no secret, and its flow connects nothing', async (test) => {
  const org = await createTestOrganization(sql);
  const id = await createServer(org);
  await authorize(org);
  const browser = openBrowser();
  const callback = await comeBack(browser, await start(org));
  test.equal((await sealedOf(id)).length, 4);
  expectSuccess(await app.owner.delete(at('')(org)));
  test.same(await sealedOf(id), []);
  test.match(resultOf(await browser.go(callback, toConsole)), { result: 'expired' });
  test.equal((await app.owner.get(at('')(org))).status, 404);
});
