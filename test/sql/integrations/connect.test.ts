import { randomUUID } from 'node:crypto';
import t from 'tap';
import { authorizationEpoch, createTestOrganization, updateOrganization } from '../../support/fixtures.ts';
import {
  account,
  connect,
  createConnected,
  createIntegration,
  integrationOf,
  readIntegration,
  sealed,
} from '../../support/integration_fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSession, openSql, refusal, transition } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const missing = { status: 404, code: 'integration_not_found' };
const moved = { status: 409, code: 'integration_conflict', reason: 'revision_moved' };

scenario('a credential connects, and its secrets are read by the revision alone', async (test) => {
  const org = await createTestOrganization(sql);
  const { id, readiness } = await createIntegration(sql, org);
  test.equal(readiness, 'not_connected');
  const connected = integrationOf(await connect(sql.api, org, id));
  test.match(connected, { readiness: 'ready', connection: { kind: 'api_key', account_label: '…acme', revision: 1 } });
  test.notMatch(JSON.stringify(connected), /subject|grant_hash|ciphertext|wrapped/);
  const { organizationId } = org;
  const read = (connectionRevision: number) =>
    transition(sql.api, 'integration_secrets_read', { organizationId, integrationId: id, connectionRevision });
  const { field, ...stored } = sealed('credential');
  test.match(await read(1), { secrets: [{ field, revision: 1, ...stored }], integration: { readiness: 'ready' } });
  test.match(await refusal(read(0)), moved);
  const foreign = await createTestOrganization(sql);
  test.match(await refusal(connect(sql.api, foreign, id)), missing);
  test.match(await refusal(connect(sql.api, { ...org, organizationId: randomUUID() }, id)), {
    status: 404,
    code: 'organization_not_found',
  });
});

scenario('the same account keeps the revision, another one has to be asked for', async (test) => {
  const org = await createTestOrganization(sql);
  const { id } = await createConnected(sql, org);
  const plan = (facts: Record<string, unknown>) =>
    transition(sql.api, 'integration_connection_plan', {
      organizationId: org.organizationId,
      integrationRef: id,
      connection: facts,
    });
  test.same(await plan(account('acme')), { nextRevision: 1 });
  test.same(await plan(account('other')), { nextRevision: 2 });
  const fewer = account('acme', { grantedScopes: ['read'] });
  test.same(await plan(fewer), { nextRevision: 2 }, 'scopes that enabled tools need are gone');
  const epoch = await authorizationEpoch(sql, org.organizationId);
  const again = await connect(sql.api, org, id, account('acme'), { revision: 1, nextRevision: 1 });
  test.equal(integrationOf(again).connection_revision, 1);
  test.equal(await authorizationEpoch(sql, org.organizationId), epoch, 'nothing that agents may do has changed');
  const other = { revision: 1, nextRevision: 2 };
  test.match(await refusal(connect(sql.api, org, id, account('other'), other)), {
    status: 409,
    code: 'integration_account_differs',
  });
  test.match(await refusal(connect(sql.api, org, id, account('acme'), other)), moved, 'planned for another state');
  const replaced = await connect(sql.api, org, id, account('other'), { ...other, replaceAccount: true });
  test.match(integrationOf(replaced), { connection_revision: 2, connection: { account_label: '…other' } });
  test.equal(await authorizationEpoch(sql, org.organizationId), epoch + 1);
  test.match(await refusal(connect(sql.api, org, id, account('acme'), { revision: 1 })), moved);
});

scenario('of two that connect at once one does, and a disconnect in between wins', async (test) => {
  const org = await createTestOrganization(sql);
  const { id } = await createIntegration(sql, org);
  const session = await openSession(test, sql);
  const rival = await openSession(test, sql);
  await session.begin();
  await connect(session, org, id, account('first'));
  const second = refusal(connect(rival, org, id, account('second')));
  await rival.waits();
  await session.commit();
  test.match(await second, moved);
  test.match(await readIntegration(sql, org, id), { connection: { account_label: '…first' } });
  await session.begin();
  await transition(session, 'integration_disconnect', { organizationId: org.organizationId, integrationRef: id });
  const late = refusal(connect(rival, org, id, account('first'), { revision: 1, nextRevision: 1 }));
  await rival.waits();
  await session.commit();
  test.match(await late, moved);
  test.match(await readIntegration(sql, org, id), { connection: null, readiness: 'not_connected' });
});

