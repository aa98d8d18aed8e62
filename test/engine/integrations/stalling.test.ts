import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import type * as Tap from 'tap';
import t from 'tap';
import type { Problem } from '../../../engine/db/problem.ts';
import {
  beginFlow,
  checkAuthorization,
  checkSettings,
  discover,
  lookUp,
  type OpenConnection,
  type ReadIntegration,
  readIntegration,
  refreshConnection,
  revokeGrant,
  startFlow,
  useConnection,
  verifyCredential,
} from '../../../engine/integrations/index.ts';
import { sealFields } from '../../../engine/integrations/secrets.ts';
import { providers } from '../../../engine/providers/index.ts';
import { ProviderError } from '../../../engine/providers/outgoing/index.ts';
import { openAs } from '../../support/database.ts';
import { createTestOrganization, type TestOrganization } from '../../support/fixtures.ts';
import { account, connect, createIntegration } from '../../support/integration_fixtures.ts';
import { openSql, transition } from '../../support/transitions.ts';
import { until } from '../../support/wait.ts';
import { openStandIn } from '../providers/mongo_stand_in.ts';
import { json, openServer } from '../providers/support.ts';
import { connectTokens, integrationConfig, openRotatingGithub, openTestIntegrations } from './support.ts';

const sql = await openSql(t);
const db = openAs(sql.url, { role: 'runner_api', size: 4, applicationName: 'test api' });
t.teardown(() => db.end());
// It takes each request, and never responds.
const server = await openServer(t, () => undefined);
const UPSTASH = 'https://stalling.upstash.io';
const stalling = [...[...providers.values()].flatMap(({ origins = [] }) => origins), UPSTASH];
const origins = Object.fromEntries(stalling.map((origin) => [origin, server.origin]));
const integrations = openTestIntegrations(t, db, { origins });
const keys = integrationConfig({ origins: {} }).integrations.encryptionKeys;

/** It understands nothing, and says nothing. */
async function openSilent(test: Tap.Test) {
  const sockets: Socket[] = [];
  const silent = createServer((socket) => void sockets.push(socket.on('error', () => {})));
  silent.listen(0, '127.0.0.1');
  await once(silent, 'listening');
  test.teardown(() => {
    for (const socket of sockets) socket.destroy();
    silent.close();
  });
  return { port: (silent.address() as AddressInfo).port, sockets };
}
const silent = await openSilent(t);

const credential = { kind: 'api_key', apiKey: 'x'.repeat(40) };
const soon = { deadlineMs: 300 };
/** What is left of 25 s for all else: saying goodbye to the server, and recording how it went. */
const REST_MS = 3_000;

const read = (org: TestOrganization, integrationRef: string) =>
  readIntegration(integrations, { organizationId: org.organizationId, integrationRef });

async function create() {
  const org = await createTestOrganization(sql);
  const { id } = await createIntegration(sql, org, { provider: 'lemon-squeezy', tools: [] });
  return { org, id };
}

async function createConnected() {
  const { org, id } = await create();
  const place = { organizationId: org.organizationId, integrationId: id, revision: 1 };
  const fields = new Map([['credential', JSON.stringify(credential)]]);
  const secrets = sealFields(keys, 'lemon-squeezy', place, fields);
  await connect(sql.api, org, id, account('shop', { grantedScopes: null }), { secrets });
  return { org, id };
}

async function stalls(test: Tap.Test, work: Promise<unknown>, path: string) {
  const problem = await work.then(
    () => undefined,
    (error: Problem) => error,
  );
  test.match(problem, {
    status: 503,
    code: 'provider_unavailable',
    issues: [{ path, code: 'unavailable', message: 'The provider did not respond in time.' }],
  });
  test.ok(Number(problem?.headers?.['Retry-After']) > 0);
}

t.test('a provider that stalls verifies no credential', async (test) => {
  const { org, id } = await create();
  const work = verifyCredential(integrations, await read(org, id), credential, soon);
  await stalls(test, work, 'credential');
  test.match((await read(org, id)).record, { readiness: 'not_connected', connection_revision: 0 });
});

t.test('a provider that stalls has nothing to choose from, by either credential', async (test) => {
  const { org, id } = await createConnected();
  await stalls(test, lookUp(integrations, await read(org, id), { ...soon, credential }), 'credential');
  test.match((await read(org, id)).record, { readiness: 'ready' }, 'that was another credential');
  await stalls(test, lookUp(integrations, await read(org, id), soon), 'connection');
  test.match((await read(org, id)).record, { readiness: 'degraded' });
});

