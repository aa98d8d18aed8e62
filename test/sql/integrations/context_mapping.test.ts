import { randomUUID } from 'node:crypto';
import t from 'tap';
import { authorizationEpoch, createTestOrganization, type TestOrganization } from '../../support/fixtures.ts';
import { createIntegration, dueIntegrations, readIntegration } from '../../support/integration_fixtures.ts';
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

function put(connection: Connection, org: TestOrganization, integrationRef: string, mapping: JsonObject) {
  return transition(connection, 'integration_context_mapping_put', {
    organizationId: org.organizationId,
    integrationRef,
    mapping,
  });
}

function finish(org: TestOrganization, repairId: string, mapping: JsonObject, reportRevision: number) {
  return transition(sql.jobs, 'integration_context_repair_finish', {
    organizationId: org.organizationId,
    repairId,
    mapping,
    reportRevision,
  });
}

function due(org: TestOrganization) {
  return dueIntegrations(sql, org, 'repair');
}

const FIRST = { role: 'primary' };
const SECOND = { departments: ['growth'] };

scenario('a mapping is queued, applied once, and says nothing to agents', async (test) => {
  const org = await createTestOrganization(sql);
  const { id } = await createIntegration(sql, org);
  const epoch = await authorizationEpoch(sql, org.organizationId);
  const { repairId, status } = await put(sql.api, org, id, FIRST);
  test.equal(status, 'queued');
  test.same(await due(org), [repairId]);
  test.match(await readIntegration(sql, org, id), { context_mapping: FIRST, readiness: 'not_connected' });
  test.equal(await authorizationEpoch(sql, org.organizationId), epoch);
  test.same(await finish(org, String(repairId), FIRST, 7), { finished: true });
  test.same(await finish(org, String(repairId), FIRST, 8), { finished: false });
  test.same(await due(org), []);
  const next = await put(sql.api, org, id, FIRST);
  test.not(next['repairId'], repairId, 'asked for again, it is another one');
  test.same(await finish(org, String(next['repairId']), FIRST, 8), { finished: true });
});

scenario('the last word counts, also while a report is being written', async (test) => {
  const org = await createTestOrganization(sql);
  const { id } = await createIntegration(sql, org);
  const session = await openSession(test, sql);
  const rival = await openSession(test, sql);
  await session.begin();
  const { repairId } = await put(session, org, id, FIRST);
  const second = put(rival, org, id, SECOND);
  await rival.waits();
  await session.commit();
  test.equal((await second)['repairId'], repairId, 'one waits for each integration');
  test.same(await finish(org, String(repairId), FIRST, 1), { finished: false });
  test.same(await due(org), [repairId]);
  test.same(await finish(org, String(repairId), SECOND, 2), { finished: true });
});

scenario('another tenant’s integration or repair is not found', async (test) => {
  const [org, foreign] = [await createTestOrganization(sql), await createTestOrganization(sql)];
  const { id } = await createIntegration(sql, org);
  test.match(await refusal(put(sql.api, foreign, id, FIRST)), { status: 404, code: 'integration_not_found' });
  const { repairId } = await put(sql.api, org, id, FIRST);
  test.same(await finish(foreign, String(repairId), FIRST, 1), { finished: false });
  test.same(await finish(org, randomUUID(), FIRST, 1), { finished: false });
  test.same(await due(foreign), []);
});
