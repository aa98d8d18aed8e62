import t from 'tap';
import { authorizationEpoch, createTestOrganization, sha256, type TestOrganization } from '../../support/fixtures.ts';
import {
  account,
  connect,
  createConnected,
  createIntegration,
  readIntegration,
} from '../../support/integration_fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { type JsonObject, openSession, openSql, refusal, transition } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

/** A person's connection, which hangs on one authorization with all others of that person. */
function of(person: string) {
  return account(person, { kind: 'oauth2', grantHash: sha256(`grant of ${person}`) });
}

function workspace(org: TestOrganization, key: string, person: string) {
  return createConnected(sql, org, { provider: 'google-workspace', key }, of(person));
}

function read(org: TestOrganization, integrationRef: string) {
  return transition(sql.api, 'integration_grant_read', { organizationId: org.organizationId, integrationRef });
}

function remove(org: TestOrganization, grant: JsonObject, revoked = true, beganAt = new Date()) {
  return transition(sql.api, 'integration_grant_delete', {
    organizationId: org.organizationId,
    grantHash: String(grant['grantHash']),
    connections: grant['connections'] as JsonObject[],
    revoked,
    beganAt: beganAt.toISOString(),
  });
}

/** As of the database's clock, which connections are dated by. */
async function now(): Promise<Date> {
  const { rows } = await sql.owner.query('select clock_timestamp() as now');
  return rows[0].now;
}

scenario('a revoked grant unlinks its siblings here, and asks the others to authorize again', async (test) => {
  const [org, other, third] = [
    await createTestOrganization(sql),
    await createTestOrganization(sql),
    await createTestOrganization(sql),
  ];
  const mail = await workspace(org, 'mail', 'ann');
  const files = await workspace(org, 'files', 'ann');
  const bobs = await workspace(org, 'bobs', 'bob');
  const theirs = await workspace(other, 'mail', 'ann');
  const apart = await workspace(third, 'mail', 'bob');
  const epochs = () => Promise.all([org, other, third].map((one) => authorizationEpoch(sql, one.organizationId)));
  const [here = 0, there = 0, elsewhere = 0] = await epochs();
  const grant = await read(org, 'mail');
  test.same(
    (grant['connections'] as JsonObject[]).map(({ key }) => key),
    ['mail', 'files'],
  );
  const result = await remove(org, grant, true, await now());
  const unlinked = [
    { id: mail.id, key: 'mail' },
    { id: files.id, key: 'files' },
  ].sort((a, b) => (a.id < b.id ? -1 : 1));
  const counted = { changedMeanwhile: [], otherOrganizations: 1 };
  test.same(result, {
    ...counted,
    unlinked,
    integrationId: mail.id,
    seen: { ...counted, revoked: true, unlinked: unlinked.map(({ key }) => key) },
  });
  test.match(await readIntegration(sql, org, mail.id), { readiness: 'not_connected', connection_revision: 2 });
  test.match(await readIntegration(sql, org, bobs.id), { readiness: 'ready' });
  test.match(await readIntegration(sql, other, theirs.id), { readiness: 'needs_reauthorization' });
  test.match(await readIntegration(sql, third, apart.id), { readiness: 'ready' });
  test.same(await epochs(), [here + 1, there + 1, elsewhere]);
  test.match(await remove(org, grant, true, await now()), { unlinked: [], otherOrganizations: 0 }, 'a repeat');
});

scenario('what changed while the provider was asked is told and left', async (test) => {
  const [org, other] = [await createTestOrganization(sql), await createTestOrganization(sql)];
  const replaced = await workspace(org, 'replaced', 'cy');
  const before = await now();
  const grant = await read(org, replaced.id);
  const next = { revision: 1, nextRevision: 2, replaceAccount: true };
  await connect(sql.api, org, replaced.id, of('dee'), next);
  const added = await workspace(org, 'added', 'cy');
  const theirs = await workspace(other, 'added', 'cy');
  const result = await remove(org, grant, true, before);
  test.match(result, { unlinked: [], otherOrganizations: 0 });
  const changed = (result['changedMeanwhile'] as JsonObject[]).map(({ key }) => key).sort();
  test.same(changed, ['added', 'replaced']);
  for (const [one, { id }] of [
    [org, replaced],
    [org, added],
    [other, theirs],
  ] as const)
    test.match(await readIntegration(sql, one, id), { readiness: 'ready' });
});

scenario(
  'what was authorized again while the provider was asked stays, though it has the same revision',
  async (test) => {
    const org = await createTestOrganization(sql);
    const { id } = await workspace(org, 'mail', 'hal');
    const grant = await read(org, id);
    await connect(sql.api, org, id, of('hal'), { revision: 1, nextRevision: 1 });
    test.match(await readIntegration(sql, org, id), { connection_revision: 1 }, 'the same account');
    const result = await remove(org, grant, true, new Date(String(grant['readAt'])));
    test.match(result, { unlinked: [], changedMeanwhile: [{ id, key: 'mail' }] });
    test.match(await readIntegration(sql, org, id), { readiness: 'ready' });
  },
);

scenario('a grant that could not be revoked is unlinked here alone', async (test) => {
  const [org, other] = [await createTestOrganization(sql), await createTestOrganization(sql)];
  const mine = await workspace(org, 'mail', 'eve');
  const theirs = await workspace(other, 'mail', 'eve');
  const result = await remove(org, await read(org, mine.id), false, await now());
  test.match(result, { unlinked: [{ key: 'mail' }], otherOrganizations: 0 });
  test.match(await readIntegration(sql, other, theirs.id), { readiness: 'ready' });
});

scenario('there is a grant only where a connection hangs on one', async (test) => {
  const org = await createTestOrganization(sql);
  const { id } = await createIntegration(sql, org);
  const notReady = (reason: string) => ({ status: 409, code: 'integration_not_ready', reason });
  test.match(await refusal(read(org, id)), notReady('not_connected'));
  await connect(sql.api, org, id);
  test.match(await refusal(read(org, id)), notReady('no_grant'));
  const foreign = await createTestOrganization(sql);
  test.match(await refusal(read(foreign, id)), { status: 404, code: 'integration_not_found' });
});

scenario('two organizations that revoke one grant at once do not wait for each other in a circle', async (test) => {
  const orgs = [await createTestOrganization(sql), await createTestOrganization(sql)];
  const grants = await Promise.all(orgs.map(async (org) => read(org, (await workspace(org, 'mail', 'flo')).id)));
  const began = await now();
  const results = await Promise.all(orgs.map((org, index) => remove(org, grants[index] ?? {}, true, began)));
  test.ok(results.every((result) => JSON.stringify(result['unlinked']).includes('mail')));
  const [org] = orgs;
  if (!org) throw new Error('there are two');
  const mail = await workspace(org, 'again', 'gus');
  const grant = await read(org, mail.id);
  const session = await openSession(test, sql);
  await session.begin();
  await transition(session, 'integration_disconnect', { organizationId: org.organizationId, integrationRef: mail.id });
  const rival = await openSession(test, sql);
  const late = transition(rival, 'integration_grant_delete', {
    organizationId: org.organizationId,
    grantHash: String(grant['grantHash']),
    connections: grant['connections'] as JsonObject[],
    revoked: true,
    beganAt: began.toISOString(),
  });
  await rival.waits();
  await session.commit();
  test.match(await late, { unlinked: [], changedMeanwhile: [{ key: 'again' }] });
});
