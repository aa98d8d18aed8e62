import { randomUUID } from 'node:crypto';
import t from 'tap';
import {
  capability,
  createTestOrganization,
  deleteOrganization,
  endLease as endRun,
  OWNER,
  runNew,
  SERVICE,
  type TestOrganization,
  updateOrganization,
  updateProfile,
} from '../../support/fixtures.ts';
import {
  claim,
  claimed,
  commit,
  createCollected,
  createConnector,
  endLease,
  fail,
  found,
  leaseOf,
  type Place,
  putSources,
} from '../../support/insight_fixtures.ts';
import { account, connect } from '../../support/integration_fixtures.ts';
import { type JsonObject, openSql, refusal, transition } from '../../support/transitions.ts';

const sql = await openSql(t);
const { api, jobs } = sql;
const NOTHING = { moved: [], unchanged: [], discovery: [] };
const inMinutes = (minutes: number) => new Date(Date.now() + minutes * 60_000).toISOString();

const rows = async (text: string, ...values: unknown[]) => (await sql.owner.query(text, values)).rows;
const one = async (text: string, ...values: unknown[]) => (await rows(text, ...values))[0];
const refresh = (organizationId: string, fields: JsonObject = {}) =>
  transition(api, 'insight_refresh', {
    organizationId,
    connectorKey: null,
    providers: ['stripe'],
    actor: OWNER,
    ...fields,
  });
const record = async (id: string) =>
  (await one('select app.insight_source_record(s) as it from app.insight_sources s where id = $1', id)).it;
const connectorOf = ({ integrationId }: Place) =>
  one('select *, due_at <= now() as is_due from app.insight_connectors where integration_id = $1', integrationId);
const keyOf = async ({ integrationId }: Place): Promise<string> =>
  (await one('select key from app.integrations where id = $1', integrationId)).key;
const sourceOf = async ({ integrationId }: Place): Promise<string> =>
  (await one('select id from app.insight_sources where integration_id = $1', integrationId)).id;
const cursor = (sourceId: string, mode: string) =>
  one(
    'select *, due_at <= now() as is_due from app.insight_cursors where source_id = $1 and mode = $2',
    sourceId,
    mode,
  );
const setSource = (sourceId: string, change: string) =>
  sql.owner.query(`update app.insight_sources set ${change} where id = $1`, [sourceId]);
const setCursor = (sourceId: string, mode: string, change: string) =>
  sql.owner.query(`update app.insight_cursors set ${change} where source_id = $1 and mode = $2`, [sourceId, mode]);

/** A source of which nothing is due for a quarter of an hour, and which was last collected a while ago. */
async function quiet(org: TestOrganization): Promise<Place & Readonly<{ sourceId: string }>> {
  const place = await createCollected(sql, org);
  for (const nextDueAt of [inMinutes(15), null])
    await commit(jobs, await claimed(jobs, place), { done: true, nextDueAt });
  const sourceId = await sourceOf(place);
  await setSource(sourceId, "last_completed_at = now() - interval '5 minutes'");
  return { ...place, sourceId };
}

t.test('a refresh makes the tail due, and a repeat finds it so', async (test) => {
  const org = await createTestOrganization(sql);
  const place = await quiet(org);
  test.equal(await claim(jobs, place), 'nothing');
  test.same(await refresh(org.organizationId), { ...NOTHING, moved: [place.sourceId] });
  test.match(await connectorOf(place), { is_due: true }, 'dispatch finds it');
  test.match(await cursor(place.sourceId, 'backfill'), { due_at: null }, 'what is done stays so');
  const again = { ...NOTHING, unchanged: [{ sourceId: place.sourceId, reason: 'due' }] };
  test.same(await refresh(org.organizationId), again);
  test.same(await refresh(org.organizationId, { connectorKey: await keyOf(place) }), again);
  test.match(await claimed(jobs, place), { mode: 'tail', source: { id: place.sourceId } });
});