scenario('a disconnect removes the secrets, and keeps settings and tools; a repeat changes nothing', async (test) => {
  const org = await createTestOrganization(sql);
  const { organizationId } = org;
  const { id } = await createConnected(sql, org);
  const settings = { kind: 'stripe' };
  await transition(sql.api, 'integration_settings_put', {
    organizationId,
    integrationRef: id,
    connectionRevision: 1,
    settings,
    disconnect: false,
    forgetTools: false,
  });
  const epoch = await authorizationEpoch(sql, organizationId);
  const disconnect = () => transition(sql.api, 'integration_disconnect', { organizationId, integrationRef: id });
  const gone = integrationOf(await disconnect());
  test.match(gone, { readiness: 'not_connected', connection: null, connection_revision: 2, settings });
  test.ok(gone.tools.every(({ enabled, unavailable_reason }) => enabled && unavailable_reason === 'not_connected'));
  test.equal(await authorizationEpoch(sql, organizationId), epoch + 1);
  test.equal(integrationOf(await disconnect()).connection_revision, 2);
  const { rows } = await sql.owner.query('select from app.integration_secrets where organization_id = $1', [
    organizationId,
  ]);
  test.equal(rows.length, 0);
  const foreign = { organizationId: (await createTestOrganization(sql)).organizationId, integrationRef: id };
  test.match(await refusal(transition(sql.api, 'integration_disconnect', foreign)), missing);
});

scenario('a provider that is not allowed is neither made nor connected', async (test) => {
  const org = await createTestOrganization(sql);
  const { id } = await createIntegration(sql, org);
  await updateOrganization(sql.api, org, { constraints: { allowedIntegrations: ['github'] } });
  const forbidden = { status: 403, code: 'provider_forbidden' };
  test.match(await refusal(createIntegration(sql, org)), forbidden);
  test.match(await refusal(connect(sql.api, org, id)), forbidden);
  await createIntegration(sql, org, { provider: 'github' });
});

scenario(
  'what is connected together is looked at a day later, spread out, and again after each connecting',
  async (test) => {
    const org = await createTestOrganization(sql);
    /** In hours, since it was connected. */
    const looks = async () => {
      const { rows } = await sql.owner.query<{ hours: number }>(
        `select extract(epoch from check_due_at - connected_at)::float8 / 3600 as hours
       from app.integration_connections where organization_id = $1 order by integration_id`,
        [org.organizationId],
      );
      return rows.map(({ hours }) => hours);
    };
    const ids: string[] = [];
    for (let made = 0; made < 8; made += 1) ids.push((await createConnected(sql, org)).id);
    const first = await looks();
    for (const id of ids) await connect(sql.api, org, id, account('acme'), { revision: 1, nextRevision: 1 });
    const again = await looks();
    for (const hours of [first, again]) {
      test.ok(Math.min(...hours) > 19 && Math.max(...hours) < 29, hours.join(' '));
      test.ok(Math.max(...hours) - Math.min(...hours) > 0.5, `all of them between ${hours.join(' ')}`);
    }
  },
);

scenario('a connection without secrets is one too', async (test) => {
  const org = await createTestOrganization(sql);
  const { id } = await createIntegration(sql, org, { provider: 'mcp', settingsRequired: true });
  const facts = { kind: 'none', grantedScopes: [] };
  const connected = await connect(sql.api, org, id, facts, { secrets: [] });
  test.match(integrationOf(connected), { readiness: 'needs_configuration', connection: { kind: 'none', revision: 1 } });
});

scenario('what accounts and grants are compared by, and secrets, are read by no login', async (test) => {
  const org = await createTestOrganization(sql);
  const { id } = await createConnected(sql, org);
  const hidden = [
    'subject_hash from app.integration_connections',
    'grant_hash from app.integration_connections',
    'ciphertext from app.integration_secrets',
    'ciphertext from app.integration_oauth_states',
    'token_hash from app.integration_gateway_capabilities',
    'full_at from app.rate_limit_buckets',
  ];
  for (const login of [sql.api, sql.jobs, sql.admin]) {
    for (const what of hidden) await test.rejects(login.query(`select ${what}`), { code: '42501' }, what);
  }
  const secrets = { organizationId: org.organizationId, integrationId: id, connectionRevision: 1 };
  await test.rejects(transition(sql.admin, 'integration_secrets_read', secrets), { code: '42501' });
});
