import { randomUUID } from 'node:crypto';
import t from 'tap';
import {
  approve,
  createProposer,
  createSibling,
  jobOf,
  type Proposer,
  passTime,
  propose,
  reject,
} from '../../support/action_fixtures.ts';
import {
  cancelTask,
  claimNext,
  completeRun,
  requestRows,
  retryTask,
  stageOutcome,
  taskRow,
} from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSession, openSql, refusal, type Session, transition } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const waiting = (...actionIds: string[]) => ({ kind: 'waiting', reason: 'They have to be done', actionIds });

/** A task that waits for three actions. */
async function waits() {
  const by = await createProposer(sql);
  const ids: string[] = [];
  for (const amount of [1, 2, 3]) ids.push((await propose(sql, by, { arguments: { amount } })).id);
  await completeRun(sql.api, by.run, { result: waiting(...ids) });
  const [first = '', second = '', third = ''] = ids;
  return { by, taskId: by.run.taskId, ids, first, second, third };
}

const blockers = (...ids: string[]) => ids.map((actionId) => ({ kind: 'action', actionId }));

scenario(
  'a task waits for its actions, and goes on once when the last is over, with what became of them',
  async (test) => {
    const { by, taskId, ids, first, second, third } = await waits();
    test.match(await taskRow(sql, by.org, taskId), { status: 'blocked', blockers: blockers(...ids) });
    await reject(sql.api, by.org, first, { reason: 'Not this one' });
    test.match(await taskRow(sql, by.org, taskId), { status: 'blocked', blockers: blockers(second, third) });
    await approve(sql.api, by.org, second);
    test.match(await taskRow(sql, by.org, taskId), { blockers: blockers(second, third) }, 'approved is not over');
    await Promise.all([
      reject(sql.api, by.org, third),
      (async () => {
        const job = jobOf(sql.jobs, by.org, second);
        await job.lease();
        await job.begin();
        await job.finish('succeeded', { result: { id: 'x' } });
      })(),
    ]);
    test.match(await taskRow(sql, by.org, taskId), {
      status: 'pending',
      waiting_action_ids: null,
      answers: [
        { actionId: first, purpose: 'action', response: 'rejected', note: 'Not this one' },
        { actionId: second, response: 'succeeded', result: { id: 'x' } },
        { actionId: third, response: 'rejected' },
      ],
    });
    test.equal((await requestRows(sql, by.org, taskId)).filter(({ state }) => state === 'published').length, 1);
    test.match((await claimNext(sql, by.org)).task, { id: taskId });
  },
);

/** What ends the third of them. */
const ENDS = {
  'a decision': async (by: Proposer, third: string) => (session: Session) => reject(session, by.org, third),
  'a response': async (by: Proposer, third: string) => {
    await approve(sql.api, by.org, third);
    const job = jobOf(sql.jobs, by.org, third);
    await job.lease();
    await job.begin();
    return (session: Session) => jobOf(session, by.org, third, job.leaseId).finish('succeeded', { result: {} });
  },
};

for (const [name, prepare] of Object.entries(ENDS)) {
  scenario(`a decision, and ${name} in a transaction that overlaps: the task is woken once`, async (test) => {
    const { by, taskId, first, second, third } = await waits();
    await reject(sql.api, by.org, first);
    const end = await prepare(by, third);
    const [one, other] = [
      await openSession(test, sql),
      await openSession(test, sql, name === 'a response' ? 'runner_jobs' : 'runner_api'),
    ];
    await one.begin();
    await reject(one, by.org, second);
    await other.begin();
    const ended = end(other);
    await other.waits();
    test.match(await taskRow(sql, by.org, taskId), { status: 'blocked' }, 'neither is committed');
    await one.commit();
    await ended;
    test.match(await taskRow(sql, by.org, taskId), { status: 'blocked' }, 'the third is not');
    await other.commit();
    test.match(await taskRow(sql, by.org, taskId), {
      status: 'pending',
      answers: [{ actionId: first }, { actionId: second }, { actionId: third }],
    });
    test.equal((await requestRows(sql, by.org, taskId)).filter(({ state }) => state === 'published').length, 1);
  });
}

scenario('an unknown outcome still blocks, until a person has reconciled it', async (test) => {
  const { by, taskId, first, second, third } = await waits();
  for (const id of [second, third]) await reject(sql.api, by.org, id);
  await approve(sql.api, by.org, first);
  const job = jobOf(sql.jobs, by.org, first);
  await job.lease();
  await job.begin();
  const { organizationId } = by.org;
  await passTime(sql, first);
  const look = jobOf(sql.jobs, by.org, first);
  await look.lease();
  await sql.owner.query('update app.actions set look_up_until = now() where id = $1', [first]);
  await look.finish('none');
  const explained = await transition(sql.api, 'task_explain', { organizationId, taskRef: taskId });
  test.match(explained, {
    tasks: [{ causes: [{ kind: 'action', actionId: first, status: 'unknown', inboxItemId: String }] }],
  });
  await transition(sql.api, 'action_reconcile', {
    organizationId,
    actionId: first,
    outcome: 'failed',
    note: 'I have looked',
    actor: { kind: 'owner', by: 'ada' },
  });
  test.match(await taskRow(sql, by.org, taskId), { status: 'pending' });
});

scenario('the explanation names the open approval', async (test) => {
  const { by, taskId, first, ids } = await waits();
  const { organizationId } = by.org;
  const { rows } = await sql.owner.query('select id from app.human_inbox_items where action_id = $1', [first]);
  const { tasks } = (await transition(sql.api, 'task_explain', { organizationId, taskRef: taskId })) as never as {
    tasks: { causes: unknown[] }[];
  };
  test.equal(tasks[0]?.causes.length, ids.length);
  test.match(tasks[0]?.causes[0], {
    kind: 'action',
    actionId: first,
    status: 'awaiting_approval',
    title: 'Create {"amount":1}',
    inboxItemId: rows[0].id,
  });
});

scenario('actions that are over already block nothing', async (test) => {
  const by = await createProposer(sql);
  const { id } = await propose(sql, by);
  await reject(sql.api, by.org, id);
  await completeRun(sql.api, by.run, { result: waiting(id) });
  test.match(await taskRow(sql, by.org, by.run.taskId), { status: 'pending', answers: [{ response: 'rejected' }] });
});

scenario('a task that is cancelled waits for nothing, also when it is brought back', async (test) => {
  const { by, taskId } = await waits();
  await cancelTask(sql.api, by.org, taskId);
  test.match(await taskRow(sql, by.org, taskId), { status: 'cancelled', waiting_action_ids: null });
  await retryTask(sql.api, by.org, taskId);
  test.match(await taskRow(sql, by.org, taskId), { status: 'pending', blockers: [] });
});

scenario('only a task’s own actions are waited for', async (test) => {
  const by = await createProposer(sql);
  const sibling = await createSibling(sql, by);
  const { id } = await propose(sql, sibling);
  const refused = { status: 400, code: 'validation_failed', reason: 'unknown_action' };
  for (const actionId of [id, randomUUID()]) {
    test.match(await refusal(completeRun(sql.api, by.run, { result: waiting(actionId) })), refused);
    test.match(await refusal(stageOutcome(sql, by.run, waiting(actionId))), refused);
  }
  await stageOutcome(sql, sibling.run, waiting(id));
  await completeRun(sql.api, sibling.run);
  test.match(await taskRow(sql, by.org, sibling.run.taskId), { status: 'blocked', blockers: blockers(id) });
});
