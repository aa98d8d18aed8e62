import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import type * as Tap from 'tap';
import t from 'tap';
import type { Problem } from '../../../engine/db/problem.ts';
import {
  checkSettings,
  discover,
  lookUp,
  readIntegration,
  verifyCredential,
} from '../../../engine/integrations/index.ts';
import { sealFields } from '../../../engine/integrations/secrets.ts';
import { openAs } from '../../support/database.ts';
import { createTestOrganization, type TestOrganization } from '../../support/fixtures.ts';
import { account, connect, createIntegration } from '../../support/integration_fixtures.ts';
import { openSql } from '../../support/transitions.ts';
import { openServer } from '../providers/support.ts';
import { connectTokens, integrationConfig, openTestIntegrations } from './support.ts';

const sql = await openSql(t);
const db = openAs(sql.url, { role: 'runner_api', size: 4, applicationName: 'test api' });
t.teardown(() => db.end());
// It takes each request, and never responds.
const server = await openServer(t, () => undefined);
const origins = { 'https://api.lemonsqueezy.com': server.origin };
const integrations = openTestIntegrations(t, db, { origins });
const keys = integrationConfig({ origins: {} }).integrations.encryptionKeys;

const credential = { kind: 'api_key', apiKey: 'x'.repeat(40) };
const soon = { deadlineMs: 300 };

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

t.test('a provider that stalls shows no properties, and no collections', async (test) => {
  const stalled = openTestIntegrations(test, db, {
    origins: { 'https://analyticsadmin.googleapis.com': server.origin },
  });
  const tokenExpiresAt = new Date(Date.now() + 3_600_000).toISOString();
  const analytics = await connectTokens(
    sql,
    { access_token: 'token' },
    { keys, provider: 'google-analytics', facts: { tokenExpiresAt } },
  );
  const { organizationId, integrationId } = analytics.target;
  const integration = await readIntegration(stalled, { organizationId, integrationRef: integrationId });
  await stalls(test, lookUp(stalled, integration, soon), 'connection');

  const sockets: Socket[] = [];
  const silent = createServer((socket) => void sockets.push(socket.on('error', () => {})));
  silent.listen(0, '127.0.0.1');
  await once(silent, 'listening');
  test.teardown(() => {
    for (const socket of sockets) socket.destroy();
    silent.close();
  });
  const org = await createTestOrganization(sql);
  const { id } = await createIntegration(sql, org, { provider: 'mongodb', tools: [] });
  const { port } = silent.address() as AddressInfo;
  const mongo = {
    kind: 'mongodb',
    host: '127.0.0.1',
    port,
    srv: false,
    tls: false,
    username: 'reader',
    password: 'word',
  };
  const settings = { kind: 'mongodb', databaseName: 'shop', collections: ['orders'] };
  await stalls(test, lookUp(stalled, await read(org, id), { ...soon, credential: mongo, settings }), 'credential');
});
