import { randomUUID } from 'node:crypto';
import t from 'tap';
import { insertOrganization } from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSql, refusal } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const conflict = { status: 409, code: 'state_conflict' };
scenario('an organization is made with defaults for what nobody said', async (test) => {
  const id = randomUUID();
  const { organization } = await insertOrganization(sql.api, id, {
    slug: `acme-${id}`,
    config: { limits: { maxConcurrentRuns: 9 } },
  });
  test.match(organization, {
    id,
    status: 'active',
    authorization_epoch: 1,
    root_uri: `org://${id}`,
    config: {
      timezone: 'UTC',
      departments: { growth: { enabled: true } },
      limits: { maxConcurrentRuns: 9, maxDailyActions: 100, maxTaskDepth: 5 },
      storageRootUri: `org://${id}/storage`,
    },
    constraints: { allowedIntegrations: [], approvalRequiredForRisk: ['external', 'high'] },
  });
  const { rows } = await sql.owner.query(
    'select kind, capacity from app.dispatch where organization_id = $1 order by kind',
    [id],
  );
  test.same(rows, [
    { kind: 'chat', capacity: 20 },
    { kind: 'task', capacity: 9 },
  ]);
});

scenario('an id and a slug are given once, also to two at once', async (test) => {
  const [id, slug] = [randomUUID(), `s-${randomUUID()}`];
  await insertOrganization(sql.api, id, { slug });
  test.match(await refusal(insertOrganization(sql.api, id, { slug: `other-${id}` })), {
    ...conflict,
    reason: 'in_use',
  });
  test.match(await refusal(insertOrganization(sql.api, randomUUID(), { slug })), {
    status: 409,
    code: 'request_failed',
    reason: 'in_use',
  });
  const twin = `twin-${randomUUID()}`;
  const both = await Promise.allSettled([
    insertOrganization(sql.api, randomUUID(), { slug: twin }),
    insertOrganization(sql.api, randomUUID(), { slug: twin }),
  ]);
  test.same(both.map((one) => one.status).sort(), ['fulfilled', 'rejected']);
});
