import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import t from 'tap';
import { contextKey } from '../../../engine/storage/index.ts';
import { openJobs } from '../../jobs/support.ts';
import { agentPath, expectSuccess, type Fields, ownerPath, refusalOf, sqlOf } from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { spoil } from '../../support/context_files.ts';
import { promote, recordHealth } from '../../support/context_fixtures.ts';
import { createTestOrganization, type TestOrganization } from '../../support/fixtures.ts';
import { until } from '../../support/wait.ts';

const app = await startTestApp(t);
const sql = sqlOf(app);
const { storage } = app.services;

type Health = Readonly<{
  initialized: boolean;
  version: number;
  revision: number | null;
  findings: { general: Fields[]; integrations: Fields[] };
  fullAudit: { at: string | null; fresh: boolean };
  integrationReconciliation: { at: string | null; fresh: boolean };
  revisions: { revision: number; assessment: string; version: number }[];
}>;

const ask = (org: TestOrganization, query: Record<string, string | number> = {}) =>
  app.owner.get<Health>(ownerPath(org, '/context/health'), { query });
const health = async (org: TestOrganization, revision?: number) =>
  expectSuccess(await ask(org, revision === undefined ? {} : { revision }));

/** A report of any version, stored and recorded; its key. */
async function store(org: TestOrganization, report: Fields, fields: Fields = {}): Promise<string> {
  const bytes = Buffer.from(JSON.stringify(report));
  const storageKey = contextKey(org.organizationId, 'health');
  await storage.put(storageKey, Readable.from([bytes]));
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  await recordHealth(sql.jobs, org, { storageKey, sizeBytes: bytes.length, sha256, ...fields });
  return storageKey;
}

function version3(at: string, more: Fields = {}): Fields {
  return {
    version: 3,
    generatedAt: at,
    findings: { general: [{ code: 'x', severity: 'warning', message: 'y' }], integrations: [] },
    fullAuditAt: at,
    integrationReconciliationAt: null,
    mappedConnectorKeys: ['crm'],
    ...more,
  };
}

const now = () => new Date().toISOString();

t.test('before the first report nothing is initialized', async (test) => {
  const org = await createTestOrganization(sql);
  const never = { at: null, fresh: false };
  test.same(await health(org), {
    initialized: false,
    version: 3,
    revision: null,
    generatedAt: null,
    findings: { general: [], integrations: [] },
    fullAudit: never,
    integrationReconciliation: never,
    mappedConnectorKeys: [],
    revisions: [],
  });
  test.equal(refusalOf(await ask(org, { revision: 1 })), '404 not_found');
  for (const revision of ['0', '-1', 'x', '1.5', '2147483648', '']) {
    test.equal((await ask(org, { revision })).status, 400, revision);
  }
});

t.test('a report is fresh while it is young and nothing was promoted since', async (test) => {
  const org = await createTestOrganization(sql);
  await promote(sql.api, org);
  const at = now();
  await store(org, version3(at), { context: { organization: 1 } });
  test.match(await health(org), {
    initialized: true,
    revision: 1,
    findings: { general: [{ code: 'x', severity: 'warning', scope: null, message: 'y' }] },
    fullAudit: { at, fresh: true },
    integrationReconciliation: { at: null, fresh: false },
    mappedConnectorKeys: ['crm'],
    revisions: [{ revision: 1, assessment: 'full_audit', version: 3 }],
  });
  await promote(sql.api, org, { scope: 'growth' });
  test.match((await health(org)).fullAudit, { at, fresh: false });
  const old = new Date(Date.now() - 49 * 3_600_000).toISOString();
  await store(org, version3(old), { context: { organization: 1, growth: 1 } });
  test.match((await health(org)).fullAudit, { at: old, fresh: false });
});

t.test('every revision can be read, also when it has left the list', async (test) => {
  const org = await createTestOrganization(sql);
  for (let count = 1; count <= 23; count += 1) {
    await store(org, version3(now(), { mappedConnectorKeys: [`c${count}`] }));
  }
  const { revisions, revision } = await health(org);
  test.equal(revision, 23);
  test.same(
    revisions.map((one) => one.revision),
    Array.from({ length: 20 }, (_, index) => 23 - index),
  );
  test.match(await health(org, 1), { revision: 1, mappedConnectorKeys: ['c1'] });
  test.equal(refusalOf(await ask(org, { revision: 24 })), '404 not_found');
  test.equal(
    refusalOf(await ask(await createTestOrganization(sql), { revision: 1 })),
    '404 not_found',
    'another tenant’s',
  );
});

t.test('older versions are read as version 3', async (test) => {
  const org = await createTestOrganization(sql);
  const at = '2025-05-01T10:00:00.000Z';
  const two = {
    version: 2,
    generatedAt: at,
    findings: [{ code: 'x', message: 'm' }],
    integrationFindings: [{ code: 'i', message: 'n' }],
  };
  await store(org, two);
  await store(org, { version: 1, generatedAt: at, findings: ['something is missing'] });
  test.match(await health(org, 1), {
    version: 3,
    revision: 1,
    generatedAt: at,
    findings: {
      general: [{ code: 'x', severity: 'info', path: null, message: 'm' }],
      integrations: [{ code: 'i', message: 'n' }],
    },
    fullAudit: { at, fresh: false },
    integrationReconciliation: { at: null, fresh: false },
    mappedConnectorKeys: [],
  });
  test.match((await health(org, 2)).findings, {
    general: [{ code: 'note', message: 'something is missing' }],
    integrations: [],
  });
});

t.test('a report that is not intact is a conflict, and the others are read all the same', async (test) => {
  const org = await createTestOrganization(sql);
  const well = version3(now());
  await store(org, well);
  const changed = await store(org, well);
  const cut = await store(org, well);
  const gone = await store(org, well);
  await store(org, { version: 9 });
  await store(org, version3(now()));
  await spoil(storage, changed, JSON.stringify(well).replace('crm', 'erp'));
  await spoil(storage, cut, JSON.stringify(well).slice(0, 20));
  await storage.delete(gone);
  for (const revision of [2, 3, 4, 5]) {
    test.equal(refusalOf(await ask(org, { revision })), '409 state_conflict integrity', String(revision));
  }
  test.match(await health(org, 1), { revision: 1 });
  test.match(await health(org), { revision: 6, revisions: { length: 6 } });
});

t.test('a promotion is assessed by itself', async (test) => {
  const org = await createTestOrganization(sql);
  await openJobs(test, app.database.url, { STORAGE_URL: app.config.storageUrl });
  const body = {
    scope: 'organization',
    baseRevision: 0,
    documents: [{ kind: 'facts', path: 'a.json', entries: [{ key: 'k' }] }],
  };
  expectSuccess(await app.service.post(agentPath(org, '/context/promotions'), body), 201);
  await until('there is a report', async () => (await health(org)).initialized);
  const report = await health(org);
  test.match(report, { fullAudit: { fresh: true }, integrationReconciliation: { fresh: true } });
  test.same(
    report.findings.general.filter(({ path }) => path === 'a.json').map(({ code }) => code),
    ['evidence_missing', 'entry_incomplete'],
  );
});
