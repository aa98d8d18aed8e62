import { randomUUID } from 'node:crypto';
import t from 'tap';
import {
  authorizationEpoch,
  cancelTask,
  capability,
  completeRun,
  createTestOrganization,
  endLease,
  type ProfileFields,
  runNew,
  SERVICE,
  sha256,
  type TestOrganization,
  updateOrganization,
  updateProfile,
} from '../../support/fixtures.ts';
import {
  account,
  allow,
  connect,
  createConnected,
  createIntegration,
  READ,
  type ResolveFields,
  resolveGateway,
  WRITE,
} from '../../support/integration_fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { type JsonObject, openSql, refusal, transition } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const unauthorized = { status: 401, code: 'agent_unauthorized' };

function conflict(reason: string) {
  return { status: 409, code: 'state_conflict', reason };
}

/** An organization whose profile has what integrations ask for, and a connected integration. */
async function world(fields: ProfileFields = {}, ...policies: string[]) {
  const org = await createTestOrganization(sql, fields);
  await allow(sql, org, ...(policies.length > 0 ? policies : ['integrations.read', 'integrations.propose']));
  const integration = await createConnected(sql, org, { key: 'shop' });
  return { org, id: integration.id };
}

async function seen(org: TestOrganization, actor: JsonObject, integrationRef = 'shop') {
  const { integration } = await transition(sql.api, 'integration_agent_get', {
    organizationId: org.organizationId,
    actor,
    authorizationEpoch: await authorizationEpoch(sql, org.organizationId),
    integrationRef,
  });
  return integration as Readonly<{
    available: boolean;
    unavailableReason: string | null;
    readiness: string;
    capabilities: readonly { tool: string }[];
  }>;
}

async function tools(org: TestOrganization, actor: JsonObject) {
  return (await seen(org, actor)).capabilities.map((found) => found.tool);
}

/** Why the only profile of its organization may not use an integration. */
async function unavailable(integrationId: string): Promise<unknown> {
  const { rows } = await sql.owner.query(
    `select app.integration_unavailable(i, c, p, o.constraints -> 'allowedIntegrations') as reason
     from app.integrations i
       join app.organizations o on o.id = i.organization_id
       join app.agent_profiles p using (organization_id)
       left join app.integration_connections c on c.organization_id = o.id and c.integration_id = i.id
     where i.id = $1`,
    [integrationId],
  );
  return rows[0].reason;
}

function check(org: TestOrganization, integrationId: string, token: string, kind = 'cli') {
  return transition(sql.api, 'integration_capability_check', {
    organizationId: org.organizationId,
    tokenHash: sha256(token),
    integrationId,
    kind,
  });
}

scenario('an agent sees what it may do, by its policies, and nothing of the connection', async (test) => {
  const { org, id } = await world();
  const run = await runNew(sql, org);
  const agent = capability(run.executionToken);
  test.same(await tools(org, agent), [READ.key, WRITE.key]);
  const found = await seen(org, agent);
  test.match(found, {
    readiness: 'ready',
    available: true,
    unavailableReason: null,
    accessMode: 'full',
    departments: [],
  });
  test.notMatch(JSON.stringify(found), /account|subject|grant|scope|settings|connection/i);
  await allow(sql, org, 'integrations.read');
  test.same(await tools(org, agent), [READ.key]);
  await allow(sql, org, 'context.read');
  test.match(await seen(org, agent), { available: false, unavailableReason: 'tool_policy', capabilities: [] });
  test.same(await tools(org, SERVICE), [READ.key, WRITE.key], 'the service asks for nobody');
  await transition(sql.api, 'integration_health_mark', {
    organizationId: org.organizationId,
    integrationId: id,
    connectionRevision: 1,
    health: { code: 'provider_failed' },
    checkSeconds: 60,
  });
  test.match(await seen(org, SERVICE), { available: true, readiness: 'ready' }, 'no live health');
});

scenario('an integration of a department is its profiles’ alone, and the operator’s', async (test) => {
  const growth = await world({ kind: 'department', department: 'growth' });
  const operator = await world();
  for (const [{ org, id }, departments, available] of [
    [growth, ['growth'], true],
    [growth, [], true],
    [growth, ['engineering'], false],
    [operator, ['engineering'], true],
  ] as const) {
    await transition(sql.api, 'integration_update', {
      organizationId: org.organizationId,
      integrationRef: id,
      patch: { departments },
    });
    const agent = capability((await runNew(sql, org)).executionToken);
    const reason = available ? null : 'department';
    test.match(await seen(org, agent), { available, unavailableReason: reason }, departments.join());
  }
});

