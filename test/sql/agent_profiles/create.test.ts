import { randomUUID } from 'node:crypto';
import t from 'tap';
import {
  authorizationEpoch,
  createOrganization,
  createProfile,
  createTestOrganization,
  updateProfile,
} from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSql, refusal } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const conflict = { status: 409, code: 'state_conflict' };

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
  test.equal(await authorizationEpoch(sql, organizationId), 2);
  test.match(await refusal(createProfile(sql, organizationId, { key: 'ops' })), { ...conflict, reason: 'in_use' });
  test.match(await refusal(createProfile(sql, randomUUID())), { status: 404, code: 'organization_not_found' });
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
