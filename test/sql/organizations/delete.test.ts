import { randomUUID } from 'node:crypto';
import t from 'tap';
import {
  checkLease,
  claimNext,
  completeRun,
  createTask,
  createTestOrganization,
  deleteOrganization,
  heartbeat,
  insertOrganization,
  listOrganizations,
  pull,
  runNew,
  updateOrganization,
} from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSql, refusal, transition } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const conflict = { status: 409, code: 'state_conflict' };
const gone = { status: 404, code: 'organization_not_found' };

function member(verb: 'put' | 'delete', organizationId: string, subject: string, role?: string) {
  const args = { organizationId, subject };
  return transition(sql.api, `organization_member_${verb}`, verb === 'put' ? { ...args, role } : args);
}

scenario('an organization that is deleted is gone at once, and its slug is free', async (test) => {
  const org = await createTestOrganization(sql);
  const slug = `free-${org.organizationId}`;
  await updateOrganization(sql.api, org, { slug });
  const run = await runNew(sql, org);
  await createTask(sql, org);
  await claimNext(sql, org);
  await createTask(sql, org);
  await deleteOrganization(sql.api, org.organizationId);
  test.match(await refusal(deleteOrganization(sql.api, org.organizationId)), gone, 'once');
  test.match(await refusal(updateOrganization(sql.api, org, { name: 'x' })), gone);
  test.match(await refusal(member('put', org.organizationId, 's', 'owner')), gone);
  test.same(await pull(sql.api, { organizationIds: [org.organizationId] }), []);
  for (const call of [heartbeat, completeRun, checkLease]) {
    test.match(await refusal(call(sql.api, run)), { status: 409, reason: 'lease_lost' });
  }
  test.notOk((await listOrganizations(sql, null)).includes(org.organizationId));
  const { rows } = await sql.owner.query(
    `select task_identifier, max_attempts from graphile_worker.jobs where key = 'organizations__delete:' || $1`,
    [org.organizationId],
  );
  test.match(rows, [{ task_identifier: 'organizations__delete' }], 'and a job removes the rest');
  await insertOrganization(sql.api, randomUUID(), { slug });
  test.match(await refusal(insertOrganization(sql.api, org.organizationId, { slug: `again-${slug}` })), {
    ...conflict,
    reason: 'in_use',
  });
});
