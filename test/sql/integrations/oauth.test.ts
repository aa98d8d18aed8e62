import { randomUUID } from 'node:crypto';
import t from 'tap';
import {
  authorizationEpoch,
  createTestOrganization,
  sha256,
  type TestOrganization,
  updateOrganization,
} from '../../support/fixtures.ts';
import {
  account,
  beginFlow,
  completeFlow,
  connect,
  consumeFlow,
  createIntegration,
  type Flow,
  flowOf,
  readIntegration,
  sealed,
  WRITE,
} from '../../support/integration_fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { type JsonObject, openSession, openSql, refusal, transition } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const GOOGLE = { provider: 'google-workspace' };
const PERSON = account('person', { kind: 'oauth2' });

async function begun(org: TestOrganization, fields: JsonObject = {}) {
  const integration = await createIntegration(sql, org, GOOGLE);
  return { id: integration.id, flow: await beginFlow(sql, org, integration.id, fields) };
}

async function outcome(result: Promise<JsonObject>) {
  return (await result)['outcome'];
}

/** The callback of the browser that began, up to its end. */
async function finish(
  org: TestOrganization,
  id: string,
  flow: Flow,
  nextRevision: number,
  facts: JsonObject = PERSON,
  secrets?: readonly JsonObject[],
) {
  await consumeFlow(sql.api, org, flow);
  return flowOf(await completeFlow(sql.api, org, id, flow, nextRevision, facts, secrets)).result;
}

scenario('a flow connects, once, in the browser that began', async (test) => {
  const org = await createTestOrganization(sql);
  const { id, flow } = await begun(org, { services: ['gmail'] });
  const found = await transition(sql.api, 'integration_oauth_find', { kind: 'state', hash: sha256(flow.state) });
  test.same(found, { organizationId: org.organizationId, id: flow.id });
  const gone = { organizationId: org.organizationId, ticketHash: sha256(flow.ticket) };
  test.same(
    await transition(sql.api, 'integration_oauth_ticket', gone),
    { flow: null, clientInDoubt: false },
    'the ticket is used up',
  );
  test.equal(await outcome(consumeFlow(sql.api, org, flow, { browser: 'another' })), 'foreign');
  const { field, ...stored } = sealed('oauth_state');
  test.equal(field, 'oauth_state');
  test.match(await consumeFlow(sql.api, org, flow), { outcome: 'consumed', sealed: stored });
  const early = await consumeFlow(sql.api, org, flow);
  test.match(early, { outcome: 'repeat', flow: { result: null } });
  test.notOk('sealed' in early, 'secrets are handed out once');
  const done = await completeFlow(sql.api, org, id, flow, 1, PERSON);
  test.match(done, { flow: { result: 'connected' }, integration: { readiness: 'ready', services: ['gmail'] } });
  const epoch = await authorizationEpoch(sql, org.organizationId);
  test.match(await consumeFlow(sql.api, org, flow), { outcome: 'repeat', flow: { result: 'connected' } });
  test.match(await completeFlow(sql.api, org, id, flow, 1, account('other')), { flow: { result: 'connected' } });
  test.match(await readIntegration(sql, org, id), { connection: { account_label: '…person', revision: 1 } });
  test.equal(await authorizationEpoch(sql, org.organizationId), epoch);
});

