import { randomUUID } from 'node:crypto';
import t from 'tap';
import {
  capability,
  claimNext,
  completeRun,
  createInitiative,
  createSecondProfile,
  createTask,
  createTestOrganization,
  failRun,
  heartbeat,
  lastRequest,
  runNew,
  runNext,
  SERVICE,
  taskRow,
  updateOrganization,
} from '../../support/fixtures.ts';
import { createItem, onlyItem, respond } from '../../support/inbox_fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSession, openSql, refusal } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const unauthorized = { status: 401, code: 'agent_unauthorized' };
const conflict = { status: 409, code: 'state_conflict' };

scenario('a run asks and tells; nothing waits for what does not block', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  const actor = capability(run.executionToken);
  test.match(await createItem(sql.api, org, run.taskId, { body: 'Long', options: ['a', 'b'] }, actor), {
    kind: 'question',
    status: 'open',
    purpose: 'agent',
    blocking: false,
    title: 'Which one?',
    body: 'Long',
    options: ['a', 'b'],
    allow_free_text: true,
    task_id: run.taskId,
    run_id: run.runId,
  });
  test.match(await createItem(sql.api, org, 'T-1', { kind: 'notification', title: 'Half done' }, actor), {
    kind: 'notification',
    body: '',
    options: [],
  });
  await completeRun(sql.api, run);
  test.match(await taskRow(sql, org, run.taskId), { status: 'completed' });
});

scenario('an answer that comes while the run goes on is in the state of its task', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  const item = await createItem(sql.api, org, run.taskId, { blocking: true }, capability(run.executionToken));
  test.match(await taskRow(sql, org, run.taskId), { status: 'running' });
  await respond(sql.api, org, item.id, 'the second');
  test.match(await taskRow(sql, org, run.taskId), {
    status: 'running',
    answers: [{ inboxItemId: item.id, purpose: 'agent', response: 'the second' }],
  });
  test.match(await heartbeat(sql.api, run), { status: 'starting' });
  await completeRun(sql.api, run);
  test.match(await taskRow(sql, org, run.taskId), { status: 'completed' });
});

scenario(
  'an open blocking question blocks the task when its run is over; the answer lets it run again',
  async (test) => {
    const org = await createTestOrganization(sql);
    for (const end of ['complete', 'fail'] as const) {
      const run = await runNew(sql, org);
      const item = await createItem(sql.api, org, run.taskId, { blocking: true }, capability(run.executionToken));
      if (end === 'complete') await completeRun(sql.api, run);
      else await failRun(sql.api, run, { retryable: true });
      test.match(await taskRow(sql, org, run.taskId), {
        status: 'blocked',
        blockers: [{ kind: 'human', inboxItemId: item.id }],
      });
      await respond(sql.api, org, item.id, 'the second');
      test.match(
        await taskRow(sql, org, run.taskId),
        { status: 'pending', answers: [{ response: 'the second' }] },
        end,
      );
      const again = await runNext(sql, org);
      test.equal(again.taskId, run.taskId);
      await completeRun(sql.api, again);
      test.match(await taskRow(sql, org, run.taskId), { status: 'completed' });
    }
  },
);

scenario('two blocking questions: the task waits for both answers', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  const actor = capability(run.executionToken);
  const [one, two] = [
    await createItem(sql.api, org, run.taskId, { blocking: true }, actor),
    await createItem(sql.api, org, run.taskId, { blocking: true }, actor),
  ];
  await completeRun(sql.api, run);
  await respond(sql.api, org, two.id, 'yes');
  test.match(await taskRow(sql, org, run.taskId), { status: 'blocked', blockers: [{ inboxItemId: one.id }] });
  await respond(sql.api, org, one.id, 'no');
  test.match(await taskRow(sql, org, run.taskId), { status: 'pending' });
});

scenario('a task that does not run is blocked at once, and a claim of it ends', async (test) => {
  const org = await createTestOrganization(sql);
  const task = await createTask(sql, org);
  const claim = await claimNext(sql, org);
  const item = await createItem(sql.api, org, task.id, { blocking: true }, SERVICE);
  test.match(item, { run_id: null });
  test.match(await taskRow(sql, org, task.id), { status: 'blocked', blockers: [{ kind: 'human' }] });
  test.match(await lastRequest(sql, org, task.id), { id: claim.runRequestId, state: 'cancelled' });
  await respond(sql.api, org, item.id, 'go');
  test.match(await lastRequest(sql, org, task.id), { state: 'published' });
});

