import t from 'tap';
import {
  actionRow,
  approve,
  createProposer,
  dueActions,
  jobOf,
  passTime,
  propose,
} from '../../support/action_fixtures.ts';
import { completeRun, taskRow } from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSession, openSql } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const NO_APPROVAL = { constraints: { approvalRequiredForRisk: [] } };
const OVERDUE = { status: 'cancelled', reason: { code: 'overdue' }, due_at: null, lease_expires_at: null };

/** As if it had been proposed so many days ago, and approved then or later. */
const age = (id: string, days: number, decidedDays = days) =>
  sql.owner.query(
    `update app.actions set created_at = now() - make_interval(days => $2),
       decided_at = case when decided_at is not null then now() - make_interval(days => $3) end where id = $1`,
    [id, days, decidedDays],
  );

scenario('what was tried, and put off until its time was over, is cancelled', async (test) => {
  const by = await createProposer(sql, NO_APPROVAL);
  const { id } = await propose(sql, by);
  const job = jobOf(sql.jobs, by.org, id);
  await age(id, 8);
  test.match(await job.lease(), { leased: true }, 'it is tried once, however long the jobs stood still');
  test.match(await job.lease(), { leased: true }, 'and its holder keeps the lease');
  await job.release(0);
  test.same(await dueActions(sql, by.org, 'execute'), [id]);
  const other = jobOf(sql.jobs, by.org, id);
  test.match(await other.lease(), { leased: false, action: OVERDUE });
  test.match(await other.lease(), { leased: false, action: { version: 2 } }, 'a repeat changes nothing');
  test.same(await dueActions(sql, by.org, 'execute'), []);
  test.not((await propose(sql, by)).id, id, 'it may be proposed again');
});

scenario('one whose jobs die before the intent has an end too', async (test) => {
  const by = await createProposer(sql, NO_APPROVAL);
  const { id } = await propose(sql, by);
  for (const days of [0, 6]) {
    await age(id, days);
    test.match(await jobOf(sql.jobs, by.org, id).lease(), { leased: true });
    await passTime(sql, id);
  }
  await age(id, 7);
  test.match(await jobOf(sql.jobs, by.org, id).lease(), { leased: false, action: OVERDUE });
});

scenario('the time counts from the approval, and the task that waits goes on', async (test) => {
  const by = await createProposer(sql);
  const { id } = await propose(sql, by);
  await completeRun(sql.api, by.run, { result: { kind: 'waiting', reason: 'It has to be done', actionIds: [id] } });
  await approve(sql.api, by.org, id);
  const job = jobOf(sql.jobs, by.org, id);
  await age(id, 13, 6);
  for (let tries = 0; tries < 2; tries += 1) {
    test.match(await job.lease(), { leased: true });
    await job.release(0);
  }
  test.match(await taskRow(sql, by.org, by.run.taskId), { status: 'blocked' });
  await age(id, 14, 7);
  const two = await Promise.all([job.lease(), jobOf(sql.jobs, by.org, id).lease()]);
  test.match(two, [{ leased: false }, { leased: false }], 'two at once');
  test.match(await actionRow(sql, id), { ...OVERDUE, version: 3 });
  test.match(await taskRow(sql, by.org, by.run.taskId), {
    status: 'pending',
    answers: [{ actionId: id, response: 'cancelled' }],
  });
});

scenario('an intent that is committed comes to its end, however late', async (test) => {
  const by = await createProposer(sql, NO_APPROVAL);
  const { id } = await propose(sql, by);
  const job = jobOf(sql.jobs, by.org, id);
  await job.lease();
  const session = await openSession(test, sql, 'runner_jobs');
  await session.begin();
  await jobOf(session, by.org, id, job.leaseId).begin();
  const other = jobOf(sql.jobs, by.org, id);
  const late = other.lease();
  await session.commit();
  test.match(await late, { leased: false, action: { status: 'executing' } });
  await age(id, 30);
  await passTime(sql, id);
  test.match(await other.lease(), { leased: true, purpose: 'look_up' });
  await other.finish('found', { result: {} });
  test.match(await actionRow(sql, id), { status: 'succeeded' });
});