scenario('what is off, not connected or not allowed is not available, and says why', async (test) => {
  const { org, id } = await world();
  const { organizationId } = org;
  const at = { organizationId, integrationRef: id };
  const why = async () => (await seen(org, SERVICE)).unavailableReason;
  await transition(sql.api, 'integration_status_set', { ...at, status: 'disabled' });
  test.equal(await why(), 'disabled');
  await transition(sql.api, 'integration_status_set', { ...at, status: 'enabled' });
  await updateOrganization(sql.api, org, { constraints: { allowedIntegrations: ['github'] } });
  test.equal(await why(), 'provider_forbidden');
  await updateOrganization(sql.api, org, { constraints: { allowedIntegrations: [] } });
  const mark = { organizationId, integrationId: id, connectionRevision: 1, tokenVersion: null, reason: 'revoked' };
  await transition(sql.api, 'integration_reauthorization_mark', mark);
  test.equal(await why(), 'needs_reauthorization');
  await transition(sql.api, 'integration_disconnect', at);
  test.equal(await why(), 'not_connected');
  await createIntegration(sql, org, { key: 'later', settingsRequired: true });
  await connect(sql.api, org, 'later');
  test.match(await seen(org, SERVICE, 'later'), { unavailableReason: 'needs_configuration' });
});

scenario(
  'whatever decides if a profile may use an integration raises the epoch, and nothing else does',
  async (test) => {
    const { org, id } = await world({ kind: 'department', department: 'growth' });
    const { organizationId } = org;
    const at = { organizationId, integrationRef: id };
    const profile = (patch: JsonObject) => () => updateProfile(sql.api, org, patch);
    const allowed = (allowedIntegrations: readonly string[]) => () =>
      updateOrganization(sql.api, org, { constraints: { allowedIntegrations } });
    const status = (to: string) => () => transition(sql.api, 'integration_status_set', { ...at, status: to });
    const departments = (...to: string[]) => {
      return () => transition(sql.api, 'integration_update', { ...at, patch: { departments: to } });
    };
    const health = { code: 'provider_failed' };
    const found = { organizationId, integrationId: id, connectionRevision: 1 };
    const steps: readonly (readonly [string, () => Promise<unknown>, number, string | null])[] = [
      ['the departments of the integration', departments('growth'), 1, null],
      ['the department of the profile', profile({ department: 'engineering' }), 1, 'department'],
      ['the same again', profile({ department: 'engineering' }), 0, 'department'],
      ['the kind of the profile', profile({ kind: 'chat', department: null }), 1, null],
      ['its kind alone', profile({ kind: 'operator' }), 1, null],
      ['back to a department', profile({ kind: 'department', department: 'growth' }), 1, null],
      ['its name, key and limits', profile({ name: 'B', key: 'b', config: { maxConcurrentRuns: 2 } }), 0, null],
      ['its status', profile({ status: 'disabled' }), 1, 'profile_disabled'],
      ['its status back', profile({ status: 'enabled' }), 1, null],
      ['its policies', () => allow(sql, org, 'context.read'), 1, 'tool_policy'],
      ['its policies back', () => allow(sql, org, 'git.read'), 1, null],
      ['what the organization allows', allowed(['github']), 1, 'provider_forbidden'],
      ['what it allows, back', allowed([]), 1, null],
      ['the status of the integration', status('disabled'), 1, 'disabled'],
      ['its status back, too', status('enabled'), 1, null],
      [
        'a provider that fails',
        () => transition(sql.api, 'integration_health_mark', { ...found, health, checkSeconds: 60 }),
        0,
        null,
      ],
      [
        'an authorization that is over',
        () =>
          transition(sql.api, 'integration_reauthorization_mark', { ...found, tokenVersion: null, reason: 'revoked' }),
        1,
        'needs_reauthorization',
      ],
      ['the connection', () => transition(sql.api, 'integration_disconnect', at), 1, 'not_connected'],
    ];
    for (const [name, change, raises, reason] of steps) {
      const before = await authorizationEpoch(sql, organizationId);
      await change();
      test.same(
        [(await authorizationEpoch(sql, organizationId)) - before, await unavailable(id)],
        [raises, reason],
        name,
      );
    }
    const later = await createIntegration(sql, org, { key: 'later', settingsRequired: true });
    await connect(sql.api, org, 'later');
    test.equal(await unavailable(later.id), 'needs_configuration');
    const before = await authorizationEpoch(sql, organizationId);
    const settings = {
      organizationId,
      integrationRef: 'later',
      connectionRevision: 1,
      settings: { kind: 'a' },
      disconnect: false,
      forgetTools: false,
    };
    await transition(sql.api, 'integration_settings_put', settings);
    test.same([(await authorizationEpoch(sql, organizationId)) - before, await unavailable(later.id)], [1, null]);
  },
);