t.test('two refreshes at once move a source once', async (test) => {
  const org = await createTestOrganization(sql);
  const { sourceId } = await quiet(org);
  const results = await Promise.all([1, 2, 3].map(() => refresh(org.organizationId)));
  test.equal(results.filter((result) => JSON.stringify(result['moved']) === JSON.stringify([sourceId])).length, 1);
  const others = results.filter((result) => JSON.stringify(result['moved']) === '[]');
  for (const other of others) test.same(other['unchanged'], [{ sourceId, reason: 'due' }]);
});

t.test('a rescan comes forward when its last one is an hour old', async (test) => {
  const org = await createTestOrganization(sql);
  const { sourceId } = await quiet(org);
  await sql.owner.query(
    `insert into app.insight_cursors (organization_id, source_id, mode, due_at) values ($1, $2, 'rescan', now() + interval '1 day')`,
    [org.organizationId, sourceId],
  );
  const isMoved = async (change: string) => {
    await setCursor(sourceId, 'tail', "due_at = now() + interval '15 minutes'");
    await setCursor(sourceId, 'rescan', `due_at = now() + interval '1 day', ${change}`);
    test.match(await refresh(org.organizationId), { moved: [sourceId] });
    return (await cursor(sourceId, 'rescan')).is_due;
  };
  test.equal(await isMoved('completed_at = null'), false, 'the source is new');
  test.equal(await isMoved("completed_at = now() - interval '59 minutes'"), false);
  test.equal(await isMoved("completed_at = now() - interval '61 minutes'"), true);
  await setSource(sourceId, "created_at = now() - interval '2 hours'");
  test.equal(await isMoved('completed_at = null'), true, 'the source is two hours old');
  await setCursor(sourceId, 'rescan', 'due_at = null');
  await setCursor(sourceId, 'tail', 'due_at = null');
  test.match(await refresh(org.organizationId), { unchanged: [{ reason: 'recent' }] }, 'neither has a date');
});

t.test(
  'what is paused, unavailable, leased, held back, due or recent stays, and the first of them is named',
  async (test) => {
    const org = await createTestOrganization(sql);
    const { organizationId } = org;
    const place = await quiet(org);
    const { sourceId } = place;
    const reason = async () => {
      const before = await cursor(sourceId, 'tail');
      const { moved, unchanged } = await refresh(organizationId);
      test.same(moved, []);
      test.same(await cursor(sourceId, 'tail'), before);
      return (unchanged as { reason: string }[])[0]?.reason;
    };
    await setSource(sourceId, 'last_completed_at = now()');
    test.equal(await reason(), 'recent');
    await setCursor(sourceId, 'tail', "due_at = now() - interval '1 second'");
    test.equal(await reason(), 'due');
    await sql.owner.query(
      "update app.insight_connectors set due_at = now(), retry_not_before = now() + interval '1 hour' where integration_id = $1",
      [place.integrationId],
    );
    test.equal(await reason(), 'retry_not_before');
    await claimed(jobs, place);
    test.equal(await reason(), 'leased');
    test.match(await record(sourceId), { status: 'active', collection: { leased: true } });
    await endLease(sql, place);
    test.equal(await reason(), 'retry_not_before', 'a lease that has ended is none');
    test.match(await record(sourceId), { collection: { leased: false } });
    await setSource(sourceId, 'in_scope = false');
    test.equal(await reason(), 'unavailable');
    await setSource(sourceId, 'in_scope = true');
    await transition(api, 'integration_status_set', {
      organizationId,
      integrationRef: place.integrationId,
      status: 'disabled',
    });
    test.equal(await reason(), 'unavailable');
    await updateOrganization(api, org, { status: 'suspended' });
    test.equal(await reason(), 'paused');
  },
);

