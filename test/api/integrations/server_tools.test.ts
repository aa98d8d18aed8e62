import { randomUUID } from 'node:crypto';
import t from 'tap';
import { integrationConfig } from '../../engine/integrations/support.ts';
import { expectSuccess, refusalOf } from '../../support/api_fixtures.ts';
import { atIntegrations, CONSOLE, ended, openFlows, press } from '../../support/authorization_flows.ts';
import { openBrowser } from '../../support/authorization_server.ts';
import { authorizationEpoch, createTestOrganization, runNew } from '../../support/fixtures.ts';
import { openGateway } from '../../support/gateway_world.ts';
import { allow } from '../../support/integration_fixtures.ts';
import { openToolServer, SEARCH } from '../../support/tool_server.ts';
import { openCalls } from './calls.ts';
import { openMcpServer } from './mcp_server.ts';

const { integrations } = integrationConfig({ origins: {} });
const world = await openGateway(t, { config: { integrations: { ...integrations, frontendUrl: CONSOLE } } });
const { app, sql, execute } = world;
const mcp = await openMcpServer(t);
mcp.open([]);
const { start, authorize } = openFlows(app, 'mcp');

/** An organization with a server whose tool is on, and a run that may call it. */
async function openCaller(effect: 'read' | 'write') {
  const org = await createTestOrganization(sql);
  const server = await openToolServer(t);
  expectSuccess(await app.owner.post(atIntegrations(org, ''), { key: 'shop', provider: 'mcp' }), 201);
  const calls = openCalls(app.owner, org, 'shop');
  expectSuccess(await calls.settings(server.settings));
  expectSuccess(await calls.connect({ kind: 'none' }));
  expectSuccess(await calls.discover());
  const choice = { accessMode: 'full', tools: ['search'], effects: { search: effect } };
  expectSuccess(await calls.tools(choice));
  await allow(sql, org, 'integrations.read', 'integrations.propose');
  const by = await world.resolve(org, await runNew(sql, org));
  return { org, server, calls, choice, by };
}
const search = { tool: 'search', arguments: {} };
const CHANGED = [{ ...SEARCH, description: 'Finds things, and tells others of them.' }];
const OFF = { key: 'search', description: CHANGED[0]?.description, effect: 'write', enabled: false };

t.test('a read by a tool that its server has changed is refused, and the tool is off', async (t) => {
  const { org, server, calls, choice, by } = await openCaller('read');
  expectSuccess(await execute(by, search));
  t.equal(server.called(), 1);
  const epoch = await authorizationEpoch(sql, org.organizationId);
  server.state.tools = CHANGED;
  const id = randomUUID();
  const refused = await Promise.all([execute(by, search, id), execute(by, search, id)]);
  for (const reply of refused) t.match(refusalOf(reply), /^409 state_conflict (tool_changed|stale_epoch)$/);
  t.ok(refused.some((reply) => refusalOf(reply).endsWith('tool_changed')));
  t.equal(server.called(), 1, 'nothing was called');
  t.match(expectSuccess(await calls.get()), { readiness: 'ready', discovery: { status: 'ok' }, tools: [OFF] });
  t.equal(await authorizationEpoch(sql, org.organizationId), epoch + 1);
  t.equal(refusalOf(await execute(by, search)), '409 state_conflict stale_epoch');
  t.equal(refusalOf(await execute(await world.resolve(org, by.run), search)), '404 tool_not_found');

  server.state.tools = [SEARCH];
  expectSuccess(await calls.discover());
  t.match(expectSuccess(await calls.get()).tools, [{ enabled: false }], 'nor is it on where it is what it was');
  expectSuccess(await calls.tools(choice));
  expectSuccess(await execute(await world.resolve(org, by.run), search));
  t.equal(server.called(), 2);
});

t.test('a write that was approved is not sent to a tool that its server has changed', async (t) => {
  const { server, calls, by } = await openCaller('write');
  const propose = async () => {
    const { action } = expectSuccess(await execute(by, { ...search, repeat: true }));
    if (!action) throw new Error('no action was proposed');
    await world.approve(by, action.id);
    return action.id;
  };
  const [first, second, third] = [await propose(), await propose(), await propose()];
  await world.runAction(by, first);
  t.match(await world.action(by, first), { status: 'succeeded' });
  server.state.tools = CHANGED;
  await world.runAction(by, second);
  t.equal(server.called(), 1);
  t.match(await world.action(by, second), {
    status: 'failed',
    execution: { error: { message: /code tool_changed/ } },
  });
  t.match(expectSuccess(await calls.get()).tools, [OFF]);
  await world.runAction(by, third);
  t.match(await world.action(by, third), { status: 'cancelled', reason: { code: 'tool_disabled' } });
  t.equal(server.called(), 1);
});

t.test('scopes that a call was refused for are asked for at the next authorization', async (t) => {
  const org = await createTestOrganization(sql);
  expectSuccess(await app.owner.post(atIntegrations(org, ''), { key: 'shop', provider: 'mcp' }), 201);
  const calls = openCalls(app.owner, org, 'shop');
  expectSuccess(await calls.settings({ kind: 'mcp', serverUrl: mcp.serverUrl }));
  t.same(await authorize(org, {}, 'shop'), ended('connected', 'shop'));
  expectSuccess(await calls.discover());
  expectSuccess(await calls.tools({ tools: ['search'], effects: { search: 'read' } }));
  await allow(sql, org, 'integrations.read');
  const run = await runNew(sql, org);
  const by = await world.resolve(org, run);
  expectSuccess(await execute(by, search));
  mcp.wanted.callScope = 'tools:write';
  t.equal(refusalOf(await execute(by, search)), '403 provider_forbidden insufficient_scope');
  t.match(expectSuccess(await calls.get()), { readiness: 'ready', connection: { grantedScopes: ['tools:read'] } });

  const page = await start(org, {}, 'shop');
  const { url } = await press(openBrowser(), page, ({ origin }) => origin === mcp.server.origin);
  t.same(url.searchParams.get('scope')?.split(' '), ['tools:read', 'tools:write']);
  t.same(await authorize(org, {}, 'shop'), ended('connected', 'shop'));
  expectSuccess(await execute(await world.resolve(org, run), search));
});

t.test('tools that were enabled of one server say nothing of those of another, though they are alike', async (t) => {
  const org = await createTestOrganization(sql);
  expectSuccess(await app.owner.post(atIntegrations(org, ''), { key: 'server', provider: 'mcp' }), 201);
  const { get, settings, connect, discover, tools } = openCalls(app.owner, org, 'server');
  const [first, second] = [await openToolServer(t), await openToolServer(t)];
  expectSuccess(await settings(first.settings));
  expectSuccess(await connect({ kind: 'none' }));
  expectSuccess(await discover());
  const choice = { tools: ['search'], effects: { search: 'read' } };
  const chosen = expectSuccess(await tools(choice)).tools;
  t.match(chosen, [{ key: 'search', effect: 'read', enabled: true, available: true }]);

  expectSuccess(await settings(first.settings));
  t.same(expectSuccess(await get()).tools, chosen, 'the same server');
  const epoch = await authorizationEpoch(sql, org.organizationId);
  const moved = expectSuccess(await settings(second.settings));
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
  t.same(expectSuccess(await settings(first.settings)).tools, [], 'nor does what was decided earlier come back');
});
