import t from 'tap';
import { createTestOrganization } from '../../support/fixtures.ts';
import {
  claim,
  claimed,
  createCollected,
  createConnector,
  fail,
  found,
  type Place,
  passTime,
  putSources,
} from '../../support/insight_fixtures.ts';
import { openSql, transition } from '../../support/transitions.ts';

const sql = await openSql(t);
const { jobs } = sql;

const connectorOf = async ({ integrationId }: Place) => {
  const { rows } = await sql.owner.query(
    'select *, due_at <= clock_timestamp() as is_due from app.insight_connectors where integration_id = $1',
    [integrationId],
  );
  return rows[0];
};
/** The owner has changed what may be asked for. */
const configure = ({ integrationId }: Place) =>
  sql.owner.query(`update app.integrations set settings = '{"changed": true}' where id = $1`, [integrationId]);

t.test('a search for sources that we could not make waits, also where its sources are due', async (test) => {
  const place = await createCollected(sql, await createTestOrganization(sql));
  await configure(place);
  await passTime(sql, place);
  const unit = await claimed(jobs, place);
  test.equal(unit.mode, 'discovery');
  await fail(jobs, unit, { code: 'encryption_key_missing', isOurs: true });
  test.equal(await claim(jobs, place), 'nothing');
  const { is_due: isDue, discovery_due_at: discoveryDue, due_at: due } = await connectorOf(place);
  test.equal(isDue, false);
  test.same(due, discoveryDue);
});

t.test('what a process knows no datasets of is due again for one that does', async (test) => {
  const place = await createConnector(sql, await createTestOrganization(sql));
  test.equal(await claim(jobs, place, { adapters: {} }), 'nothing');
  const { is_due: isDue, due_at: due } = await connectorOf(place);
  test.equal(isDue, false);
  test.ok(due, 'it is looked at again');
});

t.test('a change of settings does not ask a provider before it wants to be asked', async (test) => {
  const place = await createCollected(sql, await createTestOrganization(sql));
  const until = new Date(Date.now() + 3_600_000).toISOString();
  await fail(jobs, await claimed(jobs, place), { code: 'provider_rate_limited' }, { retryNotBefore: until });
  await configure(place);
  test.equal((await connectorOf(place)).due_at.toISOString(), until);
  test.equal(await claim(jobs, place), 'nothing');
});

t.test('where a connection goes, others look at once for what it has collected', async (test) => {
  for (const end of ['integration_disconnect', 'integration_delete'] as const) {
    const org = await createTestOrganization(sql);
    const { organizationId, integrationId: integrationRef } = await createCollected(sql, org, 'a');
    const other = await createConnector(sql, org);
    await putSources(jobs, await claimed(jobs, other), [found('a')]);
    test.equal(await claim(jobs, other), 'nothing');
    await transition(sql.api, end, { organizationId, integrationRef });
    const unit = await claimed(jobs, other);
    test.equal(unit.mode, 'discovery');
    test.match(await putSources(jobs, unit, [found('a')]), { sources: 1 }, end);
  }
});