t.test('a lease on one source does not keep another of its connector back', async (test) => {
  const org = await createTestOrganization(sql);
  const place = await createCollected(sql, org, 'a', 'b');
  const unit = await claimed(jobs, place);
  await sql.owner.query(
    "update app.insight_cursors set due_at = now() + interval '1 hour' where organization_id = $1 and due_at is not null",
    [org.organizationId],
  );
  const { moved, unchanged } = await refresh(org.organizationId);
  test.same(unchanged, [{ sourceId: unit.source?.id, reason: 'leased' }]);
  test.equal((moved as string[]).length, 1);
  test.equal(await claim(jobs, place), 'leased', 'the lease stays');
  await commit(jobs, unit, { done: true, nextDueAt: inMinutes(15) });
  test.match(await claimed(jobs, place), { mode: 'tail', source: { id: (moved as string[])[0] } });
});

t.test('a claim and a refresh at once leave one unit, and nothing lost', async (test) => {
  const org = await createTestOrganization(sql);
  const place = await quiet(org);
  await refresh(org.organizationId);
  const [unit, result] = await Promise.all([claim(jobs, place), refresh(org.organizationId)]);
  test.match(unit, { mode: 'tail' });
  test.match(result, { moved: [], unchanged: [{ reason: /^(leased|due)$/ }] });
  test.equal(await claim(jobs, place), 'leased');
});

t.test('a connector without sources has them looked for, unless they are already', async (test) => {
  const org = await createTestOrganization(sql);
  const { organizationId } = org;
  const place = await createConnector(sql, org);
  const key = await keyOf(place);
  test.same(await refresh(organizationId), NOTHING, 'it is due');
  const failing = await claimed(jobs, place);
  test.same(await refresh(organizationId), NOTHING, 'it is under way');
  await fail(jobs, failing);
  test.equal(await claim(jobs, place), 'nothing', 'it waits after a failure');
  test.same(await refresh(organizationId, { providers: ['github'] }), NOTHING, 'its provider has no datasets');
  test.same(await refresh(organizationId, { connectorKey: key }), { ...NOTHING, discovery: [key] });
  const discovery = await claimed(jobs, place);
  test.match(discovery, { mode: 'discovery' });
  await putSources(jobs, discovery, []);
  test.same(await refresh(organizationId), NOTHING, 'there were none a moment ago');
  await sql.owner.query(
    "update app.insight_connectors set discovered_at = now() - interval '2 minutes' where integration_id = $1",
    [place.integrationId],
  );
  test.same(await refresh(organizationId), { ...NOTHING, discovery: [key] });
  await putSources(jobs, await claimed(jobs, place), [found('a')]);
  test.match(await refresh(organizationId), { discovery: [], unchanged: [{ reason: 'due' }] });
  await transition(api, 'integration_disconnect', { organizationId, integrationRef: key });
  test.match(await refresh(organizationId), { discovery: [], unchanged: [{ reason: 'unavailable' }] });
});

t.test('a connector that is not there, or not ready, is refused', async (test) => {
  const org = await createTestOrganization(sql);
  const { organizationId } = org;
  const place = await quiet(org);
  const connectorKey = await keyOf(place);
  const refused = (fields: JsonObject, id = organizationId) => refusal(refresh(id, fields));
  const gone = { status: 404, code: 'integration_not_found' };
  test.match(await refused({ connectorKey: 'nothing' }), gone);
  test.match(await refused({ connectorKey: place.integrationId }), gone, 'its id is no key');
  const foreign = await createTestOrganization(sql);
  test.match(await refused({ connectorKey }, foreign.organizationId), gone);
  test.same(await refresh(foreign.organizationId), NOTHING, 'another’s sources are not there');
  test.match(await cursor(place.sourceId, 'tail'), { is_due: false });
  const nobody = { status: 404, code: 'organization_not_found' };
  test.match(await refused({}, randomUUID()), nobody);
  await deleteOrganization(api, foreign.organizationId);
  test.match(await refused({}, foreign.organizationId), nobody);

  const notReady = (reason: string) => ({ status: 409, code: 'integration_not_ready', reason });
  await updateOrganization(api, org, { constraints: { allowedIntegrations: ['github'] } });
  test.match(await refused({ connectorKey }), notReady('provider_forbidden'));
  await updateOrganization(api, org, { constraints: { allowedIntegrations: [] } });
  const integrationRef = connectorKey;
  await transition(api, 'integration_status_set', { organizationId, integrationRef, status: 'disabled' });
  test.match(await refused({ connectorKey }), notReady('disabled'));
  await transition(api, 'integration_status_set', { organizationId, integrationRef, status: 'enabled' });
  await transition(api, 'integration_disconnect', { organizationId, integrationRef });
  test.match(await refused({ connectorKey }), notReady('not_connected'));
  await connect(api, org, integrationRef, account('acme'), { revision: 2 });
  test.match(await refresh(organizationId, { connectorKey }), { moved: [place.sourceId], discovery: [] });
});