t.test('a discovery that stalls is recorded as failed', async (test) => {
  const { org, id } = await createConnected();
  await stalls(test, discover(integrations, await read(org, id), soon), 'connection');
  test.match((await read(org, id)).record, { readiness: 'degraded' });
  const { rows } = await sql.owner.query(
    'select discovery_status, discovery_error from app.integrations where id = $1',
    [id],
  );
  test.match(rows, [{ discovery_status: 'failed', discovery_error: { code: 'provider_unavailable' } }]);
});

t.test('settings are not checked by a provider that stalls', async (test) => {
  const { org, id } = await createConnected();
  const settings = { kind: 'lemon_squeezy', storeIds: ['1'] };
  await stalls(test, checkSettings(integrations, await read(org, id), settings, soon), 'settings');
  test.equal((await read(org, id)).record.settings, null);
});

const mongoAt = (port: number) => {
  return {
    kind: 'mongodb',
    host: '127.0.0.1',
    port,
    srv: false,
    tls: false,
    username: 'reader',
    password: 'pass-word',
  };
};
const shop = { kind: 'mongodb', databaseName: 'shop', collections: ['orders'] };
const tokens = { access_token: 'token' };
const GRANT = '7'.repeat(64);

type Case = Readonly<{
  kind: string;
  fields: Readonly<Record<string, string>>;
  settings?: Readonly<Record<string, unknown>>;
}>;
const kept = (given: Readonly<{ kind: string } & Record<string, unknown>>, settings?: Case['settings']): Case => {
  return { kind: given.kind, fields: { credential: JSON.stringify(given) }, ...(settings ? { settings } : {}) };
};

/** A connection of each provider, as it is stored. */
const connections: Readonly<Record<string, Case>> = {
  github: kept({ kind: 'github_token', token: `github_pat_${'x'.repeat(30)}` }),
  'google-analytics': { kind: 'oauth2', fields: tokens },
  'google-workspace': { kind: 'oauth2', fields: tokens },
  'lemon-squeezy': kept(credential),
  mcp: { kind: 'none', fields: {}, settings: { kind: 'mcp', serverUrl: `${server.origin}/mcp` } },
  mongodb: kept(mongoAt(silent.port), shop),
  stripe: kept({ kind: 'api_key', apiKey: `rk_test_${'x'.repeat(30)}` }),
  'upstash-redis': kept(
    { kind: 'bearer_token', token: 'token-0123456789' },
    { kind: 'upstash_redis', restUrl: UPSTASH, keyScope: { kind: 'prefixes', prefixes: ['app:'] } },
  ),
  'x-ads': kept({ kind: 'oauth1', token: 'token', secret: 'secret', userId: '7', screenName: 'anna' }),
};

async function connectCase(provider: string, { kind, fields, settings }: Case) {
  const tokenExpiresAt = kind === 'oauth2' ? new Date(Date.now() + 3_600_000).toISOString() : null;
  const facts = {
    kind,
    tokenExpiresAt,
    grantedScopes: kind === 'oauth2' ? [] : null,
    ...(kind === 'none' ? { subjectHash: null } : {}),
    ...(kind.startsWith('oauth') ? { grantHash: GRANT } : {}),
  };
  const { target } = await connectTokens(sql, fields, { keys, provider, facts });
  const { organizationId, integrationId: integrationRef } = target;
  if (settings) {
    const args = {
      organizationId,
      integrationRef,
      connectionRevision: 1,
      settings,
      disconnect: false,
      forgetTools: false,
    };
    await transition(sql.api, 'integration_settings_put', args);
  }
  return readIntegration(integrations, { organizationId, integrationRef });
}

/** In its time, and what ends it is the time alone. */
async function stallsInTime(test: Tap.Test, what: string, work: () => Promise<unknown>, given: Partial<Stalled> = {}) {
  const { path = 'connection', deadlineMs = soon.deadlineMs } = given;
  const begin = performance.now();
  await stalls(test, work(), path);
  const took = performance.now() - begin;
  test.ok(took >= deadlineMs && took < deadlineMs + REST_MS, `${what}: ${Math.round(took)} ms`);
}
type Stalled = Readonly<{ path: string; deadlineMs: number }>;

t.test('each provider that stalls discovers nothing, and there is nothing to choose from', async (test) => {
  test.same(Object.keys(connections).sort(), [...providers.keys()].sort());
  for (const [key, given] of Object.entries(connections)) {
    const integration = await connectCase(key, given);
    await stallsInTime(test, key, () => discover(integrations, integration, soon));
    const { lookUp: choices } = integration.provider;
    if (choices) await stallsInTime(test, choices, () => lookUp(integrations, integration, soon));
  }
  const { fields, settings } = connections['mongodb'] as Case;
  const mongo = await connectCase('mongodb', { kind: 'mongodb', fields });
  const given = { ...soon, credential: JSON.parse(fields['credential'] ?? ''), settings };
  await stallsInTime(test, 'a credential', () => lookUp(integrations, mongo, given), { path: 'credential' });
});

