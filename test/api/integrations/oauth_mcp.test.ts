import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import t from 'tap';
import { discover, readIntegration } from '../../../engine/integrations/index.ts';
import { integrationConfig } from '../../engine/integrations/support.ts';
import { json } from '../../engine/providers/support.ts';
import { expectSuccess, sqlOf } from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { CONSOLE, ended, openFlows } from '../../support/authorization_flows.ts';
import { openAuthorizationServer } from '../../support/authorization_server.ts';
import { createTestOrganization, type TestOrganization } from '../../support/fixtures.ts';
import { transition } from '../../support/transitions.ts';

/** What the server wants of a token. */
const wanted = { scope: 'tools:read' };
const requests: string[] = [];
const server = await openAuthorizationServer(t, {
  issuer: '',
  routes: {},
  scopes: [],
  features: {
    registration: { enabled: true },
    resourceIndicators: {
      enabled: true,
      useGrantedResource: () => true,
      getResourceServerInfo: (_ctx: unknown, resource: string) => ({
        scope: 'tools:read tools:write',
        audience: resource,
        accessTokenFormat: 'opaque',
      }),
    },
  },
});
const provider = server.open([]);
const serverUrl = `${server.origin}/mcp`;

// The MCP server by the official SDK, behind the same authorization.
server.before.push(async (req, res) => {
  const { pathname } = new URL(req.url ?? '', server.origin);
  if (pathname !== '/mcp' && pathname !== '/resource') return false;
  requests.push(`${req.method} ${pathname}`);
  if (pathname === '/resource') {
    json(res, 200, { resource: serverUrl, authorization_servers: [server.issuer], scopes_supported: ['tools:read'] });
    return true;
  }
  const token = await provider.AccessToken.find((req.headers.authorization ?? '').slice('Bearer '.length));
  const challenge = `Bearer resource_metadata="${server.origin}/resource", scope="${wanted.scope}"`;
  if (!token) {
    json(res, 401, {}, { 'www-authenticate': challenge });
    return true;
  }
  const granted = (token.scope ?? '').split(' ');
  if (!wanted.scope.split(' ').every((scope) => granted.includes(scope))) {
    json(res, 403, {}, { 'www-authenticate': `${challenge}, error="insufficient_scope"` });
    return true;
  }
  const mcp = new McpServer({ name: 'test', version: '1' });
  mcp.registerTool('search', { description: 'Finds things.' }, () => ({ content: [{ type: 'text', text: 'found' }] }));
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined } as never);
  await mcp.connect(transport as never);
  await transport.handleRequest(req, res);
  return true;
});

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
