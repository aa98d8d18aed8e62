import { randomUUID } from 'node:crypto';
import t from 'tap';
import { insertOrganization } from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSession, openSql, refusal, transition } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const conflict = { status: 409, code: 'state_conflict' };
function member(verb: 'put' | 'delete', organizationId: string, subject: string, role?: string) {
  const args = { organizationId, subject };
  return transition(sql.api, `organization_member_${verb}`, verb === 'put' ? { ...args, role } : args);
}

scenario('whoever makes an organization owns it, and the last owner stays', async (test) => {
  const [organizationId, me, you] = [randomUUID(), `me-${randomUUID()}`, `you-${randomUUID()}`];
  await insertOrganization(sql.api, organizationId, { slug: `s-${organizationId}` }, me);
  test.match(await refusal(member('delete', organizationId, me)), conflict);
  test.match(await refusal(member('put', organizationId, me, 'viewer')), conflict);
  test.match(await member('put', organizationId, you, 'viewer'), { member: { subject: you, role: 'viewer' } });
  test.match(await refusal(member('delete', organizationId, me)), conflict, 'a viewer is no owner');
  await member('put', organizationId, you, 'owner');
  const [one, two] = [await openSession(test, sql), await openSession(test, sql)];
  await one.begin();
  await transition(one, 'organization_member_put', { organizationId, subject: me, role: 'viewer' });
  const late = refusal(transition(two, 'organization_member_put', { organizationId, subject: you, role: 'viewer' }));
  await two.waits();
  await one.commit();
  test.match(await late, conflict, 'two who step down at once do not both');
  await member('delete', organizationId, me);
  test.match(await refusal(member('delete', organizationId, me)), { status: 404, code: 'not_found' });
});
