import t, { type Test } from 'tap';
import { contextPrefix, type Storage } from '../../../engine/storage/index.ts';
import { contextHealthAssess } from '../../../jobs/context/assess_health.ts';
import { contextHealthSchedule } from '../../../jobs/context/schedule_health.ts';
import type { JobContext } from '../../../jobs/runner/handler.ts';
import { entry, publishDocuments } from '../../support/context_files.ts';
import { createTestOrganization, type TestOrganization } from '../../support/fixtures.ts';
import { createConnected, createIntegration } from '../../support/integration_fixtures.ts';
import { openSql, transition } from '../../support/transitions.ts';
import { queued } from '../support.ts';

import { latestReport, openContextJobs } from './set_up.ts';

const sql = await openSql(t);
const openContext = (test: Test) => openContextJobs(test, sql);
const latest = (storage: Storage, org: TestOrganization) => latestReport(sql, storage, org);

function putMapping(org: TestOrganization, integrationRef: string, mapping: Record<string, unknown>) {
  const { organizationId } = org;
  return transition(sql.api, 'integration_context_mapping_put', { organizationId, integrationRef, mapping });
}

t.test('what integrations mean goes into the next report, and their repairs are applied by it', async (test) => {
  const { context, storage, added } = await openContext(test);
  const org = await createTestOrganization(sql);
  const { organizationId } = org;
  for (const key of ['plain', 'shop']) await createConnected(sql, org, { key });
  await createIntegration(sql, org, { key: 'later' });
  await createIntegration(sql, org, { key: 'unsaid' });
  await putMapping(org, 'shop', { departments: ['growth'], businessFunctions: ['sales'], role: 'primary' });
  await putMapping(org, 'later', { departments: ['legal'], workflowKeys: ['weekly-report'] });
  const waiting = await queued(sql.owner, 'context__assess_health');
  const key = `context__assess_health:${organizationId}:integrations`;
  test.equal(waiting.filter((job) => job.key === key).length, 1, 'the report is asked for with the mapping');
  test.equal(await contextHealthSchedule({}, context), 'done');
  test.ok(
    added.some((job) => job['key'] === key),
    'and by the schedule, as long as it waits',
  );

  await contextHealthAssess({ organizationId, assessment: 'integration_reconciliation' }, context);
  const { row, report } = await latest(storage, org);
  test.same(report.mappedConnectorKeys, ['later', 'shop']);
  test.equal(report.integrationReconciliationAt, report.generatedAt);
  test.same(
    report.findings.integrations.map(({ severity, code, scope, message }) => [severity, code, scope, message]),
    [
      [
        'warning',
        'integration_unusable',
        null,
        'The integration later is mapped and is not_connected: connect and enable it, or delete it.',
      ],
      [
        'warning',
        'integration_department_disabled',
        'legal',
        'The integration later is mapped to the department legal, which is not enabled: map it anew.',
      ],
      [
        'info',
        'integration_mapped',
        null,
        'The integration later is mapped: departments legal; workflows weekly-report.',
      ],
      [
        'info',
        'integration_unmapped',
        null,
        'Nothing says what the integration plain is for: map it to departments, functions, workflows or a role.',
      ],
      [
        'info',
        'integration_mapped',
        null,
        'The integration shop is mapped: departments growth; business functions sales; role primary.',
      ],
    ],
  );
  const repairs = async () => {
    const { rows } = await sql.owner.query(
      `select status, report_revision from app.integration_context_repairs where organization_id = $1 order by id`,
      [organizationId],
    );
    return rows;
  };
  const applied = { status: 'applied', report_revision: row.revision };
  test.same(await repairs(), [applied, applied]);

  // Said anew while the report is written: it waits for the next one.
  await putMapping(org, 'shop', { role: 'primary' });
  const interrupted: JobContext = {
    ...context,
    storage: {
      ...storage,
      put: async (...args) => {
        await putMapping(org, 'shop', { role: 'secondary' });
        return storage.put(...args);
      },
    },
  };
  await contextHealthAssess({ organizationId, assessment: 'integration_reconciliation' }, interrupted);
  test.same((await repairs()).at(-1), { status: 'queued', report_revision: null });
  await contextHealthAssess({ organizationId, assessment: 'full_audit' }, context);
  test.same((await repairs()).at(-1), { status: 'applied', report_revision: 3 });
});

t.test('a report that was written meanwhile is what the next one keeps', async (test) => {
  const { context, storage } = await openContext(test);
  const org = await createTestOrganization(sql);
  const { organizationId } = org;
  await contextHealthAssess({ organizationId, assessment: 'full_audit' }, context);
  let isFirst = true;
  const interrupted: JobContext = {
    ...context,
    storage: {
      ...storage,
      put: async (...args) => {
        const stored = await storage.put(...args);
        if (isFirst) {
          isFirst = false;
          await publishDocuments(sql, storage, org, { 'facts.json': { entries: [entry('bare', { value: 'yes' })] } });
          await contextHealthAssess({ organizationId, assessment: 'full_audit' }, context);
        }
        return stored;
      },
    },
  };
  await contextHealthAssess({ organizationId, assessment: 'integration_reconciliation' }, interrupted);
  const { row, report } = await latest(storage, org);
  test.match(row, { revision: 3, assessment: 'integration_reconciliation', context: { organization: 1 } });
  test.ok(report.findings.general.some(({ code }) => code === 'evidence_missing'));
  test.equal((await storage.list(`${contextPrefix(organizationId)}health/`)).objects.length, 3, 'no file is left over');
});
