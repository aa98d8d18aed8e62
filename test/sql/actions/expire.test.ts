import t from 'tap';
import { z } from 'zod';
import { functionText } from '../../../engine/db/function_text.ts';
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

const DUE = functionText('actions_due', { kind: '$1', organizations: '$2', rows: '$3', after: '$4' });
const dueSchema = z.array(z.object({ organization_id: z.uuid(), id: z.uuid() }));

for (const [kind, time] of [
  ['execute', 'due_at'],
  ['expire', 'expires_at'],
] as const) {
  t.test(`${kind}: organizations take turns, the oldest of each first`, async (test) => {
    // A database of its own: of what is due there is what the test has made.
    const own = await openSql(test);

    async function read(organizations: number, rows: number, after?: string) {
      const { rows: found } = await own.jobs.query(`select * from ${DUE}`, [kind, organizations, rows, after]);
      return dueSchema.parse(found);
    }

    /** So many, due for so many seconds and a bit less one after the other, against the order of their ids. */
    async function make(count: number, seconds: number): Promise<string[]> {
      const risks = kind === 'execute' ? [] : ['external'];
      const by = await createProposer(own, { constraints: { approvalRequiredForRisk: risks } });
      for (let made = 0; made < count; made += 1) await propose(own, by, { arguments: { made } });
      const { rows } = await own.owner.query<{ id: string }>(
        `update app.actions a set ${time} = now() - make_interval(secs => $2) + n.n * interval '1 millisecond'
         from (select id, row_number() over (order by id desc) as n from app.actions where organization_id = $1) n
         where a.organization_id = $1 and a.id = n.id
         returning a.id`,
        [by.org.organizationId, seconds],
      );
      return rows
        .map(({ id }) => id)
        .toSorted()
        .toReversed();
    }

    const large = await make(5, 3_600);
    const [small] = await make(1, 10);
    const ids = async (organizations: number, rows: number) => (await read(organizations, rows)).map((row) => row.id);
    const turns = [large[0], small, ...large.slice(1)];
    test.same(await ids(100, 50), turns, 'where little is due');
    test.same(await ids(2, 3), turns.slice(0, 4), 'and where much is');
    const first = await read(1, 1);
    const second = await read(1, 1, first[0]?.organization_id);
    test.same([...first, ...second].map(({ id }) => id).toSorted(), [large[0], small].toSorted(), 'page by page');
  });
}
