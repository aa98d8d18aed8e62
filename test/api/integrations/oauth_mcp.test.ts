import t from 'tap';
import { discover, readIntegration } from '../../../engine/integrations/index.ts';
import { integrationConfig } from '../../engine/integrations/support.ts';
import { expectSuccess, sqlOf } from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { CONSOLE, ended, openFlows } from '../../support/authorization_flows.ts';
import { createTestOrganization, type TestOrganization } from '../../support/fixtures.ts';
import { transition } from '../../support/transitions.ts';
import { openMcpServer } from './mcp_server.ts';

const { wanted, serverUrl, open } = await openMcpServer(t);
open([]);

const config = integrationConfig({ origins: {} });
const app = await startTestApp(t, {
  config: { integrations: { ...config.integrations, frontendUrl: CONSOLE }, allowPrivateAddresses: true },
});
const sql = sqlOf(app);
const { create, read, authorize, verify, revoke } = openFlows(app, 'mcp');

async function createServer(org: TestOrganization) {
  const { id } = await create(org);
  const { organizationId } = org;
  const settings = { kind: 'mcp', serverUrl };
  const args = { organizationId, integrationRef: id, connectionRevision: 0, settings, disconnect: false };
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
  await sql.owner.query('update app.integration_connections set token_expires_at = now() where integration_id = $1', [
    id,
  ]);
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
});

t.test('its grant is revoked where the server says how', async (test) => {
  const org = await createTestOrganization(sql);
  await createServer(org);
  await authorize(org);
  test.match(expectSuccess(await revoke(org), 200), { revoked: true, unlinked: [{ key: 'mcp' }] });
  test.match(await read(org), { readiness: 'not_connected' });
});
