import t from 'tap';
import { document, promote, recordHealth } from '../../support/context_fixtures.ts';
import { createTask, createTestOrganization, runNew, runNext, type TestOrganization } from '../../support/fixtures.ts';
import { type JsonObject, openSql } from '../../support/transitions.ts';

const sql = await openSql(t);

async function given(org: TestOrganization, runId: string): Promise<string[]> {
  const { rows } = await sql.owner.query(
    'select path, role, storage_key, content from app.run_inputs where organization_id = $1 and run_id = $2 order by path',
    [org.organizationId, runId],
  );
  return rows.map(({ path, role, storage_key, content }) => `${role} ${path} ${storage_key ?? content}`);
}

t.test('a run is given the documents that are published at its start, and keeps them', async (test) => {
  const org = await createTestOrganization(sql, { kind: 'department', department: 'growth' });
  const before = await runNew(sql, org);
  test.same(await given(org, before.runId), [], 'nothing is published');
  await promote(sql.api, org, {
    documents: [document('facts.json', { storageKey: 'f1' }), document('how/refund.json', { storageKey: 'h' })],
  });
  await promote(sql.api, org, { scope: 'growth', documents: [document('facts.json', { storageKey: 'g' })] });
  await promote(sql.api, org, { scope: 'support', documents: [document('facts.json', { storageKey: 's' })] });
  const run = await runNew(sql, org);
  const expected = [
    'instructions context/growth/facts.json g',
    'instructions context/organization/facts.json f1',
    'instructions context/organization/how/refund.json h',
  ];
  test.same(await given(org, run.runId), expected);
  await promote(sql.api, org, { base: 1, documents: [document('facts.json', { storageKey: 'f2' })] });
  test.same(await given(org, run.runId), expected, 'later promotions are for later runs');
  const later = await runNew(sql, org);
  test.ok((await given(org, later.runId)).includes('instructions context/organization/facts.json f2'));
  test.same(await given(org, before.runId), []);
});

t.test('what the audit could not read is listed without bytes, until it is promoted again', async (test) => {
  const org = await createTestOrganization(sql);
  const two = [document('a.json', { storageKey: 'a' }), document('b.json', { storageKey: 'b' })];
  await promote(sql.api, org, { documents: two });
  await promote(sql.api, org, { scope: 'growth', documents: [document('a.json', { storageKey: 'g' })] });
  const audit = (context: JsonObject, unreadable: JsonObject) => recordHealth(sql.jobs, org, { context, unreadable });
  const start = async () => given(org, (await runNew(sql, org)).runId);
  await audit({ organization: 1, growth: 1 }, { organization: ['a.json', 'b.json'] });
  const [growth, a, b] = [
    'instructions context/growth/a.json g',
    'instructions context/organization/a.json null',
    'instructions context/organization/b.json null',
  ];
  test.same(await start(), [growth, a, b]);
  await recordHealth(sql.jobs, org, { assessment: 'integration_reconciliation' });
  test.same(await start(), [growth, a, b], 'a reconciliation reads no documents');
  await promote(sql.api, org, { base: 1, documents: [document('a.json', { storageKey: 'a2' })] });
  const healed = 'instructions context/organization/a.json a2';
  test.same(await start(), [growth, healed, b]);
  await audit({ organization: 1, growth: 1 }, { organization: ['a.json'] });
  test.same(await start(), [growth, healed, b], 'an audit of an older revision says nothing about this one');
  await audit({ organization: 2, growth: 1 }, {});
  test.same(await start(), [growth, healed, 'instructions context/organization/b.json b']);
});

t.test('who is of no department is given all scopes, and an input of the task goes first', async (test) => {
  const org = await createTestOrganization(sql);
  for (const scope of ['organization', 'growth']) {
    await promote(sql.api, org, { scope, documents: [document('a.json', { storageKey: scope })] });
  }
  await createTask(sql, org, {
    spec: { inputs: [{ kind: 'inline', path: 'context/growth/a.json', text: 'mine' }] },
  });
  const run = await runNext(sql, org);
  test.same(await given(org, run.runId), [
    'input context/growth/a.json mine',
    'instructions context/organization/a.json organization',
  ]);
});
