import { randomUUID } from 'node:crypto';
import t from 'tap';
import { authorizationEpoch, createTestOrganization, type TestOrganization } from '../../support/fixtures.ts';
import {
  account,
  connect,
  createConnected,
  dueIntegrations,
  type IntegrationRow,
  readIntegration,
  sealed,
} from '../../support/integration_fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import {
  type Connection,
  type JsonObject,
  openSession,
  openSql,
  refusal,
  transition,
} from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const missing = { status: 404, code: 'integration_not_found' };
const moved = { status: 409, code: 'integration_conflict', reason: 'revision_moved' };
const PERSON = account('person', { kind: 'oauth2', grantHash: 'a'.repeat(64) });

function notReady(reason: string) {
  return { status: 409, code: 'integration_not_ready', reason };
}

function calls(org: TestOrganization, integrationId: string, connectionRevision = 1) {
  const at = { organizationId: org.organizationId, integrationId, connectionRevision };
  return {
    lease: (connection: Connection, tokenVersion: number, leaseId: string = randomUUID(), seconds = 30) =>
      transition(connection, 'integration_refresh_lease', { ...at, tokenVersion, leaseId, seconds }),
    rotate: (connection: Connection, tokenVersion: number, text = 'new', tokens: JsonObject = {}) =>
      transition(connection, 'integration_tokens_rotate', {
        ...at,
        tokenVersion,
        tokens,
        secrets: [sealed('access_token', text)],
      }),
    refused: (connection: Connection, tokenVersion: number | null, reason = 'refresh_refused') =>
      transition(connection, 'integration_reauthorization_mark', { ...at, tokenVersion, reason }),
    health: (connection: Connection, health: JsonObject, checkSeconds = 60) =>
      transition(connection, 'integration_health_mark', { ...at, health, checkSeconds }),
    note: (connection: Connection, ...scopes: string[]) =>
      transition(connection, 'integration_scopes_note', { ...at, scopes }),
    secrets: () => transition(sql.jobs, 'integration_secrets_read', at),
  };
}

async function connected(org: TestOrganization) {
  const { id } = await createConnected(sql, org, { provider: 'google-workspace' }, PERSON);
  return { id, ...calls(org, id) };
}

scenario('one process of all refreshes, until its lease ends', async (test) => {
  const org = await createTestOrganization(sql);
  const { id, lease, rotate, secrets } = await connected(org);
  const epoch = await authorizationEpoch(sql, org.organizationId);
  const [mine, other] = [randomUUID(), randomUUID()];
  test.match(await lease(sql.jobs, 1, mine), { leased: true, tokenVersion: 1 });
  test.match(await lease(sql.api, 1, other), { leased: false, tokenVersion: 1 });
  test.match(await lease(sql.jobs, 1, mine), { leased: true }, 'a repeat');
  await sql.owner.query(
    'update app.integration_connections set refresh_lease_expires_at = now() where integration_id = $1',
    [id],
  );
  test.match(await lease(sql.api, 1, other), { leased: true });
  test.match(await rotate(sql.jobs, 1, 'first'), { saved: true, tokenVersion: 2 }, 'the tokens count, not the lease');
  test.match(await rotate(sql.api, 1, 'second'), { saved: false, tokenVersion: 2 });
  test.match(await secrets(), { connection: { tokenVersion: 2 }, secrets: [sealed('access_token', 'first'), {}] });
  test.match(await lease(sql.api, 1, other), { leased: false, tokenVersion: 2 }, 'there is something newer to read');
  test.equal(await authorizationEpoch(sql, org.organizationId), epoch, 'a refresh gives and takes nothing');
});

scenario('of fifty at once one takes the lease, and of two that save one does', async (test) => {
  const org = await createTestOrganization(sql);
  const { lease, rotate } = await connected(org);
  const leases = await Promise.all(Array.from({ length: 50 }, () => lease(sql.api, 1)));
  test.equal(leases.filter((result) => result['leased'] === true).length, 1);
  const session = await openSession(test, sql);
  const rival = await openSession(test, sql);
  await session.begin();
  test.match(await rotate(session, 1), { saved: true });
  const second = rotate(rival, 1);
  await rival.waits();
  await session.commit();
  test.match(await second, { saved: false, tokenVersion: 2 });
});

