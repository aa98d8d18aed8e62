import { randomUUID } from 'node:crypto';
import t from 'tap';
import { builtinCatalog, catalogRevision } from '../../../engine/catalog/index.ts';
import {
  claimNext,
  completeRun,
  createInitiative,
  createOrganization,
  createProfile,
  createSecondProfile,
  createTask,
  createTestOrganization,
  heartbeat,
  lastRequest,
  openItems,
  pull,
  runNext,
  startRun,
  statuses,
  taskRow,
  updateProfile,
} from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { type Answer, openSession, openSql, refusal, transition } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const conflict = { status: 409, code: 'state_conflict' };

async function epoch(organizationId: string): Promise<number> {
  const { rows } = await sql.owner.query('select authorization_epoch from app.organizations where id = $1', [
    organizationId,
  ]);
  return rows[0].authorization_epoch;
}

function remove(organizationId: string, profileId: string) {
  return transition(sql.api, 'agent_profile_delete', {
    p_organization_id: organizationId,
    p_agent_profile_id: profileId,
  });
}

scenario('a profile is made with defaults, a lane of each kind, and a new authorization epoch', async (test) => {
  const organizationId = await createOrganization(sql);
  const { id } = await createProfile(sql, organizationId, { key: 'ops', maxConcurrentRuns: 3 });
  const { rows } = await sql.owner.query('select to_jsonb(p) as row from app.agent_profiles p where id = $1', [id]);
  test.match(rows[0].row, {
    status: 'enabled',
    root_uri: `org://${organizationId}/profiles/ops`,
    instructions_uri: `org://${organizationId}/profiles/ops/instructions.md`,
    config: {
      defaultRunMode: 'execute',
      maxConcurrentRuns: 3,
      toolPolicyKeys: [],
      runtime: { reasoningEffort: 'medium' },
    },
  });
  const lanes = await sql.owner.query(
    'select kind, capacity from app.dispatch_lanes where agent_profile_id = $1 order by kind',
    [id],
  );
  test.same(lanes.rows, [
    { kind: 'chat', capacity: 20 },
    { kind: 'task', capacity: 3 },
  ]);
  test.equal(await epoch(organizationId), 2);
  test.match(await refusal(createProfile(sql, organizationId, { key: 'ops' })), { ...conflict, reason: 'in_use' });
  test.match(await refusal(createProfile(sql, randomUUID())), { status: 404, code: 'organization_not_found' });
});

scenario('disabling a profile ends its claims and runs and blocks its tasks; enabling lifts that', async (test) => {
  const org = await createTestOrganization(sql);
  const other = await createSecondProfile(sql, org);
  const running = (await createTask(sql, org, { priority: 9 })).id;
  const claimed = (await createTask(sql, org, { priority: 8 })).id;
  const ready = (await createTask(sql, org)).id;
  const blocked = (await createTask(sql, org, { dependsOn: [ready] })).id;
  const untouched = (await createTask(sql, other)).id;
  const run = await runNext(sql, org);
  const claim = await claimNext(sql, org);
  const before = await epoch(org.organizationId);
  await updateProfile(sql.api, org, { status: 'disabled' });
  test.equal(await epoch(org.organizationId), before + 1);
  for (const id of [running, claimed, ready]) {
    test.match(await taskRow(sql, org, id), {
      status: 'blocked',
      blockers: [{ kind: 'profile' }],
      active_run_id: null,
    });
  }
  test.match(await taskRow(sql, org, blocked), {
    blockers: [{ kind: 'dependency', taskId: ready }, { kind: 'profile' }],
  });
  test.match(await taskRow(sql, org, untouched), { status: 'pending' });
  test.same(await openItems(sql, org, running), []);
  test.match(await refusal(startRun(sql.api, claim)), { status: 409, reason: 'lease_lost' });
  test.same(await heartbeat(sql.api, run), { status: 'cancelling' });
  test.same(await completeRun(sql.api, run), { status: 'cancelled' });
  test.equal(
    (await pull(sql.api, { organizationIds: [org.organizationId], limit: 9 })).length,
    1,
    'the other profile works on',
  );
  await updateProfile(sql.api, org, { status: 'enabled' });
  test.same(await statuses(sql, org, { running, claimed, ready, blocked }), {
    running: 'pending',
    claimed: 'pending',
    ready: 'pending',
    blocked: 'blocked',
  });
  test.equal(await epoch(org.organizationId), before + 2);
  test.match(await lastRequest(sql, org, running), { state: 'published', attempt: 0 });
});