scenario('scopes that were not granted leave their tools out', async (test) => {
  const { org, id } = await world();
  const fewer = account('acme', { grantedScopes: ['read'] });
  await connect(sql.api, org, id, fewer, { revision: 1, nextRevision: 2 });
  test.same(await tools(org, SERVICE), [READ.key]);
  const untold = account('acme', { grantedScopes: null });
  await connect(sql.api, org, id, untold, { revision: 2, nextRevision: 2 });
  test.same(await tools(org, SERVICE), [READ.key, WRITE.key], 'a provider that tells no scopes refuses none');
});

scenario('another epoch, tenant or execution is refused', async (test) => {
  const { org } = await world();
  const other = await world();
  const { organizationId } = org;
  const run = await runNew(sql, org);
  const epoch = await authorizationEpoch(sql, organizationId);
  const list = (actor: JsonObject, fields: Readonly<{ organizationId?: string; authorizationEpoch?: number }> = {}) =>
    transition(sql.api, 'integrations_for_agent', {
      organizationId,
      actor,
      authorizationEpoch: epoch,
      key: null,
      inclusive: false,
      backward: false,
      limit: 20,
      ...fields,
    });
  const agent = capability(run.executionToken);
  test.match(await list(agent), { integrations: [{ key: 'shop' }] });
  const stale = await refusal(list(agent, { authorizationEpoch: epoch - 1 }));
  test.match(stale, { ...conflict('stale_epoch'), issues: [{ message: `is ${epoch}` }] });
  const elsewhere = { organizationId: other.org.organizationId };
  test.match(await refusal(list(agent, elsewhere)), unauthorized);
  test.match(await refusal(list(SERVICE, { organizationId: randomUUID() })), { code: 'organization_not_found' });
  test.match(await refusal(list(capability('nothing'))), unauthorized);
  await endLease(sql, run);
  test.match(await refusal(list(agent)), unauthorized);
  const foreign = await createIntegration(sql, other.org, { key: 'theirs' });
  for (const ref of ['theirs', foreign.id]) {
    test.match(await refusal(seen(org, SERVICE, ref)), { code: 'integration_not_found' });
  }
});

scenario('an execution resolves a capability, which opens its own integration and gateway', async (test) => {
  const { org, id } = await world();
  const run = await runNew(sql, org);
  const resolve = (fields: ResolveFields) => resolveGateway(sql, org, 'shop', fields);
  const [token, served] = [randomUUID(), randomUUID()];
  const actor = capability(run.executionToken);
  test.match(await resolve({ actor, token }), {
    integration: { key: 'shop' },
    gateway: { integrationId: id, kind: 'cli' },
  });
  await resolve({ runId: run.runId, token: served });
  for (const given of [token, served]) {
    test.match(await check(org, id, given), {
      execution: { runId: run.runId, taskId: run.taskId, mode: 'execute', agentProfileId: org.profileId },
      integration: { key: 'shop', connectionRevision: 1, accessMode: 'full' },
      policies: ['integrations.read', 'integrations.propose'],
    });
  }
  const found = await transition(sql.api, 'integration_capability_find', { tokenHash: sha256(token) });
  test.same(found, { organizationId: org.organizationId });
  test.same(await transition(sql.api, 'integration_capability_find', { tokenHash: sha256('nothing') }), {});
  test.match(await refusal(check(org, id, token, 'git')), unauthorized);
  test.match(await refusal(check(org, id, 'nothing')), unauthorized);
  const other = await world();
  test.match(await refusal(check(org, other.id, token)), unauthorized);
  test.match(await refusal(check(other.org, id, token)), unauthorized);
  test.match(await refusal(resolve({})), { status: 400, reason: 'required' });
  test.match(await refusal(resolve({ runId: randomUUID() })), conflict('run_not_active'));
  test.match(await refusal(resolve({ actor, runId: randomUUID() })), conflict('run_not_active'), 'its own alone');
  test.match(await refusal(resolveGateway(sql, other.org, 'shop', { actor })), unauthorized);
  test.match(await refusal(resolve({ actor, authorizationEpoch: 1 })), conflict('stale_epoch'));
  test.match(await refusal(resolve({ actor, kind: 'git' })), conflict('tool_policy'));
});