scenario('closed options are the only answers, others are suggestions', async (test) => {
  const org = await createTestOrganization(sql);
  const task = await createTask(sql, org);
  const closed = await createItem(sql.api, org, task.id, { options: ['a', 'b'], allowFreeText: false });
  const reason = { status: 400, code: 'validation_failed', reason: 'not_an_option' };
  test.match(await refusal(respond(sql.api, org, closed.id, 'c')), reason);
  test.match(await respond(sql.api, org, closed.id, 'b'), { response: 'b' });
  const open = await createItem(sql.api, org, task.id, { options: ['a', 'b'] });
  test.match(await respond(sql.api, org, open.id, 'c'), { response: 'c' });
});

scenario('a department’s run asks about its own task and what is below it alone', async (test) => {
  const org = await createTestOrganization(sql);
  const department = await createSecondProfile(sql, org, { kind: 'department' });
  const other = await createTask(sql, org, { scheduledAt: '2099-01-01T00:00:00Z' });
  const run = await runNew(sql, department);
  const actor = capability(run.executionToken);
  test.match(await refusal(createItem(sql.api, org, other.id, {}, actor)), unauthorized);
  test.match(await refusal(createItem(sql.api, org, randomUUID(), {}, actor)), unauthorized);
  test.match(await createItem(sql.api, org, run.taskId, {}, actor), { run_id: run.runId });
  await completeRun(sql.api, run);
  test.match(await refusal(createItem(sql.api, org, run.taskId, {}, actor)), unauthorized, 'its lease is over');
});

scenario('there is nothing to ask about what is over, elsewhere, or suspended', async (test) => {
  const [org, other] = [await createTestOrganization(sql), await createTestOrganization(sql)];
  const run = await runNew(sql, org);
  const missing = { status: 404, code: 'task_not_found' };
  test.match(await refusal(createItem(sql.api, other, run.taskId, {}, SERVICE)), missing);
  test.match(await refusal(createItem(sql.api, org, 'T-99', {}, SERVICE)), missing);
  const foreign = await runNew(sql, other);
  const actor = capability(foreign.executionToken);
  test.match(await refusal(createItem(sql.api, org, run.taskId, {}, actor)), unauthorized);
  await completeRun(sql.api, run);
  test.match(await refusal(createItem(sql.api, org, run.taskId, {}, SERVICE)), conflict);
  const task = await createTask(sql, org);
  await updateOrganization(sql.api, org, { status: 'suspended' });
  test.match(await refusal(createItem(sql.api, org, task.id, {}, SERVICE)), conflict);
});

scenario('a task has at most a hundred open items', async (test) => {
  const org = await createTestOrganization(sql);
  const task = await createTask(sql, org);
  for (let made = 0; made < 100; made += 1) await createItem(sql.api, org, task.id, {}, SERVICE);
  test.match(await refusal(createItem(sql.api, org, task.id, {}, SERVICE)), conflict);
});

scenario('a question and the end of the run at once: either it blocks, or it is refused', async (test) => {
  const org = await createTestOrganization(sql);
  const [agent, worker] = [await openSession(test, sql), await openSession(test, sql)];
  const run = await runNew(sql, org);
  await agent.begin();
  await createItem(agent, org, run.taskId, { blocking: true }, capability(run.executionToken));
  const completing = completeRun(worker, run);
  await worker.waits();
  await agent.commit();
  await completing;
  test.match(await taskRow(sql, org, run.taskId), { status: 'blocked' });
  const late = await runNew(sql, org);
  await worker.begin();
  await completeRun(worker, late);
  const asking = refusal(createItem(agent, org, late.taskId, { blocking: true }, capability(late.executionToken)));
  await agent.waits();
  await worker.commit();
  test.match(await asking, unauthorized);
});

scenario('a blocking question about an initiative holds it back although its tasks are over', async (test) => {
  const org = await createTestOrganization(sql);
  const { root } = await createInitiative(sql, org, ['only']);
  const item = await createItem(sql.api, org, root, { blocking: true }, SERVICE);
  await completeRun(sql.api, await runNext(sql, org));
  test.match(await taskRow(sql, org, root), { status: 'blocked', blockers: [{ inboxItemId: item.id }] });
  await respond(sql.api, org, (await onlyItem(sql, org, root)).id, 'fine');
  test.match(await taskRow(sql, org, root), { status: 'completed' });
});