scenario('tokens are neither leased nor saved for what is gone, replaced or another tenant’s', async (test) => {
  const org = await createTestOrganization(sql);
  const { organizationId } = org;
  const { id, lease, rotate } = await connected(org);
  const foreign = calls(await createTestOrganization(sql), id);
  test.match(await refusal(foreign.lease(sql.api, 1)), missing);
  test.match(await refusal(foreign.rotate(sql.api, 1)), missing);
  test.match(await refusal(foreign.refused(sql.api, 1)), missing);
  test.match(await refusal(foreign.health(sql.api, {})), missing);
  test.match(await refusal(foreign.note(sql.api, 'read')), missing);
  test.match(await refusal(calls(org, id, 2).lease(sql.api, 1)), moved);
  const at = { organizationId, integrationRef: id };
  await transition(sql.api, 'integration_status_set', { ...at, status: 'disabled' });
  test.match(await lease(sql.api, 1), { leased: true }, 'of a disabled one they live on');
  test.match(await rotate(sql.api, 1), { saved: true });
  await transition(sql.api, 'integration_status_set', { ...at, status: 'enabled' });
  const session = await openSession(test, sql);
  const rival = await openSession(test, sql);
  await session.begin();
  await transition(session, 'integration_disconnect', at);
  const late = refusal(rotate(rival, 2));
  await rival.waits();
  await session.commit();
  test.match(await late, moved);
  test.match(await refusal(calls(org, id, 2).lease(sql.api, 1)), notReady('not_connected'));
});

scenario('scopes that are missing are noted once, up to fifty, until it is authorized again', async (test) => {
  const org = await createTestOrganization(sql);
  const { id, note, rotate, secrets } = await connected(org);
  const noted = async () => (await secrets())['connection'] as JsonObject;
  const epoch = await authorizationEpoch(sql, org.organizationId);
  test.match(await noted(), { missingScopes: [] });
  test.same(await calls(org, id, 0).note(sql.jobs, 'read'), { noted: false }, 'of another connection');
  test.same(await note(sql.jobs, 'read', 'read'), { noted: true });
  test.same(await note(sql.api, 'read'), { noted: false }, 'a repeat');
  const both = await Promise.all([note(sql.api, 'write', 'read'), note(sql.jobs, 'send')]);
  test.same(both, [{ noted: true }, { noted: true }], 'two at once');
  await rotate(sql.jobs, 1);
  const { missingScopes } = await noted();
  test.same((missingScopes as string[]).toSorted(), ['read', 'send', 'write'], 'a refresh keeps them');
  const many = Array.from({ length: 60 }, (_, index) => `s${index}`);
  await note(sql.api, ...many);
  const { missingScopes: all } = await noted();
  test.equal((all as string[]).length, 50);
  test.equal((all as string[])[0], 'read');
  test.equal(await authorizationEpoch(sql, org.organizationId), epoch);
  const again = { revision: 1, nextRevision: 1, secrets: [sealed('access_token'), sealed('refresh_token')] };
  await connect(sql.api, org, id, PERSON, again);
  test.match(await noted(), { missingScopes: [] });
});

