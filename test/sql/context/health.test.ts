import { randomUUID } from 'node:crypto';
import t from 'tap';
import { recordHealth } from '../../support/context_fixtures.ts';
import { createTestOrganization } from '../../support/fixtures.ts';
import { openSql, refusal } from '../../support/transitions.ts';

const sql = await openSql(t);

t.test('health reports are numbered one after the other, also at once', async (test) => {
  const org = await createTestOrganization(sql);
  const reports = await Promise.all([1, 2, 3].map(() => recordHealth(sql.jobs, org)));
  test.same(reports.map(({ revision }) => revision).sort(), [1, 2, 3]);
  await test.rejects(
    sql.owner.query('update app.context_health_reports set version = 2 where organization_id = $1', [
      org.organizationId,
    ]),
    /immutable/,
  );
  const nowhere = { ...org, organizationId: randomUUID() };
  test.match(await refusal(recordHealth(sql.jobs, nowhere)), { status: 404, code: 'organization_not_found' });
});
