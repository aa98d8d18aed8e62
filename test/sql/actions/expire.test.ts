import t from 'tap';
import {
  actionRow,
  approve,
  createProposer,
  dueActions,
  itemsOf,
  makeOverdue,
  propose,
} from '../../support/action_fixtures.ts';
import type { TestOrganization } from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSession, openSql, transition } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

function expireActions({ organizationId }: TestOrganization, ...actionIds: string[]) {
  return transition(sql.jobs, 'actions_expire', { organizationId, actionIds });
}

scenario('what nobody decides about expires when it is due, and not before', async (test) => {
  const by = await createProposer(sql);
  const [first, second] = [await propose(sql, by), await propose(sql, by, { arguments: { amount: 2 } })];
  await makeOverdue(sql, first.id);
  test.same(await dueActions(sql, by.org, 'expire'), [first.id]);
  test.same(await expireActions(by.org, first.id, second.id), { expired: 1 });
  test.match(await actionRow(sql, first.id), { status: 'expired', version: 2, reason: { code: 'not_decided' } });
  test.match(await itemsOf(sql, first.id), [{ status: 'cancelled' }]);
  test.match(await actionRow(sql, second.id), { status: 'awaiting_approval' });
  test.same(await dueActions(sql, by.org, 'expire'), []);
  test.same(await expireActions(by.org, first.id, second.id), { expired: 0 }, 'a repeat changes nothing');
  const again = await propose(sql, by);
  test.not(again.id, first.id, 'it may be proposed again');
});

scenario('another organization expires nothing', async (test) => {
  const [by, other] = [await createProposer(sql), await createProposer(sql)];
  const action = await propose(sql, by);
  await makeOverdue(sql, action.id);
  test.same(await expireActions(other.org, action.id), { expired: 0 });
  test.match(await actionRow(sql, action.id), { status: 'awaiting_approval' });
});

scenario('an approval that comes first keeps it', async (test) => {
  const by = await createProposer(sql);
  const action = await propose(sql, by);
  const session = await openSession(test, sql);
  await session.begin();
  await approve(session, by.org, action.id);
  const job = await openSession(test, sql, 'runner_jobs');
  const { organizationId } = by.org;
  const expired = transition(job, 'actions_expire', { organizationId, actionIds: [action.id] });
  await job.waits();
  await session.commit();
  test.same(await expired, { expired: 0 });
  test.match(await actionRow(sql, action.id), { status: 'approved' });
});
