import t from 'tap';
import { createAnalyst, openReporting, rowsOf } from '../../support/analysts.ts';
import { createTestOrganization, type TestOrganization, updateOrganization } from '../../support/fixtures.ts';
import { claimed, commit, createCollected, fail, segment } from '../../support/insight_fixtures.ts';
import { transition } from '../../support/transitions.ts';

const sql = await openReporting(t);
const analyst = await createAnalyst(t, sql, { all: true });
const rows = (org: TestOrganization, view: string, order: string) => rowsOf(analyst, org, view, order);

const START = '2026-01-01T00:00:00+00:00';
const MIDDLE = '2026-02-01T00:00:00+00:00';
const END = '2026-03-01T00:00:00+00:00';

t.test('sources say how fresh they are, and what fails', async (test) => {
  const org = await createTestOrganization(sql);
  const place = await createCollected(sql, org);
  const { organizationId } = org;
  const unseen = { covered_from: null, covered_until: null, last_completed_at: null, age_seconds: null };
  const [fresh] = await rows(org, 'insight_sources', 'source_id');
  test.match(fresh, {
    ...unseen,
    source_id: String,
    integration_id: place.integrationId,
    connector_key: /^i-/,
    provider: 'stripe',
    resource_id: 'r1',
    dataset: 'stripe.balance_tx',
    environment: 'live',
    timezone: 'UTC',
    status: 'active',
    generation: 1,
    next_due_at: String,
    failures: 0,
    error_code: null,
    error_at: null,
    created_at: String,
    updated_at: String,
  });
  test.equal(Object.keys(fresh ?? {}).length, 20);
  const coverage = [
    { start: START, end: MIDDLE, state: 'complete' },
    { start: MIDDLE, end: END, state: 'partial', reason: 'late' },
  ];
  const nextDueAt = '2099-01-01T00:00:00+00:00';
  await commit(sql.jobs, await claimed(sql.jobs, place), { done: true, coverage, nextDueAt });
  await commit(sql.jobs, await claimed(sql.jobs, place), { done: true, coverage });
  await sql.owner.query("update app.insight_sources set last_completed_at = now() - interval '1 hour'");
  const [collected] = await rows(org, 'insight_sources', 'source_id');
  test.match(collected, { covered_from: START, covered_until: MIDDLE, last_completed_at: String });
  test.same(collected?.['next_due_at'], nextDueAt);
  test.ok(Number(collected?.['age_seconds']) >= 3_600 && Number(collected?.['age_seconds']) < 3_700);

  await sql.owner.query(
    'update app.insight_cursors set due_at = now(); update app.insight_connectors set due_at = now()',
  );
  await fail(sql.jobs, await claimed(sql.jobs, place));
  test.match(await rows(org, 'insight_sources', 'source_id'), [
    { failures: 1, error_code: 'provider_unavailable', error_at: String },
  ]);
  await transition(sql.api, 'integration_disconnect', { organizationId, integrationRef: place.integrationId });
  test.match(await rows(org, 'insight_sources', 'source_id'), [{ status: 'unavailable' }]);
  await transition(sql.api, 'integration_delete', { organizationId, integrationRef: place.integrationId });
  test.match(await rows(org, 'insight_sources', 'source_id'), [{ status: 'unavailable', integration_id: null }]);
  await updateOrganization(sql.api, org, { status: 'suspended' });
  test.match(await rows(org, 'insight_sources', 'source_id'), [{ status: 'paused' }]);
});

t.test('collections are the units that have ended', async (test) => {
  const org = await createTestOrganization(sql);
  const place = await createCollected(sql, org);
  const unit = await claimed(sql.jobs, place);
  const result = { pages: 2, records: 30, bytes: 400, changed: 5, segments: [segment()] };
  await commit(sql.jobs, unit, result);
  await fail(sql.jobs, await claimed(sql.jobs, place));
  await sql.owner.query(
    'update app.insight_cursors set due_at = now(); update app.insight_connectors set due_at = now()',
  );
  await claimed(sql.jobs, place);
  await sql.owner.query("update app.insight_units set started_at = ended_at - interval '2 seconds' where id = $1", [
    unit.id,
  ]);
  const collections = await rows(org, 'insight_collections', 'unit_id');
  test.equal(collections.length, 3, 'one is under way');
  test.match(collections[0], { mode: 'discovery', source_id: null, dataset: null, outcome: 'committed', records: 1 });
  const { started_at, ended_at, ...collected } = collections[1] ?? {};
  test.same(collected, {
    unit_id: unit.id,
    integration_id: place.integrationId,
    source_id: unit.source?.id,
    dataset: 'stripe.balance_tx',
    mode: 'tail',
    outcome: 'committed',
    pages: 2,
    records: 30,
    bytes: 400,
    changed: 5,
    revision: 1,
    error_code: null,
    duration_seconds: 2,
  });
  test.ok(String(started_at) < String(ended_at));
  test.match(collections[2], { outcome: 'failed', error_code: 'provider_unavailable', revision: null });
  const elsewhere = await createTestOrganization(sql);
  test.same(await rows(elsewhere, 'insight_collections', 'unit_id'), []);
});