/** Does it with a signal that is aborted once the provider is asked. */
async function leaves(work: (signal: AbortSignal) => Promise<unknown>): Promise<unknown> {
  const asked = () => server.calls.length + silent.sockets.length;
  const before = asked();
  const leaving = new AbortController();
  const outcome = work(leaving.signal).catch((error: unknown) => error);
  await until('the provider is asked', () => asked() > before);
  leaving.abort('left');
  return outcome;
}

t.test('who leaves a discovery, or stops in a check, says nothing of any provider', async (test) => {
  for (const [key, given] of Object.entries(connections)) {
    const integration = await connectCase(key, given);
    const { organizationId, provider, record } = integration;
    const target = { organizationId, integrationId: record.id, revision: record.connection_revision };
    const check = (signal: AbortSignal) =>
      useConnection(integrations, target, ({ context, access }) => provider.verify(context, access), {
        signal,
        isCheck: true,
      });
    const inOtherWords = (signal: AbortSignal) => {
      const brokeOff = () => Promise.reject(new ProviderError(key, 'unavailable', 'It broke off.'));
      const run = ({ context, access }: OpenConnection) => provider.verify(context, access).catch(brokeOff);
      return useConnection(integrations, target, run, { signal });
    };
    test.equal(await leaves((signal) => discover(integrations, integration, { signal })), 'left', `${key}: discovery`);
    test.equal(await leaves(check), 'left', `${key}: check`);
    test.equal(await leaves(inOtherWords), 'left', `${key}: in other words`);
    const after = await readIntegration(integrations, { organizationId, integrationRef: record.id });
    test.equal(after.record.readiness, record.readiness, key);
    test.not(record.readiness, 'degraded');
    const { rows } = await sql.owner.query('select discovery_status from app.integrations where id = $1', [record.id]);
    test.not(rows[0].discovery_status, 'failed', key);
  }
});

t.test('a process that stops while it refreshes tokens says nothing of the provider', async (test) => {
  const own = openTestIntegrations(test, db, { origins });
  const { org, target } = await connectTokens(sql, { access_token: 'a', refresh_token: 'r' }, { keys });
  const before = server.calls.length;
  const refreshing = refreshConnection(own, target, undefined).catch((error: unknown) => error);
  await until('the provider is asked', () => server.calls.length > before);
  await own.close();
  test.ok((await refreshing) instanceof Error);
  test.match((await read(org, target.integrationId)).record, { readiness: 'ready' });
});

t.test('a server that stalls in the middle of a session keeps nobody longer', async (test) => {
  const deadlineMs = 1_000;
  const server = await openStandIn(test, {
    username: 'reader',
    password: 'pass-word',
    stalls: (command) => 'listCollections' in command || 'endSessions' in command,
  });
  const mongo = await connectCase('mongodb', kept(mongoAt(server.port), shop));
  const half = await openServer(test, ({ method, body }, res) => {
    const rpc: unknown = method === 'POST' ? JSON.parse(body) : {};
    const { id, method: asked } = rpc as { id?: number; method?: string };
    if (asked === 'notifications/initialized') res.writeHead(202).end();
    if (asked !== 'initialize') return;
    res.setHeader('mcp-session-id', 'session');
    const serverInfo = { name: 'test', version: '1' };
    return { jsonrpc: '2.0', id, result: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo } };
  });
  const mcp = await connectCase('mcp', {
    kind: 'none',
    fields: {},
    settings: { kind: 'mcp', serverUrl: `${half.origin}/mcp` },
  });
  await Promise.all(
    [mongo, mcp].map((one) =>
      stallsInTime(test, one.provider.key, () => discover(integrations, one, { deadlineMs }), { deadlineMs }),
    ),
  );
  test.ok(server.commands.some((command) => 'listCollections' in command));
  test.match(
    half.calls.map(({ method }) => method),
    ['POST', 'POST', 'POST', 'DELETE'],
  );
});

const mcpAt = (serverUrl: string) =>
  connectCase('mcp', { kind: 'none', fields: {}, settings: { kind: 'mcp', serverUrl } });
const request = { services: [], accessMode: 'read_only', replaceAccount: false, starter: null } as const;
const redirectUri = () => 'https://runner.example/callback';

/** The button of the page of an authorization that was started. */
async function press(integration: ReadIntegration, options: Readonly<{ deadlineMs?: number }> = {}) {
  const { ticket } = await startFlow(db.of(integration.organizationId), integration, request);
  return beginFlow(integrations, ticket, { redirectUri, ...options });
}

