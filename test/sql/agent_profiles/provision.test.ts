import { randomUUID } from 'node:crypto';
import t from 'tap';
import { builtinCatalog, catalogRevision } from '../../../engine/catalog/index.ts';
import {
  authorizationEpoch,
  createOrganization,
  createProfile,
  createTask,
  taskRow,
  updateProfile,
} from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { type JsonObject, openSql, refusal, transition } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const conflict = { status: 409, code: 'state_conflict' };

const catalog = builtinCatalog();
const revision = catalogRevision(catalog);

function provision(organizationId: string, departments: readonly string[], wanted: string | null = null) {
  return transition(sql.api, 'agent_profiles_provision', {
    organizationId,
    departments,
    revision: wanted,
  });
}

type Provisioned = Readonly<{
  agent_profiles: { id: string; key: string; name: string; status: string; config: JsonObject }[];
  disabled_profile_ids: string[];
}>;

scenario('without a published catalog there is nothing to provision; it is published once', async (test) => {
  const organizationId = await createOrganization(sql);
  test.match(await refusal(provision(organizationId, [])), { status: 503, code: 'request_failed' });
  const publishing = () =>
    transition(sql.api, 'agent_catalog_publish_if_none', {
      revision,
      catalog: catalog as unknown as JsonObject,
    });
  const results = await Promise.all(Array.from({ length: 6 }, publishing));
  test.equal(results.filter((result) => result['published']).length, 1);
  test.match(await refusal(provision(organizationId, [], '0'.repeat(64))), { status: 404, code: 'request_failed' });
  test.match(await refusal(provision(randomUUID(), [])), { status: 404, code: 'request_failed' });
  await test.rejects(sql.owner.query(`update app.agent_catalogs set catalog = '{}'`), /never changed or removed/);
  await test.rejects(sql.owner.query('delete from app.agent_catalogs'), /never changed or removed/);
});

scenario(
  'provisioning makes the operator, the chat and the chosen departments, and repeats without effect',
  async (test) => {
    const organizationId = await createOrganization(sql);
    const first = (await provision(organizationId, ['growth'])) as unknown as Provisioned;
    test.same(
      first.agent_profiles.map((profile) => profile.key),
      ['operator', 'chat', 'growth'],
    );
    test.match(first.agent_profiles[2]?.config, { catalogSource: { templateKey: 'growth', revision } });
    const after = await authorizationEpoch(sql, organizationId);
    test.same(await provision(organizationId, ['growth']), first);
    test.equal(await authorizationEpoch(sql, organizationId), after);
  },
);

scenario('departments that are not chosen any more are disabled with their work, and come back', async (test) => {
  const organizationId = await createOrganization(sql);
  const { agent_profiles: made } = (await provision(organizationId, ['growth', 'support'])) as unknown as Provisioned;
  const growth = made.find((profile) => profile.key === 'growth');
  if (!growth) throw new Error('no growth profile');
  const org = { organizationId, profileId: growth.id, profileKey: growth.key };
  const byHand = await createProfile(sql, organizationId, { kind: 'department', key: 'by-hand' });
  const task = await createTask(sql, org);
  test.match(await provision(organizationId, ['support']), { disabled_profile_ids: [growth.id] });
  test.match(await taskRow(sql, org, task.id), { status: 'blocked', blockers: [{ kind: 'profile' }] });
  const { rows } = await sql.owner.query('select status from app.agent_profiles where id = $1', [byHand.id]);
  test.same(rows, [{ status: 'enabled' }], 'what was made by hand is left alone');
  await provision(organizationId, ['growth', 'support']);
  test.match(await taskRow(sql, org, task.id), { status: 'pending' });
});

scenario('an edited name is kept, and tool policies that were narrowed are not widened', async (test) => {
  const organizationId = await createOrganization(sql);
  const { agent_profiles: made } = (await provision(organizationId, [])) as unknown as Provisioned;
  const operator = made[0];
  const policies = operator?.config['toolPolicyKeys'] as string[];
  test.ok(operator && policies.length > 1, 'the template has policies to narrow');
  if (!operator) return;
  const org = { organizationId, profileId: operator.id, profileKey: operator.key };
  await updateProfile(sql.api, org, { name: 'Boss', config: { toolPolicyKeys: policies.slice(0, 1) } });
  const again = (await provision(organizationId, [])) as unknown as Provisioned;
  test.match(again.agent_profiles[0], { name: 'Boss', config: { toolPolicyKeys: policies.slice(0, 1) } });
});

scenario('a key that is held by a profile made by hand is a conflict, and nothing is provisioned', async (test) => {
  const organizationId = await createOrganization(sql);
  await createProfile(sql, organizationId, { key: 'growth' });
  test.match(await refusal(provision(organizationId, ['growth'])), { ...conflict, reason: 'key_held' });
  const { rows } = await sql.owner.query('select key from app.agent_profiles where organization_id = $1', [
    organizationId,
  ]);
  test.same(rows, [{ key: 'growth' }]);
});