t.test('runs of enabled profiles may, and nobody else who says that they are one', async (test) => {
  const org = await createTestOrganization(sql);
  const { organizationId } = org;
  const { sourceId } = await quiet(org);
  const run = await runNew(sql, org);
  const elsewhere = await createTestOrganization(sql);
  const asRun = { actor: capability(run.executionToken) };
  const unauthorized = { status: 401, code: 'agent_unauthorized' };
  test.match(await refusal(refresh(elsewhere.organizationId, asRun)), unauthorized);
  test.match(await refusal(refresh(organizationId, { actor: capability('x') })), unauthorized);
  await test.rejects(refresh(organizationId, { actor: {} }), /unknown actor/);
  test.same(await refresh(organizationId, asRun), { ...NOTHING, moved: [sourceId] });
  test.match(await refresh(organizationId, { actor: SERVICE }), { unchanged: [{ reason: 'due' }] });
  await updateProfile(api, org, { status: 'disabled' });
  test.match(await refusal(refresh(organizationId, asRun)), unauthorized);
  await updateProfile(api, org, { status: 'enabled' });
  await endRun(sql, run);
  test.match(await refusal(refresh(organizationId, asRun)), unauthorized);
});

t.test('a source is shown with what is known of it and how its collecting stands', async (test) => {
  const org = await createTestOrganization(sql, { key: 'operator' });
  const place = await createCollected(sql, org);
  const id = await sourceOf(place);
  const shown = await record(id);
  test.match(shown, {
    id,
    connectorKey: await keyOf(place),
    provider: 'stripe',
    accountId: /^[0-9a-f]{64}$/,
    resourceId: 'r1',
    dataset: 'stripe.balance_tx',
    environment: 'live',
    timezone: 'UTC',
    status: 'active',
    generation: 1,
    coverage: [],
    collection: { lastCompletedAt: null, nextDueAt: String, leased: false, lastError: null },
  });
  test.same(Object.keys(shown.collection).length, 4);
  const unit = await claimed(jobs, place);
  await fail(jobs, unit, { code: 'provider_failed', message: '500' }, { retryNotBefore: inMinutes(30) });
  const failed = (await record(id)).collection;
  test.match(failed, { lastError: { code: 'provider_failed', message: '500', at: String } });
  test.ok(Date.parse(failed.nextDueAt) > Date.now() + 29 * 60_000, 'its provider is not asked before');
  await transition(api, 'integration_delete', {
    organizationId: org.organizationId,
    integrationRef: place.integrationId,
  });
  test.match(await record(id), { status: 'unavailable', collection: { nextDueAt: null, leased: false } });
  test.match(await refresh(org.organizationId), { unchanged: [{ sourceId: id, reason: 'unavailable' }] });
  test.match(await refusal(transition(jobs, 'insight_unit_release', leaseOf(unit))), { code: 'state_conflict' });
});