scenario('what is unknown, another tenant’s or late is not consumed', async (test) => {
  const org = await createTestOrganization(sql);
  const foreign = await createTestOrganization(sql);
  const { id, flow } = await begun(org, { starter: 'me' });
  test.same(await transition(sql.api, 'integration_oauth_find', { kind: 'state', hash: sha256('x') }), {});
  test.match(await consumeFlow(sql.api, foreign, flow), { outcome: 'expired', flow: null });
  test.match(await consumeFlow(sql.api, org, { ...flow, id: randomUUID() }), { outcome: 'expired', flow: null });
  test.equal(await outcome(consumeFlow(sql.api, org, flow, { starter: 'somebody' })), 'foreign');
  const elsewhere = await consumeFlow(sql.api, org, flow, { provider: 'another' });
  test.match(elsewhere, { outcome: 'expired', flow: null }, 'at another provider’s address nobody knows it');
  const mine = { status: 404, code: 'integration_not_found' };
  test.match(await refusal(completeFlow(sql.api, foreign, id, flow, 1)), mine);
  test.match(await refusal(completeFlow(sql.api, org, id, { ...flow, id: randomUUID() }, 1)), { code: 'not_found' });
  await sql.owner.query(`update app.integration_oauth_states set expires_at = now() where id = $1`, [flow.id]);
  test.match(await consumeFlow(sql.api, org, flow, { starter: 'me' }), {
    outcome: 'expired',
    flow: { result: 'expired' },
  });
  test.match(await completeFlow(sql.api, org, id, flow, 1), { flow: { result: 'expired' } });
  test.match(await readIntegration(sql, org, id), { readiness: 'not_connected' });
});

scenario('a flow that was not consumed connects nothing, and one that was denied stays so', async (test) => {
  const org = await createTestOrganization(sql);
  const { id, flow } = await begun(org);
  const end = (result: string) =>
    transition(sql.api, 'integration_oauth_end', { organizationId: org.organizationId, flowId: flow.id, result });
  test.match(await completeFlow(sql.api, org, id, flow, 1), { flow: { result: null } });
  test.match(await end('denied'), { flow: { result: null } });
  await consumeFlow(sql.api, org, flow);
  test.match(await end('denied'), { flow: { result: 'denied' } });
  test.match(await end('failed'), { flow: { result: 'denied' } });
  test.equal(await finish(org, id, flow, 1), 'denied');
  test.match(await readIntegration(sql, org, id), { readiness: 'not_connected' });
});

scenario('an old tab restores neither what was replaced nor what was disconnected', async (test) => {
  const org = await createTestOrganization(sql);
  const { organizationId } = org;
  const { id, flow: first } = await begun(org);
  const second = await beginFlow(sql, org, id);
  test.equal(await finish(org, id, second, 1), 'connected');
  test.equal(await finish(org, id, first, 1), 'conflict');
  const third = await beginFlow(sql, org, id);
  const fourth = await beginFlow(sql, org, id);
  test.equal(await finish(org, id, third, 1), 'connected', 'the same account again is no replacement');
  await transition(sql.api, 'integration_disconnect', { organizationId, integrationRef: id });
  test.equal(await finish(org, id, fourth, 1), 'conflict');
  const fifth = await beginFlow(sql, org, id);
  await transition(sql.api, 'integration_disconnect', { organizationId, integrationRef: id });
  test.equal(await finish(org, id, fifth, 3), 'conflict', 'a disconnect ends what is under way');
  test.match(await readIntegration(sql, org, id), { readiness: 'not_connected' });
});

scenario('an old tab does not take the place of what was authorized since; a refresh ends no tab', async (test) => {
  const org = await createTestOrganization(sql);
  const { organizationId } = org;
  const { id, flow } = await begun(org);
  await finish(org, id, flow, 1);
  const [old, newer] = [await beginFlow(sql, org, id, { accessMode: 'read_only' }), await beginFlow(sql, org, id)];
  test.equal(
    await finish(org, id, newer, 1, PERSON, [sealed('access_token', 'newer'), sealed('refresh_token')]),
    'connected',
  );
  test.equal(
    await finish(org, id, old, 1, PERSON, [sealed('access_token', 'old'), sealed('refresh_token')]),
    'conflict',
  );
  const read = { organizationId, integrationId: id, connectionRevision: 1 };
  const { secrets } = await transition(sql.api, 'integration_secrets_read', read);
  test.match(secrets, [sealed('access_token', 'newer'), sealed('refresh_token')]);
  test.match(await readIntegration(sql, org, id), { access_mode: 'full', connection: { revision: 1 } });
  const open = await beginFlow(sql, org, id);
  await sql.owner.query(
    'update app.integration_connections set token_version = token_version + 1 where integration_id = $1',
    [id],
  );
  test.equal(await finish(org, id, open, 1), 'connected', 'refreshed meanwhile');
});

