import { randomUUID } from 'node:crypto';
import t from 'tap';
import type { AgentIntegration } from '../../../api/integrations/schema.ts';
import {
  agentPath,
  expectSuccess,
  type Fields,
  type HeldRun,
  ownerPath,
  refusalOf,
  runTask,
  sqlOf,
  workerOf,
} from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import {
  authorizationEpoch,
  createTestOrganization,
  type ProfileFields,
  type TestOrganization,
  updateOrganization,
  updateProfile,
} from '../../support/fixtures.ts';
import type { Client } from '../../support/http.ts';
import {
  account,
  allow,
  connect,
  createConnected,
  createIntegration,
  READ,
  WRITE,
} from '../../support/integration_fixtures.ts';
import { brokenInvariants } from '../../support/invariants.ts';
import { transition } from '../../support/transitions.ts';

const app = await startTestApp(t);
const sql = sqlOf(app);

type Resolved = Readonly<{
  integration: AgentIntegration;
  gateway: { capability: string; expiresAt: string; kind: string; url: string };
}>;
type World = Readonly<{ org: TestOrganization; id: string; run: HeldRun; agent: Client }>;

/** An organization with a connected integration, and a run whose profile may use it. */
async function world(
  fields: ProfileFields = {},
  policies = ['integrations.read', 'integrations.propose'],
): Promise<World> {
  const org = await createTestOrganization(sql, fields);
  await allow(sql, org, ...policies);
  const { id } = await createConnected(sql, org, { key: 'shop' });
  const run = await runTask(app, org);
  return { org, id, run, agent: app.owner.as(run.executionToken) };
}

const epochOf = ({ org }: World) => authorizationEpoch(sql, org.organizationId);

async function list(at: World, client: Client, query: Readonly<Record<string, string | number>> = {}) {
  const all = { authorizationEpoch: await epochOf(at), ...query };
  return client.get<AgentIntegration[]>(agentPath(at.org, '/integrations'), { query: all });
}
async function get(at: World, client: Client, ref = 'shop', epoch?: number) {
  const query = { authorizationEpoch: epoch ?? (await epochOf(at)) };
  return client.get<AgentIntegration>(agentPath(at.org, `/integrations/${ref}`), { query });
}
async function resolve(at: World, client: Client, fields: Fields = {}, headers: Record<string, string> = {}) {
  const body = { integrationKey: 'shop', authorizationEpoch: await epochOf(at), kind: 'cli', ...fields };
  return client.post<Resolved>(agentPath(at.org, '/integrations/resolve'), body, { headers });
}

t.test('an agent and the service see what may be used, and nothing of the connection', async (t) => {
  const at = await world();
  await createIntegration(sql, at.org, { key: 'a-first' });
  for (const client of [at.agent, app.service]) {
    const listed = await list(at, client);
    t.same(
      listed.data.map(({ key }) => key),
      ['a-first', 'shop'],
    );
    t.match(listed.data, [
      { available: false, unavailableReason: 'not_connected', capabilities: [] },
      { available: true },
    ]);
    const one = expectSuccess(await get(at, client));
    t.same(one, listed.data[1]);
    t.same(expectSuccess(await get(at, client, at.id)), one, 'by its id');
    t.same(
      one.capabilities.map(({ tool }) => tool),
      [READ.key, WRITE.key],
    );
    t.match(one, { readiness: 'ready', accessMode: 'full', departments: [], unavailableReason: null });
    t.notMatch(JSON.stringify(listed.body), /acme|account|settings|scopes|discovery/i);
    const first = await list(at, client, { limit: 1 });
    t.match(first.body.pagination, { limit: 1, hasNextPage: true });
    const second = await list(at, client, { limit: 1, cursor: first.body.pagination.nextCursor ?? '' });
    t.same(
      second.data.map(({ key }) => key),
      ['shop'],
    );
    const back = await list(at, client, { limit: 1, cursor: second.body.pagination.previousCursor ?? '' });
    t.same(back.data, first.data);
  }
});

t.test('another epoch than the current one is refused, and the issue names the current one', async (t) => {
  const at = await world();
  const epoch = await epochOf(at);
  for (const client of [at.agent, app.service]) {
    for (const stale of [epoch - 1, epoch + 1, 0]) {
      const replies = [
        await list(at, client, { authorizationEpoch: stale }),
        await get(at, client, 'shop', stale),
        await resolve(at, client, { authorizationEpoch: stale, runId: at.run.runId }),
      ];
      for (const reply of replies) {
        t.equal(refusalOf(reply), '409 state_conflict stale_epoch');
        t.match(reply.body.error.issues, [{ path: 'authorizationEpoch', message: `is ${epoch}` }]);
      }
    }
    const without = await client.get(agentPath(at.org, '/integrations'));
    t.match(refusalOf(without), /^400 validation_failed/);
  }
  await transition(sql.api, 'integration_status_set', {
    organizationId: at.org.organizationId,
    integrationRef: at.id,
    status: 'disabled',
  });
  t.equal(refusalOf(await get(at, at.agent, 'shop', epoch)), '409 state_conflict stale_epoch');
  t.match(expectSuccess(await get(at, at.agent)), {
    available: false,
    unavailableReason: 'disabled',
    capabilities: [],
  });
});