scenario('every call checks the capability anew', async (test) => {
  const ends: Readonly<
    Record<string, (org: TestOrganization, id: string, run: Awaited<ReturnType<typeof runNew>>) => Promise<unknown>>
  > = {
    'its lease ends': (_org, _id, run) => endLease(sql, run),
    'its run ends': (_org, _id, run) => completeRun(sql.api, run),
    'its task is cancelled': (org, _id, run) => cancelTask(sql.api, org, run.taskId ?? ''),
    'its profile is disabled': (org) => updateProfile(sql.api, org, { status: 'disabled' }),
    'its time is over': (_org, id) =>
      sql.owner.query('update app.integration_gateway_capabilities set expires_at = now() where integration_id = $1', [
        id,
      ]),
  };
  for (const [name, end] of Object.entries(ends)) {
    const { org, id } = await world();
    const run = await runNew(sql, org);
    const token = randomUUID();
    await resolveGateway(sql, org, id, { runId: run.runId, token });
    await check(org, id, token);
    await end(org, id, run);
    test.match(await refusal(check(org, id, token)), unauthorized, name);
  }
  const changes: Readonly<Record<string, (org: TestOrganization, id: string) => Promise<unknown>>> = {
    'a policy is taken away': (org) => allow(sql, org, 'context.read'),
    'the connection is replaced': (org, id) =>
      connect(sql.api, org, id, account('other'), { revision: 1, replaceAccount: true }),
    'it is disabled': ({ organizationId }, id) =>
      transition(sql.api, 'integration_status_set', { organizationId, integrationRef: id, status: 'disabled' }),
  };
  for (const [name, change] of Object.entries(changes)) {
    const { org, id } = await world();
    const run = await runNew(sql, org);
    const token = randomUUID();
    await resolveGateway(sql, org, id, { runId: run.runId, token });
    await change(org, id);
    test.match(await refusal(check(org, id, token)), conflict('stale_epoch'), name);
  }
});

scenario('git is of task runs that do not verify, by its own policy', async (test) => {
  const { org, id } = await world({}, 'git.read');
  const run = await runNew(sql, org);
  const token = randomUUID();
  await resolveGateway(sql, org, id, { runId: run.runId, kind: 'git', token });
  test.match(await check(org, id, token, 'git'), { policies: ['git.read'] });
  test.match(await refusal(resolveGateway(sql, org, id, { runId: run.runId })), conflict('tool_policy'));
  const elsewhere = { runId: run.runId, kind: 'git', gitProviders: ['another'] };
  test.match(await refusal(resolveGateway(sql, org, id, elsewhere)), conflict('no_git'));
});

scenario('an execution has a hundred capabilities at once, and no more', async (test) => {
  const { org, id } = await world();
  const run = await runNew(sql, org);
  const token = randomUUID();
  const resolve = () => resolveGateway(sql, org, id, { runId: run.runId });
  await resolveGateway(sql, org, id, { runId: run.runId, token });
  await sql.owner.query(
    `insert into app.integration_gateway_capabilities (organization_id, token_hash, integration_id, agent_profile_id, run_id, kind,
       connection_revision, authorization_epoch, expires_at)
     select organization_id, encode(sha256(n::text::bytea), 'hex'), integration_id, agent_profile_id, run_id, kind,
       connection_revision, authorization_epoch, expires_at
     from app.integration_gateway_capabilities, generate_series(1, 98) n where token_hash = $1`,
    [sha256(token)],
  );
  await resolve();
  test.match(await refusal(resolve()), conflict('too_many_capabilities'));
  await sql.owner.query('update app.integration_gateway_capabilities set expires_at = now() where token_hash = $1', [
    sha256(token),
  ]);
  test.match(await resolve(), { gateway: { integrationId: id } });
});

scenario('what ended an hour ago is removed, and nothing else', async (test) => {
  const { org, id } = await world();
  const run = await runNew(sql, org);
  const [old, fresh] = [randomUUID(), randomUUID()];
  for (const token of [old, fresh]) await resolveGateway(sql, org, id, { runId: run.runId, token });
  await sql.owner.query(
    `update app.integration_gateway_capabilities set expires_at = now() - interval '61 minutes' where token_hash = $1`,
    [sha256(old)],
  );
  await transition(sql.jobs, 'integration_flows_clean', { rows: 1000 });
  const { rows } = await sql.owner.query(
    'select token_hash from app.integration_gateway_capabilities where integration_id = $1',
    [id],
  );
  test.same(rows, [{ token_hash: sha256(fresh) }]);
});
