import { randomUUID } from 'node:crypto';
import t from 'tap';
import { document, insertSource, promote, recordHealth } from '../../support/context_fixtures.ts';
import { createTestOrganization, sha256, type TestOrganization } from '../../support/fixtures.ts';
import { openSession, openSql, refusal, transition } from '../../support/transitions.ts';

const sql = await openSql(t);

function deleteSource(org: TestOrganization, id: string): Promise<unknown> {
  return sql.owner
    .query('select app.context_source_delete($1, $2) as key', [org.organizationId, id])
    .then(({ rows }) => rows[0].key);
}

t.test('the same source again is the first one; another under its id or key is refused', async (test) => {
  const org = await createTestOrganization(sql);
  const id = randomUUID();
  const first = await insertSource(sql, org, { id });
  const again = await insertSource(sql, org, { id });
  test.equal(again.storage_key, first.storage_key, 'so that the second one’s bytes are known to be nobody’s');
  await test.rejects(insertSource(sql, org, { id, sha256: sha256('other') }), { code: 'RN409' });
  await test.rejects(insertSource(sql, org, { id, fileName: 'other.txt' }), { code: 'RN409' });
  const page = {
    origin: 'research',
    kind: 'page',
    dedupeKey: '1 https://example.com/',
    provenanceUrls: ['https://example.com/'],
  };
  const read = await insertSource(sql, org, page);
  test.equal((await insertSource(sql, org, page)).id, read.id, 'a retry doubles nothing');
  await test.rejects(insertSource(sql, org, { ...page, sha256: sha256('other') }), { code: 'RN409' });
  const other = await createTestOrganization(sql);
  test.not((await insertSource(sql, other, page)).id, read.id, 'another tenant’s key is its own');
});

t.test('a source that a document cites stays', async (test) => {
  const org = await createTestOrganization(sql);
  const cited = await insertSource(sql, org);
  const free = await insertSource(sql, org);
  await promote(sql.api, org, { documents: [document('a.json', { sourceIds: [cited.id] })] });
  await test.rejects(deleteSource(org, cited.id), { code: 'RN409' });
  test.equal(await deleteSource(await createTestOrganization(sql), free.id), null, 'another tenant’s');
  test.equal(await deleteSource(org, free.id), free.storage_key);
  test.equal(await deleteSource(org, free.id), null);
});

t.test('a promotion and the deletion of what it cites exclude each other', async (test) => {
  const org = await createTestOrganization(sql);
  const source = await insertSource(sql, org);
  const session = await openSession(test, sql, 'owner');
  await session.begin();
  await session.query('select app.context_source_delete($1, $2)', [org.organizationId, source.id]);
  const promoting = openSession(test, sql).then(async (other) => {
    const work = refusal(promote(other, org, { documents: [document('a.json', { sourceIds: [source.id] })] }));
    await other.waits();
    await session.commit();
    return work;
  });
  test.match(await promoting, { status: 400, reason: 'unknown_source' });
});

t.test('the context goes with its organization', async (test) => {
  const org = await createTestOrganization(sql);
  const { organizationId } = org;
  const source = await insertSource(sql, org);
  await promote(sql.api, org, { documents: [document('a.json', { sourceIds: [source.id] })] });
  await recordHealth(sql.jobs, org);
  await transition(sql.api, 'organization_delete', { organizationId });
  const purge = { organizationId, limit: 1, forget: true };
  let result = await transition(sql.jobs, 'organization_purge', purge);
  while (result['done'] === false) result = await transition(sql.jobs, 'organization_purge', purge);
  for (const table of ['publications', 'documents', 'revisions', 'health_reports', 'sources']) {
    const { rows } = await sql.owner.query(
      `select count(*)::int as n from app.context_${table} where organization_id = $1`,
      [organizationId],
    );
    test.equal(rows[0].n, 0, table);
  }
});
