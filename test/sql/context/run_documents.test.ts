import t from 'tap';
import { document, promote, recordHealth } from '../../support/context_fixtures.ts';
import { createPlace, createTask, type Place, runNew, runNext } from '../../support/fixtures.ts';
import { type Answer, openSql } from '../../support/transitions.ts';

const sql = await openSql(t);

async function given(place: Place, runId: string): Promise<string[]> {
  const { rows } = await sql.owner.query(
    'select path, role, storage_key, content from app.run_inputs where organization_id = $1 and run_id = $2 order by path',
    [place.organizationId, runId],
  );
  return rows.map(({ path, role, storage_key, content }) => `${role} ${path} ${storage_key ?? content}`);
}

t.test('a run is given the documents that are published at its start, and keeps them', async (test) => {
  const place = await createPlace(sql, { kind: 'department', department: 'growth' });
  const before = await runNew(sql, place);
  test.same(await given(place, before.runId), [], 'nothing is published');
  await promote(sql.api, place, {
    documents: [document('facts.json', { storageKey: 'f1' }), document('how/refund.json', { storageKey: 'h' })],
  });
  await promote(sql.api, place, { scope: 'growth', documents: [document('facts.json', { storageKey: 'g' })] });
  await promote(sql.api, place, { scope: 'support', documents: [document('facts.json', { storageKey: 's' })] });
  const run = await runNew(sql, place);
  const expected = [
    'instructions context/growth/facts.json g',
    'instructions context/organization/facts.json f1',
    'instructions context/organization/how/refund.json h',
  ];
  test.same(await given(place, run.runId), expected);
  await promote(sql.api, place, { base: 1, documents: [document('facts.json', { storageKey: 'f2' })] });
  test.same(await given(place, run.runId), expected, 'later promotions are for later runs');
  const later = await runNew(sql, place);
  test.ok((await given(place, later.runId)).includes('instructions context/organization/facts.json f2'));
  test.same(await given(place, before.runId), []);
});

t.test('what the audit could not read is listed without bytes, until it is promoted again', async (test) => {
  const place = await createPlace(sql);
  const two = [document('a.json', { storageKey: 'a' }), document('b.json', { storageKey: 'b' })];
  await promote(sql.api, place, { documents: two });
  await promote(sql.api, place, { scope: 'growth', documents: [document('a.json', { storageKey: 'g' })] });
  const audit = (context: Answer, unreadable: Answer) => recordHealth(sql.jobs, place, { context, unreadable });
  const start = async () => given(place, (await runNew(sql, place)).runId);
  await audit({ organization: 1, growth: 1 }, { organization: ['a.json', 'b.json'] });
  const [growth, a, b] = [
    'instructions context/growth/a.json g',
    'instructions context/organization/a.json null',
    'instructions context/organization/b.json null',
  ];
  test.same(await start(), [growth, a, b]);
  await recordHealth(sql.jobs, place, { assessment: 'integration_reconciliation' });
  test.same(await start(), [growth, a, b], 'a reconciliation reads no documents');
  await promote(sql.api, place, { base: 1, documents: [document('a.json', { storageKey: 'a2' })] });
  const healed = 'instructions context/organization/a.json a2';
  test.same(await start(), [growth, healed, b]);
  await audit({ organization: 1, growth: 1 }, { organization: ['a.json'] });
  test.same(await start(), [growth, healed, b], 'an audit of an older revision says nothing about this one');
  await audit({ organization: 2, growth: 1 }, {});
  test.same(await start(), [growth, healed, 'instructions context/organization/b.json b']);
});

t.test('who is of no department is given all scopes, and an input of the task goes first', async (test) => {
  const place = await createPlace(sql);
  for (const scope of ['organization', 'growth']) {
    await promote(sql.api, place, { scope, documents: [document('a.json', { storageKey: scope })] });
  }
  await createTask(sql, place, {
    spec: { inputs: [{ kind: 'inline', path: 'context/growth/a.json', text: 'mine' }] },
  });
  const run = await runNext(sql, place);
  test.same(await given(place, run.runId), [
    'input context/growth/a.json mine',
    'instructions context/organization/a.json organization',
  ]);
});