t.test('an execution gets a capability of its own each time, which is stored as a digest alone', async (t) => {
  const at = await world();
  const key = { 'idempotency-key': 'the-same' };
  const first = expectSuccess(await resolve(at, at.agent, {}, key));
  t.match(first, {
    integration: { id: at.id, key: 'shop', available: true },
    gateway: { kind: 'cli', url: `${app.url}/internal/cli/integrations/${at.id}` },
  });
  t.match(first.gateway.capability, /^[0-9a-f]{64}$/);
  const lives = new Date(first.gateway.expiresAt).getTime() - Date.now();
  t.ok(lives > 14 * 60_000 && lives <= 15 * 60_000 + 1_000);
  const again = await resolve(at, at.agent, {}, key);
  t.not(expectSuccess(again).gateway.capability, first.gateway.capability, 'an Idempotency-Key is ignored');
  t.equal(again.headers.get('idempotency-replayed'), null);
  const byService = expectSuccess(await resolve(at, app.service, { runId: at.run.runId, integrationKey: at.id }));
  t.match(byService, { integration: { id: at.id } });
  const { rows } = await app.database.owner.query(
    `select (to_jsonb(g)::text like '%' || $1 || '%') as told, g.run_id, g.connection_revision
     from app.integration_gateway_capabilities g where g.organization_id = $2`,
    [first.gateway.capability, at.org.organizationId],
  );
  t.same(rows, Array(3).fill({ told: false, run_id: at.run.runId, connection_revision: 1 }));
  t.notOk(JSON.stringify(app.logged).includes(first.gateway.capability));
  const { rows: kept } = await app.database.owner.query('select count(*)::int as n from app.idempotency_keys');
  t.same(kept, [{ n: 0 }]);
});

t.test('the address of the gateway is that of PUBLIC_URL where there is one', async (t) => {
  const at = await world();
  const integrations = { ...app.config.integrations, publicUrl: 'https://runner.example/base' };
  const behind = await startTestApp(t, { database: app.database, config: { integrations } });
  const reply = await resolve(at, behind.owner.as(at.run.executionToken));
  t.match(expectSuccess(reply).gateway, { url: `https://runner.example/base/internal/cli/integrations/${at.id}` });
});

t.test('a resolve that names no active run, or another one, is refused', async (t) => {
  const at = await world({ maxConcurrentRuns: 5 });
  const other = await runTask(app, at.org);
  t.equal(refusalOf(await resolve(at, app.service)), '400 validation_failed required');
  t.match(refusalOf(await resolve(at, app.service, { runId: 'no id' })), /^400 validation_failed/);
  t.match(refusalOf(await resolve(at, at.agent, { kind: 'ftp' })), /^400 validation_failed/);
  t.match(refusalOf(await resolve(at, at.agent, { integrationKey: 'No Key' })), /^400 validation_failed/);
  t.equal(refusalOf(await resolve(at, app.service, { runId: randomUUID() })), '409 state_conflict run_not_active');
  t.equal(refusalOf(await resolve(at, at.agent, { runId: other.runId })), '409 state_conflict run_not_active');
  expectSuccess(await resolve(at, at.agent, { runId: at.run.runId }));
  expectSuccess(await workerOf(app, at.run).fail());
  t.equal(refusalOf(await resolve(at, app.service, { runId: at.run.runId })), '409 state_conflict run_not_active');
  for (const reply of [await resolve(at, at.agent), await list(at, at.agent), await get(at, at.agent)]) {
    t.equal(refusalOf(reply), '401 agent_unauthorized', 'an execution that is over');
  }
});

t.test('a lost lease ends what its execution may see and resolve', async (t) => {
  const at = await world();
  await app.database.owner.query(
    `update app.run_requests set lease_expires_at = clock_timestamp() - interval '1 second' where run_id = $1`,
    [at.run.runId],
  );
  for (const reply of [await resolve(at, at.agent), await list(at, at.agent)]) {
    t.equal(refusalOf(reply), '401 agent_unauthorized');
  }
});

