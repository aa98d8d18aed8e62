import { randomUUID } from 'node:crypto';
import t from 'tap';
import { agentPath, expectSuccess, ownerPath, refusalOf, runTask, sqlOf } from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { createTestOrganization, updateProfile } from '../../support/fixtures.ts';
import { createCollected, createConnector, passTime } from '../../support/insight_fixtures.ts';
import { createIntegration } from '../../support/integration_fixtures.ts';
import { startIssuer } from '../../support/jwt.ts';
import { transition } from '../../support/transitions.ts';

const app = await startTestApp(t);
const sql = sqlOf(app);
const org = await createTestOrganization(sql, { key: 'department', kind: 'department', maxConcurrentRuns: 9 });
const elsewhere = await createTestOrganization(sql);
const place = await createCollected(sql, org);
const run = await runTask(app, org);
const agent = app.owner.as(run.executionToken);

type Refreshed = Readonly<{ moved: string[]; unchanged: { sourceId: string; reason: string }[]; discovery: string[] }>;
const PATH = '/insights/refresh';
const asOwner = (body?: unknown, at = org) => app.owner.post<Refreshed>(ownerPath(at, PATH), body);
const asAgent = (body?: unknown, client = agent, at = org) => client.post<Refreshed>(agentPath(at, PATH), body);
const { rows } = await sql.owner.query<{ id: string; key: string }>(
  'select s.id, i.key from app.insight_sources s join app.integrations i on i.id = s.integration_id where i.id = $1',
  [place.integrationId],
);
const { id, key } = rows[0] ?? { id: '', key: '' };

/** Nothing is due for an hour. */
async function wait(): Promise<void> {
  await passTime(sql, place);
  await sql.owner.query("update app.insight_cursors set due_at = now() + interval '1 hour' where source_id = $1", [id]);
}

t.test('owners, agents and the service bring collecting forward, and a repeat says that it is due', async (t) => {
  for (const refresh of [asOwner, asAgent, (body?: unknown) => asAgent(body, app.service)]) {
    for (const body of [undefined, {}, { connectorKey: key }]) {
      await wait();
      t.same(expectSuccess(await refresh(body)), { moved: [id], unchanged: [], discovery: [] });
      const again = expectSuccess(await refresh(body));
      t.same(again, { moved: [], unchanged: [{ sourceId: id, reason: 'due' }], discovery: [] });
    }
  }
  const { rows: actions } = await sql.owner.query('select from app.actions where organization_id = $1', [
    org.organizationId,
  ]);
  t.same(actions, [], 'no action is made');
});

t.test('a replay of an Idempotency-Key moves nothing', async (t) => {
  await wait();
  const headers = { 'idempotency-key': randomUUID() };
  const path = ownerPath(org, PATH);
  const first = await app.owner.post<Refreshed>(path, {}, { headers });
  t.same(expectSuccess(first).moved, [id]);
  await wait();
  t.same((await app.owner.post<Refreshed>(path, {}, { headers })).data, first.data);
  t.same(expectSuccess(await asOwner()).moved, [id], 'the replay left it as it was');
});

t.test('a connector without sources is named, another organization’s is not there', async (t) => {
  const at = await createTestOrganization(sql);
  const { integrationId } = await createConnector(sql, at);
  await sql.owner.query(
    "update app.insight_connectors set discovery_due_at = now() + interval '1 hour' where integration_id = $1",
    [integrationId],
  );
  const { discovery } = expectSuccess(await asOwner({}, at));
  t.equal(discovery.length, 1);
  t.equal(refusalOf(await asOwner({ connectorKey: discovery[0] })), '404 integration_not_found');
  t.equal(refusalOf(await asAgent({ connectorKey: discovery[0] })), '404 not_found');
  t.same(expectSuccess(await asOwner({}, elsewhere)), { moved: [], unchanged: [], discovery: [] });
});

t.test('what cannot be collected is refused, with the codes of who asks', async (t) => {
  const { key: bare } = await createIntegration(sql, org);
  t.equal(refusalOf(await asOwner({ connectorKey: bare })), '409 integration_not_ready not_connected');
  t.equal(refusalOf(await asAgent({ connectorKey: bare })), '409 state_conflict not_connected');
  t.equal(refusalOf(await asOwner({ connectorKey: 'nothing' })), '404 integration_not_found');
  for (const body of [{ connectorKey: 'No Key' }, { connectorKey: '' }, { connectorKey: 1 }, { more: true }, []]) {
    t.match(refusalOf(await asOwner(body)), /^400 validation_failed/);
    t.match(refusalOf(await asAgent(body)), /^400 validation_failed/);
  }
  const nowhere = { ...org, organizationId: randomUUID() };
  t.equal(refusalOf(await asOwner({}, nowhere)), '404 organization_not_found');
  t.equal(refusalOf(await asAgent({}, app.service, nowhere)), '404 not_found');
  for (const at of [elsewhere, nowhere]) {
    t.equal(refusalOf(await asAgent({}, agent, at)), '401 agent_unauthorized');
  }
  t.equal(refusalOf(await asAgent({}, app.owner)), '401 agent_unauthorized');
});

t.test('a viewer may not, and neither may a run whose profile is disabled', async (t) => {
  const issuer = await startIssuer(t);
  const { ownerAuth } = issuer;
  const closed = await startTestApp(t, { database: app.database, config: { ownerAuth } });
  for (const [subject, role] of [
    ['anna', 'owner'],
    ['vic', 'viewer'],
  ]) {
    await transition(sql.api, 'organization_member_put', { organizationId: org.organizationId, subject, role });
  }
  const as = async (sub: string) => closed.owner.as(await issuer.token(sub)).post<Refreshed>(ownerPath(org, PATH));
  await wait();
  t.match(await as('vic'), { status: 403 });
  t.same(expectSuccess(await as('anna')).moved, [id]);
  await updateProfile(sql.api, org, { status: 'disabled' });
  t.equal(refusalOf(await asAgent()), '401 agent_unauthorized');
});
