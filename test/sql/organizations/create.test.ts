import { randomUUID } from 'node:crypto';
import t from 'tap';
import { insertOrganization } from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { publishCatalog } from '../../support/onboarding_fixtures.ts';
import { type JsonObject, openSql, refusal } from '../../support/transitions.ts';

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

const profilesOf = async (id: string) =>
  (
    await sql.owner.query(
      'select kind, department, status from app.agent_profiles where organization_id = $1 order by kind, department',
      [id],
    )
  ).rows;

scenario('to be provisioned without a catalog leaves nothing', async (test) => {
  const id = randomUUID();
  const refused = await refusal(insertOrganization(sql.api, id, { slug: `s-${id}`, provision: true }));
  test.match(refused, { status: 503, code: 'request_failed' });
  test.same((await sql.owner.query('select from app.organizations where id = $1', [id])).rowCount, 0);
});

scenario('an organization is provisioned with its creation, or not', async (test) => {
  await publishCatalog(sql);
  const make = async (fields: JsonObject) => {
    const id = randomUUID();
    const { organization } = await insertOrganization(sql.api, id, { slug: `s-${id}`, ...fields });
    return { organization, profiles: await profilesOf(id) };
  };
  const [chat, operator] = ['chat', 'operator'].map((kind) => ({ kind, department: null, status: 'enabled' }));
  const department = (name: string) => ({ kind: 'department', department: name, status: 'enabled' });
  const enabled = await make({ provision: true, config: { departments: { support: { enabled: false } } } });
  test.same(enabled.profiles, [chat, department('engineering'), department('growth'), operator]);
  test.match(enabled.organization, { authorization_epoch: 5 }, 'as it is after the profiles');
  const named = await make({ provision: { departments: ['support'] }, authorizationEpoch: 7 });
  test.same(named.profiles, [chat, department('support'), operator]);
  test.match(named.organization, { authorization_epoch: 10 });
  test.same((await make({ provision: { departments: [] } })).profiles, [chat, operator]);
  test.same((await make({ provision: false })).profiles, []);
  test.same((await make({})).profiles, []);
});
