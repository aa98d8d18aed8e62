import t from 'tap';
import type { Integration } from '../../../api/integrations/schema.ts';
import { openServer } from '../../engine/providers/support.ts';
import { expectSuccess, sqlOf } from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { atIntegrations } from '../../support/authorization_flows.ts';
import { authorizationEpoch, createTestOrganization } from '../../support/fixtures.ts';
import { openCalls } from './calls.ts';

const SEARCH = { name: 'search', description: 'Finds things.', inputSchema: { type: 'object' } };

/** A server with one tool, which any of them may have, letter by letter. */
async function openSearch() {
  const server = await openServer(t, (call, res) => {
    if (call.method !== 'POST') return void res.writeHead(405).end();
    const { id, method } = JSON.parse(call.body) as { id?: number; method: string };
    if (id === undefined) return void res.writeHead(202).end();
    const serverInfo = { name: 'test', version: '1' };
    const initialized = { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo };
    return { jsonrpc: '2.0', id, result: method === 'initialize' ? initialized : { tools: [SEARCH] } };
  });
  return { kind: 'mcp', serverUrl: `${server.origin}/mcp` };
}

const app = await startTestApp(t, { config: { allowPrivateAddresses: true } });
const sql = sqlOf(app);

t.test('tools that were enabled of one server say nothing of those of another, though they are alike', async (t) => {
  const org = await createTestOrganization(sql);
  expectSuccess(await app.owner.post<Integration>(atIntegrations(org, ''), { key: 'server', provider: 'mcp' }), 201);
  const { get, settings, connect, discover, tools } = openCalls(app.owner, org, 'server');
  const [first, second] = [await openSearch(), await openSearch()];
  expectSuccess(await settings(first));
  expectSuccess(await connect({ kind: 'none' }));
  expectSuccess(await discover());
  const choice = { tools: ['search'], effects: { search: 'read' } };
  const chosen = expectSuccess(await tools(choice)).tools;
  t.match(chosen, [{ key: 'search', effect: 'read', enabled: true, available: true }]);

  expectSuccess(await settings(first));
  t.same(expectSuccess(await get()).tools, chosen, 'the same server');
  const epoch = await authorizationEpoch(sql, org.organizationId);
  const moved = expectSuccess(await settings(second));
  t.same([moved.connection, moved.tools, moved.discovery], [null, [], null]);
  t.equal(await authorizationEpoch(sql, org.organizationId), epoch + 1);
  const connected = expectSuccess(await connect({ kind: 'none' }));
  t.match(connected, { readiness: 'ready', discovery: null });
  t.same(connected.tools, [], 'its own are not known before they are discovered');
  expectSuccess(await discover());
  const [search] = expectSuccess(await get()).tools;
  t.match(search, { key: 'search', effect: 'write', enabled: false }, 'nobody has decided on it');
  t.equal(search?.digest, chosen[0]?.digest);

  expectSuccess(await tools(choice));
  t.same(expectSuccess(await settings(first)).tools, [], 'nor does what was decided earlier come back');
});
