import { randomUUID } from 'node:crypto';
import t from 'tap';
import { document, insertSource, markSource, promote } from '../../support/context_fixtures.ts';
import { createTestOrganization, runNew, sha256, type TestOrganization } from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSession, openSql, refusal } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);
const SERVICE = { kind: 'service' };

async function counts(org: TestOrganization) {
  const { rows } = await sql.owner.query(
    `select (select count(*)::int from app.context_revisions where organization_id = $1) as revisions,
       (select max(revision) from app.context_publications where organization_id = $1) as published`,
    [org.organizationId],
  );
  return rows[0];
}

function actorOf(run: Readonly<{ executionToken: string }>) {
  return { kind: 'capability', tokenHash: sha256(run.executionToken) };
}

scenario('promotions make revisions one after the other, and unnamed documents stay', async (test) => {
  const org = await createTestOrganization(sql);
  const first = await promote(sql.api, org, { documents: [document('a.json'), document('b/c.json')] });
  test.match(first, { scope: 'organization', revision: 1, base_revision: 0, created_by: { kind: 'owner' } });
  const second = await promote(sql.api, org, {
    base: 1,
    documents: [document('a.json', { sha256: sha256('new') }), { path: 'b/c.json', removed: true }],
  });
  test.match(second, { revision: 2, base_revision: 1 });
  test.same(
    second.documents.map(({ path, sha256: digest }) => [path, digest]),
    [['a.json', sha256('new')]],
  );
  const third = await promote(sql.api, org, { base: 2, documents: [document('d.json', { kind: 'notes' })] });
  test.same(
    third.documents.map(({ path, kind }) => [path, kind]),
    [
      ['a.json', 'facts'],
      ['d.json', 'notes'],
    ],
  );
  const growth = await promote(sql.api, org, { scope: 'growth', base: null });
  test.match(growth, { scope: 'growth', revision: 1 }, 'scopes count for themselves');
});

scenario('another base than the published revision is refused, and changes nothing', async (test) => {
  const org = await createTestOrganization(sql);
  await promote(sql.api, org);
  for (const base of [0, null, 2, 7]) {
    test.match(await refusal(promote(sql.api, org, { base })), {
      status: 409,
      code: 'state_conflict',
      reason: 'stale',
    });
  }
  test.same(await counts(org), { revisions: 1, published: 1 });
});

scenario('of two promotions from one base one wins', async (test) => {
  const org = await createTestOrganization(sql);
  const one = await openSession(test, sql);
  const two = await openSession(test, sql);
  await one.begin();
  await promote(one, org);
  const late = refusal(promote(two, org));
  await two.waits();
  await one.commit();
  test.match(await late, { status: 409, reason: 'stale' });
  test.same(await counts(org), { revisions: 1, published: 1 });
});

scenario('a revision, its documents and a source’s bytes never change', async (test) => {
  const org = await createTestOrganization(sql);
  const source = await insertSource(sql, org);
  await promote(sql.api, org);
  for (const statement of [
    `update app.context_revisions set created_at = now() where organization_id = $1`,
    `update app.context_documents set sha256 = repeat('0', 64) where organization_id = $1`,
    `update app.context_sources set sha256 = repeat('0', 64) where organization_id = $1`,
  ]) {
    await test.rejects(sql.owner.query(statement, [org.organizationId]), /immutable/);
  }
  test.match(await markSource(sql.jobs, org, source.id, 'failed', { code: 'bytes_missing' }), { status: 'failed' });
});

scenario('only ingested sources of the organization ground evidence', async (test) => {
  const org = await createTestOrganization(sql);
  const other = await createTestOrganization(sql);
  const citing = (id: string) => promote(sql.api, org, { documents: [document('a.json', { sourceIds: [id] })] });
  const stored = await insertSource(sql, org, { status: 'stored' });
  test.match(await refusal(citing(stored.id)), { status: 400, code: 'validation_failed', reason: 'cannot_ground' });
  await markSource(sql.jobs, org, stored.id, 'failed', { code: 'not_text' });
  test.match(await refusal(citing(stored.id)), { reason: 'cannot_ground' });
  test.match(await refusal(citing((await insertSource(sql, other)).id)), { reason: 'unknown_source' });
  test.match(await refusal(citing(randomUUID())), { reason: 'unknown_source' });
  await markSource(sql.jobs, org, stored.id, 'ingested');
  test.match(await citing(stored.id), { documents: [{ source_ids: [stored.id] }] });
  test.equal(await markSource(sql.jobs, org, randomUUID(), 'ingested'), null);
});

scenario('what a revision cannot hold is refused', async (test) => {
  const org = await createTestOrganization(sql);
  const many = Array.from({ length: 101 }, (_, index) => document(`${index}.json`));
  test.match(await refusal(promote(sql.api, org, { documents: many })), {
    status: 400,
    reason: 'too_many_documents',
  });
  const large = Array.from({ length: 9 }, (_, index) => document(`${index}.json`, { sizeBytes: 1_048_576 }));
  test.match(await refusal(promote(sql.api, org, { documents: large })), { status: 400, reason: 'too_large' });
  const below = [document('a'), document('a/b.json')];
  test.match(await refusal(promote(sql.api, org, { documents: below })), { status: 400, reason: 'below_a_document' });
  test.match(await refusal(promote(sql.api, org, { documents: [{ path: 'no.json', removed: true }] })), {
    status: 400,
    reason: 'unknown_document',
  });
  test.same(await counts(org), { revisions: 0, published: null });
});

scenario('who may promote', async (test) => {
  const org = await createTestOrganization(sql, { kind: 'department', department: 'growth' });
  const run = await runNew(sql, org);
  const actor = actorOf(run);
  const unauthorized = { status: 401, code: 'agent_unauthorized' };
  test.match(await refusal(promote(sql.api, org, { scope: 'growth', actor })), unauthorized, 'no task is named');
  const taskRef = run.taskId;
  test.match(await refusal(promote(sql.api, org, { actor, taskRef })), unauthorized, 'not its scope');
  const made = await promote(sql.api, org, { scope: 'growth', actor, taskRef });
  test.match(made.created_by, { kind: 'agent', runId: run.runId, taskId: run.taskId });
  test.match(
    await refusal(promote(sql.api, org, { scope: 'growth', base: 1, actor, taskRef: 'T-999' })),
    unauthorized,
    'not its task',
  );
  test.match(await refusal(promote(sql.api, org, { actor: SERVICE, taskRef: 'T-999' })), {
    status: 404,
    code: 'task_not_found',
  });
  const nowhere = { ...org, organizationId: randomUUID() };
  test.match(await refusal(promote(sql.api, nowhere)), { status: 404, code: 'organization_not_found' });
  const operator = await createTestOrganization(sql, { kind: 'operator' });
  const other = await runNew(sql, operator);
  test.match(await refusal(promote(sql.api, org, { actor: actorOf(other) })), unauthorized, 'another tenant’s');
  test.match(await promote(sql.api, operator, { scope: 'support', actor: actorOf(other) }), { revision: 1 });
});

scenario('agents promote nothing before the onboarding is complete', async (test) => {
  const org = await createTestOrganization(sql);
  await sql.owner.query(`update app.organizations set status = 'onboarding' where id = $1`, [org.organizationId]);
  await sql.owner.query(`update app.dispatch set stopped = true where organization_id = $1 and kind = 'task'`, [
    org.organizationId,
  ]);
  test.match(await refusal(promote(sql.api, org, { actor: SERVICE })), { status: 409, code: 'state_conflict' });
  test.match(await promote(sql.api, org), { revision: 1 }, 'the completion does');
});
