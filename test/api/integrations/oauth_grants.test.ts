import { randomUUID } from 'node:crypto';
import t from 'tap';
import type { Integration } from '../../../api/integrations/schema.ts';
import { useConnection } from '../../../engine/integrations/index.ts';
import { json } from '../../engine/providers/support.ts';
import { expectSuccess, refusalOf, sqlOf } from '../../support/api_fixtures.ts';
import { auditEntries } from '../../support/audit_fixtures.ts';
import { atIntegrations } from '../../support/authorization_flows.ts';
import { createTestOrganization, type TestOrganization } from '../../support/fixtures.ts';
import { GMAIL, openGoogle, openGoogleFlows, result, SCOPE } from './google.ts';

const { server: google, ...at } = await openGoogle(t);
const app = await at.startApp();
const sql = sqlOf(app);
at.open(app);
t.beforeEach(at.forgetPerson);
const { analytics, create, read, authorize, verify } = openGoogleFlows(app);

t.test('a part of what was asked for is what is connected', async (test) => {
  const org = await createTestOrganization(sql);
  await create(org);
  google.person.grants = (scope) => !scope.includes('gmail');
  test.same(await authorize(org), result('connected'));
  const { tools, connection } = await read(org);
  test.notMatch(connection?.grantedScopes.join(' '), 'gmail');
  const reasons = (service: string) =>
    new Set(
      tools.filter(({ key, effect }) => key.includes(service) && effect === 'read').map((one) => one.unavailableReason),
    );
  test.same(reasons('.gmail.'), new Set(['scopes_missing']));
  test.same(reasons('.calendar.'), new Set([null]));
});

t.test('a person who unticks all of what was asked for has said no, and what was connected stays', async (test) => {
  const org = await createTestOrganization(sql);
  await create(org);
  google.person.grants = (scope) => !scope.startsWith(SCOPE);
  test.same(await authorize(org), result('denied'));
  test.match(await read(org), { readiness: 'not_connected', connection: null });
  google.person.account = `other-${randomUUID()}`;
  google.person.grants = () => true;
  test.same(await authorize(org), result('connected'));
  const before = await read(org);
  google.person.account = `third-${randomUUID()}`;
  google.person.grants = (scope) => !scope.startsWith(SCOPE);
  test.same(await authorize(org, { ...GMAIL, replaceAccount: true }), result('denied'));
  test.same(await read(org), before);
});

t.test('another account takes the place of the connected one only where that is said', async (test) => {
  const org = await createTestOrganization(sql);
  await create(org);
  await authorize(org);
  const before = await read(org);
  test.same(await authorize(org), result('connected'), 'the same account');
  test.equal((await read(org)).connection?.revision, before.connection?.revision, 'is no replacement');
  google.person.account = `other-${randomUUID()}`;
  test.same(await authorize(org), result('conflict'));
  test.same(await authorize(org, { ...GMAIL, replaceAccount: true }), result('connected'));
  test.match(await read(org), { connection: { revision: 2, account: { label: /^o/ } } });
});

t.test('without a refresh token the stored one of the same account goes on, or nothing is connected', async (test) => {
  const org = await createTestOrganization(sql);
  const { id } = await create(org);
  google.refresh.isOn = false;
  test.same(await authorize(org), result('failed'));
  test.match(await read(org), { readiness: 'not_connected' });
  google.refresh.isOn = true;
  test.same(await authorize(org), result('connected'));
  google.refresh.isOn = false;
  test.same(await authorize(org), result('connected'));
  const { rows } = await sql.owner.query('select field from app.integration_secrets where integration_id = $1', [id]);
  test.same(rows.map(({ field }) => field).sort(), ['access_token', 'refresh_token']);
  google.person.account = `other-${randomUUID()}`;
  test.same(
    await authorize(org, { ...GMAIL, replaceAccount: true }),
    result('failed'),
    'one of another account is none',
  );
});

t.test('what is revoked at the provider has to be authorized again', async (test) => {
  const org = await createTestOrganization(sql);
  await create(org);
  await authorize(org);
  const connected = await read(org);
  await sql.owner.query('update app.integration_connections set token_expires_at = now() where integration_id = $1', [
    connected.id,
  ]);
  test.ok(await verify(org), 'refreshed');
  await fetch(`${google.origin}/revoke`, {
    method: 'POST',
    body: new URLSearchParams({ token: await refreshTokenOf(org, connected) }),
  });
  await test.rejects(verify(org), { code: 'integration_not_ready' });
  test.match(await read(org), { readiness: 'needs_reauthorization' });
  test.same(await authorize(org), result('connected'));
  test.match(await read(org), { readiness: 'ready', connection: { revision: 1 } });
});

async function refreshTokenOf(org: TestOrganization, { id, connection }: Integration): Promise<string> {
  return useConnection(
    app.services.integrations,
    { organizationId: org.organizationId, integrationId: id, revision: connection?.revision ?? 0 },
    async ({ access }) => (access.credential as { refreshToken: string }).refreshToken,
  );
}