scenario('a refusal counts for the newest tokens alone, and until it is connected again', async (test) => {
  const org = await createTestOrganization(sql);
  const { organizationId } = org;
  const { id, lease, rotate, refused } = await connected(org);
  await rotate(sql.jobs, 1);
  const epoch = await authorizationEpoch(sql, organizationId);
  test.same(await refused(sql.jobs, 1), { marked: false }, 'another process has newer tokens');
  test.same(await calls(org, id, 0).refused(sql.jobs, 2), { marked: false }, 'of another connection');
  test.match(await readIntegration(sql, org, id), { readiness: 'ready' });
  test.same(await refused(sql.jobs, 2), { marked: true });
  test.same(await refused(sql.jobs, 2), { marked: false });
  test.match(await readIntegration(sql, org, id), { readiness: 'needs_reauthorization', connection: { revision: 1 } });
  test.equal(await authorizationEpoch(sql, organizationId), epoch + 1);
  test.match(await refusal(lease(sql.api, 2)), notReady('needs_reauthorization'));
  test.match(await refusal(rotate(sql.api, 2)), notReady('needs_reauthorization'));
  const again = { revision: 1, nextRevision: 1, secrets: [sealed('access_token'), sealed('refresh_token')] };
  await connect(sql.api, org, id, PERSON, again);
  test.match(await readIntegration(sql, org, id), { readiness: 'ready', connection: { revision: 1 } });
  test.equal(await authorizationEpoch(sql, organizationId), epoch + 2);
  test.same(await refused(sql.jobs, 2), { marked: false }, 'the refusal of the tokens before comes late');
  test.same(await refused(sql.jobs, null, 'key_lost'), { marked: true }, 'whatever the tokens are');
});

scenario('a provider that fails degrades, and one that works recovers; agents see none of it', async (test) => {
  const org = await createTestOrganization(sql);
  const { id, lease, health, refused, secrets } = await connected(org);
  const epoch = await authorizationEpoch(sql, org.organizationId);
  const [first, next] = [randomUUID(), randomUUID()];
  await lease(sql.jobs, 1, first);
  const limited = { code: 'provider_unavailable', leaseId: first };
  test.same(await health(sql.jobs, limited), { marked: true });
  test.match(await readIntegration(sql, org, id), { readiness: 'degraded' });
  test.match(await secrets(), { integration: { readiness: 'degraded' } });
  test.match(await lease(sql.jobs, 1, next), { leased: true }, 'the lease was given back');
  test.same(await health(sql.jobs, limited), { marked: true });
  test.match(await lease(sql.jobs, 1), { leased: false }, 'of another one it is not');
  test.same(await health(sql.jobs, {}), { marked: true });
  test.match(await readIntegration(sql, org, id), { readiness: 'ready' });
  test.same(await calls(org, id, 0).health(sql.jobs, limited), { marked: false });
  test.equal(await authorizationEpoch(sql, org.organizationId), epoch);
  test.same(await health(sql.jobs, { postponed: true, leaseId: next }), { marked: true });
  test.match(await lease(sql.jobs, 1), { leased: true }, 'so it is where nobody could be asked');
  await refused(sql.jobs, 1);
  test.same(await health(sql.jobs, {}), { marked: false }, 'a call that works does not mend it');
});

const reasonsOf = ({ tools }: IntegrationRow) =>
  Object.fromEntries(tools.map((one) => [one.key, one.unavailable_reason]));

