import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import t, { type Test } from 'tap';
import { contextPrefix, type Storage, StorageUnavailableError } from '../../../engine/storage/index.ts';
import { contextHealthAssess } from '../../../jobs/context/assess_health.ts';
import { contextFilesClean } from '../../../jobs/context/clean_files.ts';
import { contextSourcesIngest } from '../../../jobs/context/ingest_sources.ts';
import { contextHealthSchedule } from '../../../jobs/context/schedule_health.ts';
import type { JobContext } from '../../../jobs/runner/handler.ts';
import { entry, publishDocuments, spoil, storeSource } from '../../support/context_files.ts';
import { promote, recordHealth } from '../../support/context_fixtures.ts';
import { createTestOrganization, runNew, type TestOrganization } from '../../support/fixtures.ts';
import { openSql, transition } from '../../support/transitions.ts';
import { until } from '../../support/wait.ts';
import { openJobs } from '../support.ts';

import { latestReport, openContextJobs } from './set_up.ts';

const sql = await openSql(t);

const openContext = (test: Test) => openContextJobs(test, sql);
const latest = (storage: Storage, org: TestOrganization) => latestReport(sql, storage, org);

async function statuses(org: TestOrganization): Promise<Record<string, string>> {
  const { rows } = await sql.owner.query(
    `select file_name, status || coalesce(' ' || (error ->> 'code'), '') as status from app.context_sources
     where organization_id = $1`,
    [org.organizationId],
  );
  return Object.fromEntries(rows.map((row) => [row.file_name, row.status]));
}

t.test('stored sources are ingested when their bytes are whole, and failed otherwise', async (test) => {
  const { context, storage } = await openContext(test);
  const org = await createTestOrganization(sql);
  const add = (fileName: string, content: string | Uint8Array, mediaType: string) =>
    storeSource(sql, storage, org, content, { fileName, mediaType, status: 'stored' });
  await add('good.md', 'größe', 'text/markdown');
  await add('picture.png', Uint8Array.of(0x89, 0, 0xff), 'image/png');
  await add('latin.csv', Uint8Array.of(0xe9, 0x41), 'text/csv');
  const changed = await add('changed.txt', 'plan', 'text/plain');
  const cut = await add('cut.txt', 'a longer plan', 'text/plain');
  const gone = await add('gone.txt', 'gone', 'text/plain');
  await spoil(storage, changed.storage_key, 'palm');
  await spoil(storage, cut.storage_key, 'a long');
  await storage.delete(gone.storage_key);
  test.equal(await contextSourcesIngest({ organizationId: org.organizationId }, context), 'done');
  const expected = {
    'good.md': 'ingested',
    'picture.png': 'ingested',
    'latin.csv': 'failed not_text',
    'changed.txt': 'failed bytes_changed',
    'cut.txt': 'failed bytes_changed',
    'gone.txt': 'failed bytes_missing',
  };
  test.same(await statuses(org), expected);
  test.equal(await contextSourcesIngest({ organizationId: org.organizationId }, context), 'done', 'and again');
  test.same(await statuses(org), expected);
});

