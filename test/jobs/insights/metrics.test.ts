import { Registry } from 'prom-client';
import t from 'tap';
import { watchInsights } from '../../../jobs/insights/metrics.ts';
import { openAs } from '../../support/database.ts';
import { createTestOrganization, updateOrganization } from '../../support/fixtures.ts';
import { claimed, createCollected, createConnector, fail, passTime } from '../../support/insight_fixtures.ts';
import { openSql, transition } from '../../support/transitions.ts';

const sql = await openSql(t);
const db = openAs(sql.url, { role: 'runner_jobs', size: 2, applicationName: 'test metrics' });
t.teardown(() => db.end());

/** What a process shows that has read nothing yet. */
async function shown() {
  const registry = new Registry();
  watchInsights(registry, db);
  const text = await registry.metrics();
  const value = (name: string) => Number(new RegExp(`^${name} (.*)$`, 'm').exec(text)?.[1]);
  const of = (status: string) => value(`runner_insight_sources\\{status="${status}"\\}`);
  return {
    sources: [of('active'), of('paused'), of('unavailable')],
    failing: value('runner_insight_connectors_failing'),
    overdue: value('runner_insight_overdue_seconds'),
  };
}

t.test('metrics say how many sources there are, what fails, and what waits since when', async (test) => {
  test.same(await shown(), { sources: [0, 0, 0], failing: 0, overdue: 0 });
  const org = await createTestOrganization(sql);
  const place = await createCollected(sql, org, 'a', 'b');
  await sql.owner.query("update app.insight_connectors set due_at = now() - interval '1 hour'");
  const late = await shown();
  test.match(late, { sources: [2, 0, 0], failing: 0 });
  test.ok(late.overdue >= 3_600 && late.overdue < 3_700);

  await fail(sql.jobs, await claimed(sql.jobs, place));
  const second = await createConnector(sql, await createTestOrganization(sql));
  await fail(sql.jobs, await claimed(sql.jobs, second));
  test.match(await shown(), { sources: [2, 0, 0], failing: 2 }, 'one looks for its sources, one collects');

  await sql.owner.query("update app.insight_sources set in_scope = false where resource_id = 'b'");
  test.same((await shown()).sources, [1, 0, 1]);
  await transition(sql.api, 'integration_status_set', {
    organizationId: org.organizationId,
    integrationRef: place.integrationId,
    status: 'disabled',
  });
  await passTime(sql, place);
  await test.rejects(claimed(sql.jobs, place), /unavailable/);
  test.match(await shown(), { sources: [0, 0, 2], failing: 1 });
  await updateOrganization(sql.api, org, { status: 'suspended' });
  test.same((await shown()).sources, [0, 2, 0]);
});