scenario('another account is a conflict unless it was asked for; no refresh token is a failure', async (test) => {
  const org = await createTestOrganization(sql);
  const { id, flow } = await begun(org);
  const other = account('other', { kind: 'oauth2' });
  const reuse = (facts: JsonObject) => ({ ...facts, reuseRefreshToken: true });
  const token = [sealed('access_token', 'new')];
  test.equal(await finish(org, id, flow, 1, reuse(PERSON), token), 'failed', 'there is none yet');
  test.equal(await finish(org, id, await beginFlow(sql, org, id), 1), 'connected');
  test.equal(await finish(org, id, await beginFlow(sql, org, id), 2, other), 'conflict');
  test.equal(await finish(org, id, await beginFlow(sql, org, id), 1, reuse(PERSON), token), 'connected');
  const read = await transition(sql.api, 'integration_secrets_read', {
    organizationId: org.organizationId,
    integrationId: id,
    connectionRevision: 1,
  });
  test.match(read, { secrets: [sealed('access_token', 'new'), sealed('refresh_token')] });
  const replacing = await beginFlow(sql, org, id, { replaceAccount: true });
  test.equal(await finish(org, id, replacing, 2, reuse(other), token), 'failed', 'the stored one is another account’s');
  const again = await beginFlow(sql, org, id, { replaceAccount: true });
  test.equal(await finish(org, id, again, 2, other), 'connected');
});

scenario('less access turns tools off that write', async (test) => {
  const org = await createTestOrganization(sql);
  const { organizationId } = org;
  const { id, flow } = await begun(org);
  await finish(org, id, flow, 1);
  const change = { accessMode: 'full', tools: [WRITE.key] };
  await transition(sql.api, 'integration_tools_put', { organizationId, integrationRef: id, change });
  test.equal(await finish(org, id, await beginFlow(sql, org, id, { accessMode: 'read_only' }), 1), 'connected');
  const { tools, access_mode } = await readIntegration(sql, org, id);
  test.equal(access_mode, 'read_only');
  test.ok(tools.every(({ enabled }) => !enabled));
});

scenario('of two at once, one uses a ticket, one consumes a state, and one connects', async (test) => {
  const org = await createTestOrganization(sql);
  const { id, flow } = await begun(org);
  const session = await openSession(test, sql);
  const rival = await openSession(test, sql);
  await session.begin();
  test.equal(await outcome(consumeFlow(session, org, flow)), 'consumed');
  const second = outcome(consumeFlow(rival, org, flow));
  await rival.waits();
  await session.commit();
  test.equal(await second, 'repeat');
  await session.begin();
  await connect(session, org, id, account('typed in'));
  const late = completeFlow(rival, org, id, flow, 1, PERSON);
  await rival.waits();
  await session.commit();
  test.match(await late, { flow: { result: 'conflict' } });
  const ticket = randomUUID();
  await transition(sql.api, 'integration_oauth_start', {
    organizationId: org.organizationId,
    integrationRef: id,
    flow: { ticketHash: sha256(ticket), accessMode: 'full', replaceAccount: false, starter: null },
  });
  const begin = () =>
    transition(sql.api, 'integration_oauth_begin', {
      organizationId: org.organizationId,
      ticketHash: sha256(ticket),
      begin: { browserHash: sha256('b'), stateHash: sha256(randomUUID()) },
    });
  const results = await Promise.all([begin(), begin()]);
  test.equal(results.filter((result) => result['flow'] !== null).length, 1);
});

scenario('a provider that is not allowed any more is neither begun nor connected', async (test) => {
  const org = await createTestOrganization(sql);
  const { id, flow } = await begun(org);
  await updateOrganization(sql.api, org, { constraints: { allowedIntegrations: ['stripe'] } });
  test.equal(await finish(org, id, flow, 1), 'failed');
  test.match(await refusal(beginFlow(sql, org, id)), { status: 403, code: 'provider_forbidden' });
  test.match(await readIntegration(sql, org, id), { readiness: 'not_connected' });
});