scenario('disabling again, or changing only a name, touches no task', async (test) => {
  const org = await createTestOrganization(sql);
  const task = await createTask(sql, org);
  const before = await epoch(org.organizationId);
  await updateProfile(sql.api, org, { name: 'Other' });
  test.match(await taskRow(sql, org, task.id), { version: 1 });
  test.equal(await epoch(org.organizationId), before);
  await updateProfile(sql.api, org, { status: 'disabled' });
  const once = await taskRow(sql, org, task.id);
  await updateProfile(sql.api, org, { status: 'disabled' });
  test.same(await taskRow(sql, org, task.id), once);
  await updateProfile(sql.api, org, { config: { toolPolicyKeys: ['a'] } });
  test.equal(await epoch(org.organizationId), before + 2, 'a tool policy counts');
});

scenario('a disabled profile keeps an initiative open, and enabling it lets it end', async (test) => {
  const org = await createTestOrganization(sql);
  const worker = await createSecondProfile(sql, org);
  const { root } = await createInitiative(sql, org, []);
  const leaf = (await createTask(sql, worker, { parentId: root })).id;
  await updateProfile(sql.api, org, { status: 'disabled' });
  test.match(await taskRow(sql, org, root), { blockers: [{ kind: 'children' }, { kind: 'profile' }] });
  await completeRun(sql.api, await runNext(sql, org));
  test.same(await statuses(sql, org, { root, leaf }), { root: 'blocked', leaf: 'completed' });
  await updateProfile(sql.api, org, { status: 'enabled' });
  test.match(await taskRow(sql, org, root), { status: 'completed' });
});

scenario('a deleted profile is hidden and disabled, its key is free, and its history stays', async (test) => {
  const org = await createTestOrganization(sql);
  const task = await createTask(sql, org);
  test.match(await remove(org.organizationId, org.profileId), { agent_profile: { status: 'disabled' } });
  test.match(await taskRow(sql, org, task.id), { status: 'blocked', owner_agent_profile_id: org.profileId });
  const missing = { status: 404, code: 'agent_profile_not_found' };
  test.match(await refusal(remove(org.organizationId, org.profileId)), missing, 'once');
  test.match(await refusal(updateProfile(sql.api, org, { status: 'enabled' })), missing);
  await createProfile(sql, org.organizationId, { key: org.profileKey });
});

scenario('a profile of another organization is not found', async (test) => {
  const org = await createTestOrganization(sql);
  const foreign = await createTestOrganization(sql);
  const missing = { status: 404, code: 'agent_profile_not_found' };
  test.match(await refusal(updateProfile(sql.api, { ...foreign, profileId: org.profileId }, { name: 'x' })), missing);
  test.match(await refusal(remove(foreign.organizationId, org.profileId)), missing);
});

scenario('a department goes with department profiles and no others', async (test) => {
  const org = await createTestOrganization(sql, { kind: 'operator' });
  const wrong = { status: 400, code: 'validation_failed', reason: 'department_of_kind' };
  test.match(await refusal(updateProfile(sql.api, org, { department: 'growth' })), wrong);
  test.match(await refusal(updateProfile(sql.api, org, { kind: 'department' })), wrong);
  test.match(await updateProfile(sql.api, org, { kind: 'department', department: 'growth' }), {
    agent_profile: { kind: 'department', department: 'growth' },
  });
});

scenario('the end of a profile and the end of its runs at once', async (test) => {
  const org = await createTestOrganization(sql);
  const task = await createTask(sql, org);
  const run = await runNext(sql, org);
  const [worker, person] = [await openSession(test, sql), await openSession(test, sql)];
  await worker.begin();
  await completeRun(worker, run);
  const disabling = updateProfile(person, org, { status: 'disabled' });
  await person.waits();
  await worker.commit();
  await disabling;
  test.match(await taskRow(sql, org, task.id), { status: 'completed' });
});

const catalog = builtinCatalog();
const revision = catalogRevision(catalog);

function provision(organizationId: string, departments: readonly string[], wanted: string | null = null) {
  return transition(sql.api, 'agent_profiles_provision', {
    p_organization_id: organizationId,
    p_departments: departments,
    p_revision: wanted,
  });
}

type Provisioned = Readonly<{
  agent_profiles: { id: string; key: string; name: string; status: string; config: Answer }[];
  disabled_profile_ids: string[];
}>;

scenario('without a published catalog there is nothing to provision; it is published once', async (test) => {
  const organizationId = await createOrganization(sql);
  test.match(await refusal(provision(organizationId, [])), { status: 503, code: 'request_failed' });
  const publishing = () =>
    transition(sql.api, 'agent_catalog_publish_if_none', {
      p_revision: revision,
      p_catalog: catalog as unknown as Answer,
    });
  const answers = await Promise.all(Array.from({ length: 6 }, publishing));
  test.equal(answers.filter((answer) => answer['published']).length, 1);
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
    const after = await epoch(organizationId);
    test.same(await provision(organizationId, ['growth']), first);
    test.equal(await epoch(organizationId), after);
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