/** A server that says how it is authorized, each time after a while, and registers nobody. */
async function openSlow(test: Tap.Test, ms: number) {
  const slow = await openServer(test, async ({ url: { pathname } }, res) => {
    await pause(ms);
    const { origin } = slow;
    if (pathname === '/mcp') return void json(res, 401, {});
    if (pathname.includes('protected-resource')) return { resource: `${origin}/mcp`, authorization_servers: [origin] };
    if (pathname === '/register') return undefined;
    return {
      issuer: origin,
      authorization_endpoint: `${origin}/authorize`,
      token_endpoint: `${origin}/token`,
      registration_endpoint: `${origin}/register`,
      code_challenge_methods_supported: ['S256'],
    };
  });
  return slow;
}

t.test('an authorization whose server takes its time at each step neither starts nor begins', async (test) => {
  const slow = await openSlow(test, soon.deadlineMs / 2);
  const integration = await mcpAt(`${slow.origin}/mcp`);
  await stallsInTime(test, 'start', () => checkAuthorization(integrations, integration, request, soon));
  await stallsInTime(test, 'begin', () => press(integration, soon));
  const quick = await openSlow(test, 0);
  const known = await mcpAt(`${quick.origin}/mcp`);
  const deadlineMs = 1_000;
  await stallsInTime(test, 'registration', () => press(known, { deadlineMs }), { deadlineMs });
  test.equal(quick.calls.filter(({ url }) => url.pathname === '/register').length, 1);
  const xAds = await connectCase('x-ads', connections['x-ads'] as Case);
  await stallsInTime(test, 'OAuth 1.0a', () => press(xAds, soon));
});

t.test('a grant whose provider stalls is not revoked, and nobody waits for that', async (test) => {
  for (const key of ['github', 'x-ads']) {
    const integration = await connectCase(
      key,
      key === 'x-ads' ? (connections[key] as Case) : { kind: 'oauth2', fields: tokens },
    );
    const begin = performance.now();
    test.match(await revokeGrant(integrations, integration, soon), { revoked: false });
    const took = performance.now() - begin;
    test.ok(took >= soon.deadlineMs && took < soon.deadlineMs + REST_MS, `${key}: ${Math.round(took)} ms`);
  }
});

t.test('a grant is revoked by the token that there is while another process refreshes it', async (test) => {
  const { state, origins: github } = await openRotatingGithub(test);
  const own = openTestIntegrations(test, db, { origins: github });
  const known = { access_token: 'access-0', refresh_token: 'refresh-0' };
  const tokenExpiresAt = new Date(Date.now() + 30_000).toISOString();
  const { target } = await connectTokens(sql, known, { keys, facts: { grantHash: GRANT, tokenExpiresAt } });
  const { organizationId, integrationId, revision: connectionRevision } = target;
  const lease = { connectionRevision, tokenVersion: 1, leaseId: randomUUID(), seconds: 30 };
  await transition(sql.api, 'integration_refresh_lease', { organizationId, integrationId, ...lease });
  const integration = await readIntegration(own, { organizationId, integrationRef: integrationId });
  test.match(await revokeGrant(own, integration, { deadlineMs: 2_000 }), { revoked: true });
  test.match(state, { grants: 0, refreshes: 0 });
});

t.test('who waits has a response within 25 s', async (test) => {
  const within = AbortSignal.timeout;
  const asked: number[] = [];
  test.intercept(AbortSignal, 'timeout', {
    value(ms: number) {
      asked.push(ms);
      return within(Math.min(ms, soon.deadlineMs));
    },
  });
  const { org, id } = await createConnected();
  const integration = await read(org, id);
  const path = 'credential';
  await stallsInTime(test, 'discover', () => discover(integrations, integration));
  await stallsInTime(test, 'look up', () => lookUp(integrations, integration));
  await stallsInTime(test, 'a credential', () => lookUp(integrations, integration, { credential }), { path });
  await stallsInTime(test, 'verify', () => verifyCredential(integrations, integration, credential), { path });
  const mcp = await mcpAt(`${server.origin}/mcp`);
  await stallsInTime(test, 'start', () => checkAuthorization(integrations, mcp, request));
  await stallsInTime(test, 'begin', () => press(mcp));
  const github = await connectCase('github', { kind: 'oauth2', fields: tokens });
  test.match(await revokeGrant(integrations, github), { revoked: false });
  test.ok(asked.length >= 7, String(asked));
  test.ok(Math.max(...asked) <= 25_000 - REST_MS, String(asked));
});