t.test('a report says what is missing, unreadable and without evidence, each for itself', async (test) => {
  const { context, storage } = await openContext(test);
  const org = await createTestOrganization(sql);
  const good = await storeSource(sql, storage, org, 'good', { fileName: 'good.txt' });
  const bad = await storeSource(sql, storage, org, 'bad', { fileName: 'bad.txt' });
  const old = await storeSource(sql, storage, org, 'old', { fileName: 'old.txt' });
  await sql.owner.query('alter table app.context_sources disable trigger context_sources_keep');
  await sql.owner.query(`update app.context_sources set created_at = now() - interval '200 days' where id = $1`, [
    old.id,
  ]);
  await sql.owner.query('alter table app.context_sources enable trigger context_sources_keep');
  const uri = `org://${org.organizationId}/context/sources/${good.id}`;
  const keys = await publishDocuments(sql, storage, org, {
    'facts.json': {
      entries: [
        entry('grounded', { value: 'yes', evidence: [uri] }),
        entry('spoiled', { value: 'yes', evidence: [bad.id] }),
        entry('aged', { value: 'yes', evidence: [`source:${old.id}`] }),
        entry('bare', { value: 'yes' }),
        entry('blank', { evidence: ['https://example.com/'] }),
      ],
    },
    'how.json': { kind: 'processes', entries: [entry('refund', { notes: 'quickly' })] },
    'strategy.json': { kind: 'strategy', entries: [entry('aim', { value: 'grow' })] },
  });
  await spoil(storage, keys['strategy.json'] ?? '', '{"entries":[]}');
  await spoil(storage, bad.storage_key, 'mad');
  const { organizationId } = org;
  test.equal(await contextHealthAssess({ organizationId, assessment: 'full_audit' }, context), 'done');
  const { row, report } = await latest(storage, org);
  test.match(row, { revision: 1, version: 3, assessment: 'full_audit', context: { organization: 1 } });
  test.same(
    report.findings.general.map((one) => [one.severity, one.code, one.path ?? one.scope ?? one.sourceId, one.entryKey]),
    [
      ['critical', 'document_unreadable', 'strategy.json', null],
      ['warning', 'evidence_unusable', 'facts.json', 'spoiled'],
      ['warning', 'evidence_missing', 'facts.json', 'bare'],
      ['warning', 'source_failed', bad.id, null],
      ['info', 'scope_missing', 'engineering', null],
      ['info', 'scope_missing', 'growth', null],
      ['info', 'scope_missing', 'support', null],
      ['info', 'evidence_stale', 'facts.json', 'aged'],
      ['info', 'entry_incomplete', 'facts.json', 'blank'],
      ['info', 'entry_incomplete', 'how.json', 'refund'],
    ],
  );
  test.same([report.findings.integrations, report.mappedConnectorKeys], [[], []]);
  const run = await runNew(sql, org);
  const { rows } = await sql.owner.query(
    `select path, sha256 is not null as available from app.run_inputs where run_id = $1 order by path`,
    [run.runId],
  );
  test.same(
    rows.map(({ path, available }) => [path, available]),
    [
      ['context/organization/facts.json', true],
      ['context/organization/how.json', true],
      ['context/organization/strategy.json', false],
    ],
    'a run that starts now is told that one of them is not there',
  );
  test.same(await statuses(org), {
    'good.txt': 'ingested',
    'bad.txt': 'failed bytes_changed',
    'old.txt': 'ingested',
  });

  await contextHealthAssess({ organizationId, assessment: 'integration_reconciliation' }, context);
  const second = await latest(storage, org);
  test.match(second.row, { revision: 2, assessment: 'integration_reconciliation' });
  test.same(second.report.findings.general, report.findings.general, 'a reconciliation keeps the general findings');
  test.equal(second.report.fullAuditAt, report.fullAuditAt);
  await spoil(storage, second.row.storage_key, '{}');
  await contextHealthAssess({ organizationId, assessment: 'integration_reconciliation' }, context);
  const third = await latest(storage, org);
  test.match(third.row, { revision: 3, assessment: 'full_audit' }, 'where none is to be read it audits');
});

t.test('an organization that is gone, or goes meanwhile, has no report', async (test) => {
  const { context, storage } = await openContext(test);
  const org = await createTestOrganization(sql);
  const { organizationId } = org;
  await publishDocuments(sql, storage, org, { 'a.json': {} });
  const failing: JobContext = {
    ...context,
    storage: {
      ...storage,
      put: async (...args) => {
        await transition(sql.api, 'organization_delete', { organizationId });
        return storage.put(...args);
      },
    },
  };
  test.equal(await contextHealthAssess({ organizationId, assessment: 'full_audit' }, failing), 'done');
  test.same((await storage.list(`${contextPrefix(organizationId)}health/`)).objects, []);
  test.equal(await contextHealthAssess({ organizationId, assessment: 'full_audit' }, context), 'done');
  test.equal(await contextFilesClean({ organizationId }, context), 'done');
});

t.test('the schedule finds those whose last full audit is a day old', async (test) => {
  const { context, added } = await openContext(test);
  const fresh = await createTestOrganization(sql);
  const never = await createTestOrganization(sql);
  const old = await createTestOrganization(sql);
  const empty = await createTestOrganization(sql);
  for (const org of [fresh, never, old]) await promote(sql.api, org);
  await recordHealth(sql.jobs, fresh);
  await recordHealth(sql.jobs, old);
  await sql.owner.query('alter table app.context_health_reports disable trigger user');
  await sql.owner.query(
    `update app.context_health_reports set created_at = now() - interval '25 hours' where organization_id = $1`,
    [old.organizationId],
  );
  await sql.owner.query('alter table app.context_health_reports enable trigger user');
  await recordHealth(sql.jobs, old, { assessment: 'integration_reconciliation' });
  test.equal(await contextHealthSchedule({}, context), 'done');
  const added1 = (org: TestOrganization) => added.filter((job) => job.organizationId === org.organizationId);
  test.same(added1(fresh), []);
  test.same(added1(empty), []);
  for (const org of [never, old]) {
    test.match(added1(org), [
      { name: 'context__assess_health', assessment: 'full_audit' },
      { name: 'context__clean_files' },
    ]);
  }
});