t.test('a grant that is revoked takes its siblings with it, here and elsewhere', async (test) => {
  const [org, elsewhere] = [await createTestOrganization(sql), await createTestOrganization(sql)];
  await create(org);
  await analytics.create(org, 'numbers');
  await create(elsewhere);
  test.same(await authorize(org), result('connected'));
  test.same(await analytics.authorize(org, {}, 'numbers'), result('connected', 'numbers'));
  test.same(await authorize(elsewhere), result('connected'));
  google.person.account = `other-${randomUUID()}`;
  const bystander = await createTestOrganization(sql);
  await create(bystander);
  await authorize(bystander);
  const deleted = expectSuccess(
    await app.owner.delete<Record<string, unknown>>(atIntegrations(org, '/office/oauth/google-workspace/grant')),
    200,
  );
  test.match(deleted, {
    revoked: true,
    unlinked: [{ key: /office|numbers/ }, { key: /office|numbers/ }],
    changedMeanwhile: [],
    otherOrganizations: 1,
  });
  test.match((await auditEntries(sql, org.organizationId)).at(-1), {
    action: 'integration.revoke_grant',
    result: { revoked: true, unlinked: ['office', 'numbers'], changedMeanwhile: [], otherOrganizations: 1 },
  });
  test.match(await read(org), { readiness: 'not_connected' });
  test.match(await analytics.read(org, 'numbers'), { readiness: 'not_connected' });
  test.match(await read(elsewhere), { readiness: 'needs_reauthorization' });
  test.match(await read(bystander), { readiness: 'ready' });
  const again = await app.owner.delete(atIntegrations(org, '/office/oauth/google-workspace/grant'));
  test.equal(refusalOf(again), '409 integration_not_ready not_connected');
});

t.test('a person chooses from the properties of Analytics, and from no others', async (test) => {
  const org = await createTestOrganization(sql);
  await analytics.create(org, 'numbers');
  test.same(await analytics.authorize(org, {}, 'numbers'), result('connected', 'numbers'));
  test.match(await analytics.read(org, 'numbers'), { readiness: 'needs_configuration' });
  const path = atIntegrations(org, '/numbers/google-analytics/properties');
  const property = { id: '11', name: null, account: 'Acme', timeZone: 'Europe/Stockholm', currency: 'SEK' };
  test.same(expectSuccess(await app.owner.get(path)), { items: [property], truncated: false });
  const keyed = { headers: { 'idempotency-key': 'the-same' } };
  for (const properties of [['11'], ['11', '12']]) {
    at.properties.splice(0, at.properties.length, ...properties);
    const { items } = expectSuccess(await app.owner.get<{ items: unknown[] }>(path, keyed));
    test.equal(items.length, properties.length, 'a key is ignored');
  }
  at.properties.pop();
  const put = (propertyIds: string[]) =>
    app.owner.put(atIntegrations(org, '/numbers/settings'), { settings: { kind: 'google_analytics', propertyIds } });
  test.equal(refusalOf(await put(['11', '12'])), '400 settings_invalid unknown_choice');
  expectSuccess(await put(['11']));
  test.match(await analytics.read(org, 'numbers'), { readiness: 'ready', settings: { propertyIds: ['11'] } });
  const elsewhere = await createTestOrganization(sql);
  const foreign = await app.owner.get(atIntegrations(elsewhere, '/numbers/google-analytics/properties'));
  test.equal(refusalOf(foreign), '404 integration_not_found');
});

t.test('a limit of Google’s project is one, though it comes as 403: the connection stays', async (test) => {
  const org = await createTestOrganization(sql);
  await analytics.create(org, 'limited');
  await analytics.authorize(org, {}, 'limited');
  const settings = { kind: 'google_analytics', propertyIds: ['11'] };
  expectSuccess(await app.owner.put(atIntegrations(org, '/limited/settings'), { settings }));
  const { connection } = await analytics.read(org, 'limited');
  const discover = () => app.owner.post(atIntegrations(org, '/limited/discover'), {});
  let error: object = {};
  google.before.unshift((req, res) => {
    if (!req.url?.startsWith('/v1beta/')) return false;
    json(res, 403, { error: { code: 403, message: 'planted', ...error } });
    return true;
  });
  test.teardown(() => void google.before.shift());
  for (const reason of ['rateLimitExceeded', 'quotaExceeded', 'userRateLimitExceeded']) {
    error = { errors: [{ domain: 'usageLimits', reason }] };
    const limited = await discover();
    test.equal(refusalOf(limited), '503 provider_unavailable rate_limited', reason);
    test.ok(Number(limited.headers.get('retry-after')) > 0);
    test.match(await analytics.read(org, 'limited'), {
      readiness: 'degraded',
      connection,
      tools: [{ available: true }],
    });
    await sql.owner.query('delete from app.rate_limit_buckets');
  }
  error = { status: 'PERMISSION_DENIED', details: [{ reason: 'ACCESS_TOKEN_SCOPE_INSUFFICIENT' }] };
  test.equal(refusalOf(await discover()), '502 provider_failed forbidden', 'what is no limit');
});
