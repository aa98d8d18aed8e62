// How a call ends that its caller broke off, or gave too little time, is not the fault of its provider: the connection stays ready, and
// writes that are approved are not put off.
import { randomUUID } from 'node:crypto';
import t, { type Test } from 'tap';
import { openStandIn } from '../../engine/providers/mongo_stand_in.ts';
import { json, openServer } from '../../engine/providers/support.ts';
import { expectSuccess, type Fields, refusalOf } from '../../support/api_fixtures.ts';
import { atIntegrations } from '../../support/authorization_flows.ts';
import { createTestOrganization, runNew } from '../../support/fixtures.ts';
import { type Caller, CHARGES, openGateway } from '../../support/gateway_world.ts';
import { allow } from '../../support/integration_fixtures.ts';
import { SEARCH } from '../../support/tool_server.ts';
import { until } from '../../support/wait.ts';
import { openCalls } from '../integrations/calls.ts';

const world = await openGateway(t);
const { app, sql, stripe, execute } = world;
const callsOf = (by: Pick<Caller, 'org'>) => openCalls(app.owner, by.org, 'shop');
const readiness = async (by: Pick<Caller, 'org'>) => expectSuccess(await callsOf(by).get()).readiness;

/** Whether it stalls, and how often it has. */
type State = { stalls: boolean; stalled: number };

/** A provider that responds until it is to stall, and a call of it. */
type Peer = Readonly<{ by: Caller; call: Fields; state: State }>;

function stallsNow(state: State): boolean {
  if (state.stalls) state.stalled += 1;
  return state.stalls;
}

async function shopOf(provider: string, settings: Fields, credential: Fields, tools: Fields): Promise<Caller> {
  const org = await createTestOrganization(sql);
  expectSuccess(await app.owner.post(atIntegrations(org, ''), { key: 'shop', provider }), 201);
  const calls = callsOf({ org });
  const steps = [() => calls.settings(settings), () => calls.connect(credential)];
  for (const step of provider === 'mcp' ? steps : steps.toReversed()) expectSuccess(await step());
  expectSuccess(await calls.discover());
  expectSuccess(await calls.tools(tools));
  await allow(sql, org, 'integrations.read', 'integrations.propose');
  return world.resolve(org, await runNew(sql, org));
}

async function stripePeer(): Promise<Peer> {
  const state = { stalls: false, stalled: 0 };
  stripe.faults.before = () => stallsNow(state);
  return { by: await world.caller(), call: { tool: CHARGES, arguments: {} }, state };
}

/** @param at the request that it never responds to */
async function mcpPeer(test: Test, at: 'initialize' | 'tools/call', effect = 'read'): Promise<Peer> {
  const state = { stalls: false, stalled: 0 };
  const server = await openServer(test, ({ method: verb, body }, res) => {
    if (verb !== 'POST') return void res.writeHead(405).end();
    const { id, method } = JSON.parse(body) as { id?: number; method: string };
    if (id === undefined) return void res.writeHead(202).end();
    if (method === at && stallsNow(state)) return undefined;
    const serverInfo = { name: 'test', version: '1' };
    const results: Fields = {
      initialize: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo },
      'tools/list': { tools: [SEARCH] },
      'tools/call': { content: [{ type: 'text', text: 'found' }] },
    };
    return { jsonrpc: '2.0', id, result: results[method] };
  });
  const settings = { kind: 'mcp', serverUrl: `${server.origin}/mcp` };
  const tools = { accessMode: 'full', tools: ['search'], effects: { search: effect } };
  const by = await shopOf('mcp', settings, { kind: 'none' }, tools);
  return { by, call: { tool: 'search', arguments: {} }, state };
}

/** @param at the command that it never responds to */
async function mongoPeer(test: Test, at: 'saslStart' | 'find'): Promise<Peer> {
  const state = { stalls: false, stalled: 0 };
  const user = { username: 'reader', password: 'pass-word-4711' };
  const { port } = await openStandIn(test, {
    ...user,
    collections: { orders: [] },
    stalls: (command) => at in command && stallsNow(state),
  });
  const settings = { kind: 'mongodb', databaseName: 'shop', collections: ['orders'] };
  const credential = { kind: 'mongodb', host: '127.0.0.1', port, srv: false, tls: false, ...user };
  const by = await shopOf('mongodb', settings, credential, { accessMode: 'full' });
  return { by, call: { tool: 'mongodb.find', arguments: { collection: 'orders' } }, state };
}

const PEERS: Readonly<Record<string, (test: Test) => Promise<Peer>>> = {
  Stripe: stripePeer,
  'a server, before its tool is called': (test) => mcpPeer(test, 'initialize'),
  'a server, while its tool is called': (test) => mcpPeer(test, 'tools/call'),
  'MongoDB, before it is connected': (test) => mongoPeer(test, 'saslStart'),
  'MongoDB, while it is asked': (test) => mongoPeer(test, 'find'),
};

/** Of a call that nobody waited for to its end nothing is kept. */
async function isForgotten(invocationId: string): Promise<boolean> {
  const { rows } = await sql.owner.query('select from app.action_invocations where invocation_id = $1', [invocationId]);
  return rows.length === 0;
}

for (const [what, open] of Object.entries(PEERS)) {
  t.test(`a caller that leaves, or allows too little time, does not degrade the connection: ${what}`, async (t) => {
    const { by, call, state } = await open(t);
    expectSuccess(await execute(by, call));
    t.equal(await readiness(by), 'ready');
    state.stalls = true;
    const abort = new AbortController();
    const id = randomUUID();
    const url = `${app.url}/internal/cli/integrations/${by.integrationId}/invocations/${id}/execute`;
    const headers = { authorization: `Bearer ${by.capability}`, 'content-type': 'application/json' };
    const request = fetch(url, { method: 'POST', headers, body: JSON.stringify(call), signal: abort.signal });
    await until('the provider is asked', () => state.stalled > 0);
    abort.abort();
    await t.rejects(request);
    await until('the call is over', () => isForgotten(id));
    t.equal(await readiness(by), 'ready', 'after its caller has left');
    for (const timeoutMs of [5, 300]) {
      t.match(refusalOf(await execute(by, { ...call, timeoutMs })), /^503 provider_unavailable/);
      t.equal(await readiness(by), 'ready', `after ${timeoutMs} ms`);
    }
    state.stalls = false;
    expectSuccess(await execute(by, call));
  });
}

t.test('a write that was allowed too little time does not degrade the connection', async (t) => {
  const { by, call, state } = await mcpPeer(t, 'initialize', 'write');
  const { action } = expectSuccess(await execute(by, { ...call, timeoutMs: 300 }));
  const { id } = await world.approve(by, action?.id ?? '');
  state.stalls = true;
  await world.runAction(by, id);
  t.match(await world.action(by, id), { status: 'failed', execution: { error: { code: 'unavailable' } } });
  t.equal(await readiness(by), 'ready');
});

t.test('a provider that says itself that it is down degrades it, however little time it was allowed', async (t) => {
  const by = await world.caller();
  stripe.faults.before = (_call, res) => {
    json(res, 503, {}, { 'retry-after': '60' });
    return true;
  };
  const reply = await execute(by, { tool: CHARGES, arguments: {}, timeoutMs: 1_000 });
  t.match(refusalOf(reply), /^503 provider_unavailable/);
  t.match(reply.body.error.issues, [{ message: /status 503/ }]);
  t.equal(await readiness(by), 'degraded');
});
