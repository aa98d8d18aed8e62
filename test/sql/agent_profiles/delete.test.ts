import t from 'tap';
import {
  createProfile,
  createTask,
  createTestOrganization,
  deleteProfile,
  taskRow,
  updateProfile,
} from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSql, refusal } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

scenario('a deleted profile is hidden and disabled, its key is free, and its history stays', async (test) => {
  const org = await createTestOrganization(sql);
  const task = await createTask(sql, org);
  test.match(await deleteProfile(sql.api, org.organizationId, org.profileId), {
    agent_profile: { status: 'disabled' },
  });
  test.match(await taskRow(sql, org, task.id), { status: 'blocked', owner_agent_profile_id: org.profileId });
  const missing = { status: 404, code: 'agent_profile_not_found' };
  test.match(await refusal(deleteProfile(sql.api, org.organizationId, org.profileId)), missing, 'once');
  test.match(await refusal(updateProfile(sql.api, org, { status: 'enabled' })), missing);
  await createProfile(sql, org.organizationId, { key: org.profileKey });
});