scenario('scopes that a refresh gives or takes are those of the tools, and raise the epoch', async (test) => {
  const org = await createTestOrganization(sql);
  const { organizationId } = org;
  const { id, rotate, secrets } = await connected(org);
  const epoch = () => authorizationEpoch(sql, organizationId);
  const before = await epoch();
  const scopesInUse = ['read', 'write'];
  const told = (...grantedScopes: string[]) => ({ grantedScopes, scopesInUse });
  await rotate(sql.jobs, 1, 'a', told('write', 'read'));
  await rotate(sql.jobs, 2, 'b', { grantedScopes: null, scopesInUse });
  await rotate(sql.jobs, 3, 'c');
  test.equal(await epoch(), before, 'another order is no change, and neither is what nobody tells');
  const shrunk = told('read');
  test.match(await rotate(sql.jobs, 4, 'd', shrunk), { saved: true, tokenVersion: 5 });
  test.equal(await epoch(), before + 1);
  const less = await readIntegration(sql, org, id);
  test.match(less, { readiness: 'ready', connection: { granted_scopes: ['read'], revision: 1 } });
  test.same(reasonsOf(less), { 'items.list': null, 'items.create': 'scopes_missing' });
  test.match(await rotate(sql.jobs, 4, 'd', shrunk), { saved: false, tokenVersion: 5 }, 'a repeat');
  test.equal(await epoch(), before + 1);
  await rotate(sql.jobs, 5, 'e', told('read', 'write', 'more'));
  test.equal(await epoch(), before + 2);
  test.same(reasonsOf(await readIntegration(sql, org, id)), { 'items.list': null, 'items.create': null });
  const foreign = calls(await createTestOrganization(sql), id);
  test.match(await refusal(foreign.rotate(sql.jobs, 6, 'f', told('more'))), missing);
  test.match(await rotate(sql.jobs, 6, 'f', told('more')), { saved: true, tokenVersion: 7 });
  test.equal(await epoch(), before + 3);
  test.match(await readIntegration(sql, org, id), { readiness: 'needs_reauthorization', connection: { revision: 1 } });
  test.match(await secrets(), { secrets: [sealed('access_token', 'f'), {}] }, 'whoever revokes them needs the newest');
  const { rows } = await sql.owner.query(
    'select reauthorization_reason from app.integration_connections where integration_id = $1',
    [id],
  );
  test.same(rows, [{ reauthorization_reason: 'scopes_withdrawn' }]);
  test.match(await refusal(rotate(sql.jobs, 7, 'g', told('read'))), notReady('needs_reauthorization'));
  const again = { revision: 1, nextRevision: 1, secrets: [sealed('access_token'), sealed('refresh_token')] };
  await connect(sql.api, org, id, PERSON, again);
  test.match(await readIntegration(sql, org, id), { readiness: 'ready' });
});

scenario('what a connection never had is not withdrawn', async (test) => {
  const org = await createTestOrganization(sql);
  const facts = account('person', { kind: 'oauth2', grantedScopes: ['other'] });
  const { id } = await createConnected(sql, org, { provider: 'google-workspace' }, facts);
  const { rotate } = calls(org, id);
  await rotate(sql.jobs, 1, 'a', { grantedScopes: ['another'], scopesInUse: ['read'] });
  await rotate(sql.jobs, 2, 'b', { grantedScopes: ['more'], scopesInUse: [] });
  test.match(await readIntegration(sql, org, id), { readiness: 'ready', connection: { granted_scopes: ['more'] } });
});

scenario('of two refreshes at once the scopes of one are written, and raise the epoch once', async (test) => {
  const org = await createTestOrganization(sql);
  const { id, rotate } = await connected(org);
  const epoch = await authorizationEpoch(sql, org.organizationId);
  const session = await openSession(test, sql);
  const rival = await openSession(test, sql);
  await session.begin();
  await rotate(session, 1, 'first', { grantedScopes: ['read'], scopesInUse: ['read'] });
  const second = rotate(rival, 1, 'second', { grantedScopes: ['write'], scopesInUse: ['read'] });
  await rival.waits();
  await session.commit();
  test.match(await second, { saved: false, tokenVersion: 2 });
  test.match(await readIntegration(sql, org, id), { readiness: 'ready', connection: { granted_scopes: ['read'] } });
  test.equal(await authorizationEpoch(sql, org.organizationId), epoch + 1);
});

scenario('what is due is found in turns, and a failed refresh waits', async (test) => {
  const org = await createTestOrganization(sql);
  const { id, health, refused } = await connected(org);
  await sql.owner.query(
    `update app.integration_connections set check_due_at = now() - interval '1 day', refresh_due_at = now()
     where organization_id = $1`,
    [org.organizationId],
  );
  const due = (kind: 'check' | 'refresh') => dueIntegrations(sql, org, kind);
  test.same(await due('check'), [id]);
  test.same(await due('refresh'), [id]);
  await health(sql.jobs, { code: 'provider_failed' });
  test.same(await due('check'), []);
  test.same(await due('refresh'), []);
  await health(sql.jobs, {}, 0);
  test.same(await due('check'), [id]);
  await refused(sql.jobs, null);
  test.same(await due('check'), [], 'nothing is asked for what has to be authorized');
});