t.test('files that nothing names go after a day, and nothing else does', async (test) => {
  const { context, storage } = await openContext(test);
  const org = await createTestOrganization(sql);
  const { organizationId } = org;
  const prefix = contextPrefix(organizationId);
  const dayOld = Date.now() - 25 * 3_600_000;
  const put = async (name: string) => {
    await storage.put(`${prefix}${name}`, Readable.from([Buffer.from('x')]));
    return `${prefix}${name}`;
  };
  const abandoned = await put(`documents/${dayOld}-${randomUUID()}`);
  const young = await put(`documents/${Date.now()}-${randomUUID()}`);
  const unknown = await put('elsewhere/file');
  const cited = await put(`sources/${dayOld}-${randomUUID()}`);
  await storeSource(sql, storage, org, 'x', { storageKey: cited });
  const stuck = await put(`documents/${dayOld}-00000000-0000-4000-8000-000000000000`);
  const failing = {
    ...storage,
    delete: (key: string) => (key === stuck ? Promise.reject(new Error('stuck')) : storage.delete(key)),
  };
  const out = { ...failing, check: () => Promise.reject(new StorageUnavailableError('out')) };
  await test.rejects(contextFilesClean({ organizationId }, { ...context, storage: out }), { message: 'out' });
  const listed = async () => (await storage.list(prefix)).objects.map(({ key }) => key);
  test.ok((await listed()).includes(abandoned), 'while the storage is out nothing is tried');
  test.equal(await contextFilesClean({ organizationId }, { ...context, storage: failing }), 'done');
  const left = await listed();
  test.notOk(left.includes(abandoned), 'one that cannot be removed holds up no other');
  test.ok(left.includes(stuck));
  test.ok([young, unknown, cited].every((key) => left.includes(key)));
});

t.test('a job with much to do leaves off for others, and goes on behind them', async (test) => {
  const { context, storage, added } = await openContext(test);
  const org = await createTestOrganization(sql);
  const { organizationId } = org;
  const stored = await storeSource(sql, storage, org, 'plan', { status: 'stored' });
  await sql.owner.query(
    `insert into app.context_sources
     select (jsonb_populate_record(s, jsonb_build_object('id', gen_random_uuid(), 'file_name', 'plan ' || n,
       'storage_key', s.storage_key || n))).*
     from app.context_sources s cross join generate_series(1, 50) n where s.organization_id = $1`,
    [organizationId],
  );
  for (let n = 1; n <= 50; n += 1) await storage.put(`${stored.storage_key}${n}`, Readable.from([Buffer.from('plan')]));
  const left = async () => Object.values(await statuses(org)).filter((status) => status === 'stored').length;
  test.equal(await contextSourcesIngest({ organizationId }, context), 'unfinished');
  test.equal(await left(), 1);
  test.equal(await contextSourcesIngest({ organizationId }, context), 'done');
  test.equal(await left(), 0);

  const prefix = contextPrefix(organizationId);
  const names = Array.from({ length: 30 }, (_, n) => `documents/${Date.now() - 25 * 3_600_000 - n}-${randomUUID()}`);
  for (const name of names) await storage.put(`${prefix}${name}`, Readable.from([Buffer.from('x')]));
  const single = { ...storage, list: (from: string, options = {}) => storage.list(from, { ...options, limit: 1 }) };
  test.equal(await contextFilesClean({ organizationId }, { ...context, storage: single }), 'done');
  const abandoned = async () =>
    (await storage.list(`${prefix}documents/`)).objects.filter(({ key }) => names.includes(key.slice(prefix.length)));
  test.equal((await abandoned()).length, 10);
  const [next] = added;
  test.match(next, { name: 'context__clean_files', organizationId, key: `context__clean_files:${organizationId}` });
  await contextFilesClean({ organizationId, after: String(next?.['after']) }, context);
  test.same(await abandoned(), []);
});

t.test('a job that stops leaves off, and goes on later', async (test) => {
  const { context, storage, stop } = await openContext(test);
  const org = await createTestOrganization(sql);
  const { organizationId } = org;
  await storeSource(sql, storage, org, 'plan', { status: 'stored' });
  await publishDocuments(sql, storage, org, { 'a.json': {} });
  stop();
  test.equal(await contextSourcesIngest({ organizationId }, context), 'unfinished');
  test.equal(await contextHealthAssess({ organizationId, assessment: 'full_audit' }, context), 'unfinished');
  test.equal(await contextFilesClean({ organizationId }, context), 'unfinished');
  test.same(await statuses(org), { 'plan.txt': 'stored' });
});

t.test('what is stored and promoted is read by itself', async (test) => {
  const org = await createTestOrganization(sql);
  const { storage } = await openJobs(test, sql.url);
  await storeSource(sql, storage, org, 'plan', { status: 'stored' });
  await publishDocuments(sql, storage, org, { 'a.json': {} });
  await until('the source is ingested', async () => (await statuses(org))['plan.txt'] === 'ingested');
  await until('there is a report', async () => {
    const { rows } = await sql.owner.query('select from app.context_health_reports where organization_id = $1', [
      org.organizationId,
    ]);
    return rows.length > 0;
  });
});