t.test('an integration that is not available to the profile is not resolved, and the issue says why', async (t) => {
  const cases: readonly (readonly [string, (at: World) => Promise<unknown>, Partial<ProfileFields>?, string[]?])[] = [
    ['disabled', (at) => change(at, 'status', { status: 'disabled' })],
    ['not_connected', (at) => transition(sql.api, 'integration_disconnect', { ...place(at), integrationRef: at.id })],
    [
      'provider_forbidden',
      (at) => updateOrganization(sql.api, at.org, { constraints: { allowedIntegrations: ['mcp'] } }),
    ],
    ['department', (at) => change(at, '', { departments: ['support'] }), { kind: 'department', key: 'growth' }],
    ['tool_policy', async () => undefined, {}, ['context.read']],
  ];
  const place = (at: World) => ({ organizationId: at.org.organizationId });
  const change = (at: World, rest: string, body: Fields) =>
    app.owner.patch(ownerPath(at.org, `/integrations/shop${rest === '' ? '' : `/${rest}`}`), body);
  for (const [reason, make, fields, policies] of cases) {
    const at = await world(fields, policies);
    await make(at);
    t.match(
      expectSuccess(await get(at, at.agent)),
      { available: false, unavailableReason: reason, capabilities: [] },
      reason,
    );
    for (const [client, runId] of [
      [at.agent, undefined],
      [app.service, at.run.runId],
    ] as const) {
      const reply = await resolve(at, client, runId ? { runId } : {});
      t.equal(refusalOf(reply), `409 state_conflict ${reason}`);
    }
  }
});

t.test('a disabled profile has no execution that could ask', async (t) => {
  const at = await world();
  await updateProfile(sql.api, at.org, { status: 'disabled' });
  for (const reply of [await resolve(at, at.agent), await list(at, at.agent), await get(at, at.agent)]) {
    t.equal(refusalOf(reply), '401 agent_unauthorized');
  }
});

t.test('a profile sees the tools that its policies cover, and resolves git by one of git', async (t) => {
  const reader = await world({}, ['integrations.read']);
  t.same(
    expectSuccess(await get(reader, reader.agent)).capabilities.map(({ tool }) => tool),
    [READ.key],
  );
  t.equal(refusalOf(await resolve(reader, reader.agent, { kind: 'git' })), '409 state_conflict tool_policy');
  const git = await world({}, ['git.read']);
  t.same(expectSuccess(await get(git, git.agent)).capabilities, []);
  t.equal(refusalOf(await resolve(git, git.agent)), '409 state_conflict tool_policy');
  t.equal(refusalOf(await resolve(git, git.agent, { kind: 'git' })), '409 state_conflict no_git');
  const code = await createConnected(sql, git.org, { key: 'code', provider: 'github' });
  t.match(expectSuccess(await resolve(git, git.agent, { kind: 'git', integrationKey: 'code' })).gateway, {
    kind: 'git',
    url: `${app.url}/internal/git/integrations/${code.id}`,
  });
});

t.test('a provider that fails is ready to agents; one that needs settings or authorization is not', async (t) => {
  const at = await world();
  const { organizationId } = at.org;
  await transition(sql.api, 'integration_health_mark', {
    organizationId,
    integrationId: at.id,
    connectionRevision: 1,
    health: { code: 'provider_unavailable' },
    checkSeconds: 60,
  });
  t.match(expectSuccess(await get(at, at.agent)), { readiness: 'ready', available: true });
  const { id } = await createIntegration(sql, at.org, { key: 'unset', settingsRequired: true });
  await connect(sql.api, at.org, id, account('acme'));
  t.match(expectSuccess(await get(at, at.agent, 'unset')), { unavailableReason: 'needs_configuration' });
  await transition(sql.api, 'integration_reauthorization_mark', {
    organizationId,
    integrationId: at.id,
    connectionRevision: 1,
    tokenVersion: null,
    reason: 'revoked',
  });
  const reply = await resolve(at, at.agent);
  t.equal(refusalOf(reply), '409 state_conflict needs_reauthorization');
});

t.test('what is another organization’s is not there', async (t) => {
  const [at, other] = [await world(), await world()];
  await createIntegration(sql, other.org, { key: 'theirs' });
  for (const client of [at.agent, app.service]) {
    for (const ref of ['theirs', other.id]) {
      t.equal(refusalOf(await get(at, client, ref)), '404 not_found');
      const reply = await resolve(at, client, { integrationKey: ref, runId: at.run.runId });
      t.equal(refusalOf(reply), '404 not_found');
    }
  }
  const abroad = { ...other, agent: at.agent };
  for (const reply of [await list(abroad, at.agent), await get(abroad, at.agent), await resolve(abroad, at.agent)]) {
    t.equal(refusalOf(reply), '401 agent_unauthorized', 'a capability of another organization');
  }
  t.equal(refusalOf(await resolve(abroad, app.service, { runId: at.run.runId })), '409 state_conflict run_not_active');
});

t.test('in a suspended organization integrations are read, and nothing is resolved', async (t) => {
  const at = await world();
  await updateOrganization(sql.api, at.org, { status: 'suspended' });
  t.equal(refusalOf(await resolve(at, app.service, { runId: at.run.runId })), '409 state_conflict suspended');
  expectSuccess(await list(at, app.service));
  expectSuccess(await get(at, app.service));
});

t.test('the database is consistent after all of it', async (t) => {
  t.same(await brokenInvariants(sql), {});
});
