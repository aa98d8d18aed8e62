import { randomUUID } from 'node:crypto';
import t from 'tap';
import {
  cancelTask,
  completePlan,
  completeRun,
  completeVerdict,
  createInitiative,
  createSecondProfile,
  createTask,
  createTestOrganization,
  make,
  openItems,
  patchTask,
  planned,
  requestRows,
  runMode,
  runNew,
  runNext,
  statuses,
  taskRow,
} from '../../support/fixtures.ts';
import {
  acknowledge,
  createAsking,
  createBudgetQuestion,
  createNotice,
  createRepair,
  failContract,
  failedCheck,
  onlyItem,
  respond,
} from '../../support/inbox_fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSession, openSql, refusal, transition } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const notOpen = { status: 409, code: 'human_inbox_item_not_open' };
const notAnOption = { status: 400, code: 'validation_failed', reason: 'not_an_option' };
const missing = { status: 404, code: 'human_inbox_item_not_found' };

scenario('an answer to a question wakes its task once, and stays with it', async (test) => {
  const org = await createTestOrganization(sql);
  const { taskId, item } = await createAsking(sql, org, ['one', 'two']);
  const answered = await respond(sql.api, org, item.id, 'neither', 'Ask Anna');
  test.match(answered, { id: item.id, status: 'responded', response: 'neither', note: 'Ask Anna' });
  test.match(await taskRow(sql, org, taskId), {
    status: 'pending',
    blockers: [],
    answers: [
      {
        inboxItemId: item.id,
        purpose: 'needs_input',
        question: 'Which one?',
        response: 'neither',
        note: 'Ask Anna',
        respondedAt: /^\d{4}-.*Z$/,
      },
    ],
  });
  const live = (await requestRows(sql, org, taskId)).filter(({ state }) => state === 'published');
  test.equal(live.length, 1);
  test.match(await refusal(respond(sql.api, org, item.id, 'neither')), notOpen, 'a repeat');
  const run = await runNext(sql, org);
  test.equal(run.taskId, taskId);
});

scenario('a second question comes after the first answer, and both answers stay in their order', async (test) => {
  const org = await createTestOrganization(sql);
  const { taskId, item } = await createAsking(sql, org);
  await respond(sql.api, org, item.id, 'first');
  await completeRun(sql.api, await runNext(sql, org), { result: { kind: 'needs_input', question: 'And now?' } });
  await respond(sql.api, org, (await onlyItem(sql, org, taskId)).id, 'second');
  test.match(await taskRow(sql, org, taskId), { answers: [{ response: 'first' }, { response: 'second' }] });
});

scenario('a repair question takes one of its options', async (test) => {
  const org = await createTestOrganization(sql);
  const { taskId, item } = await createRepair(sql, org);
  test.match(await refusal(respond(sql.api, org, item.id, 'Please mend it')), notAnOption);
  test.match(await refusal(respond(sql.api, org, item.id, 'raise')), notAnOption);
  test.match(await taskRow(sql, org, taskId), { status: 'blocked' });
});

scenario(
  'try_again: the task runs again, with the answer and what was wrong; then a person is asked again',
  async (test) => {
    const org = await createTestOrganization(sql);
    const { taskId, item } = await createRepair(sql, org);
    await respond(sql.api, org, item.id, 'try_again', 'Use the net amounts');
    test.match(await taskRow(sql, org, taskId), {
      status: 'pending',
      contract: { failures: 2, checks: [failedCheck] },
      answers: [{ purpose: 'repair', response: 'try_again', note: 'Use the net amounts' }],
    });
    await failContract(sql, await runNext(sql, org));
    test.match(await onlyItem(sql, org, taskId), { purpose: 'repair' });
  },
);

scenario('accept: the task is completed with the refused result, and what waited for it goes on', async (test) => {
  const org = await createTestOrganization(sql);
  const { taskId, runId, item } = await createRepair(sql, org);
  const after = await createTask(sql, org, { dependsOn: [taskId] });
  await respond(sql.api, org, item.id, 'accept');
  test.match(await taskRow(sql, org, taskId), {
    status: 'completed',
    phase: 'closed',
    contract: null,
    completed_at: Date,
    result: {
      kind: 'completed',
      summary: 'As good as it gets',
      artifacts: [{ path: 'report.json', runId }],
      completion: { disposition: 'accepted', completionRevision: 3, runIds: [runId], checks: [failedCheck] },
    },
  });
  test.match(await taskRow(sql, org, after.id), { status: 'pending' });
  test.match(await refusal(respond(sql.api, org, item.id, 'accept')), notOpen);
});

scenario('accept of the last task below an initiative completes that too', async (test) => {
  const org = await createTestOrganization(sql);
  const root = (await createTask(sql, org, { kind: 'initiative' })).id;
  const { taskId, item } = await createRepair(sql, org, { parentId: root });
  await respond(sql.api, org, item.id, 'accept');
  test.same(await statuses(sql, org, { root, taskId }), { root: 'completed', taskId: 'completed' });
});

scenario('cancel: the task is cancelled by a person', async (test) => {
  const org = await createTestOrganization(sql);
  for (const make of [createRepair, createBudgetQuestion]) {
    const { taskId, item } = await make(sql, org);
    test.match(await respond(sql.api, org, item.id, 'cancel'), { status: 'responded', response: 'cancel' });
    test.match(await taskRow(sql, org, taskId), { status: 'cancelled', failure_origin_id: null });
    test.same(await openItems(sql, org, taskId), []);
  }
});

scenario('raise: one allowance more, and the task goes on', async (test) => {
  const org = await createTestOrganization(sql);
  const { taskId, item } = await createBudgetQuestion(sql, org);
  test.match(await refusal(respond(sql.api, org, item.id, 'try_again')), notAnOption);
  await respond(sql.api, org, item.id, 'raise');
  test.match(await taskRow(sql, org, taskId), {
    status: 'pending',
    spec: { budget: { maxAgentRuns: 11, maxAttemptsPerPhase: 3 } },
    answers: [],
  });
});

scenario('raise of a budget that was lowered below what is used is enough by itself', async (test) => {
  const org = await createTestOrganization(sql);
  const { taskId, item } = await createBudgetQuestion(sql, org);
  await patchTask(sql, org, taskId, { spec: { budget: { maxAgentRuns: 0 } } });
  await respond(sql.api, org, item.id, 'raise');
  test.match(await taskRow(sql, org, taskId), { status: 'pending', spec: { budget: { maxAgentRuns: 11 } } });
});

scenario(
  'raise of an initiative’s budget wakes all that waited for it below, and answers their questions',
  async (test) => {
    const org = await createTestOrganization(sql);
    const { root, one, two, three } = await createInitiative(sql, org, ['one', 'two', 'three'], {
      spec: { budget: { maxAgentRuns: 1 } },
    });
    await completeRun(sql.api, await runNext(sql, org));
    const waiting = [two, three];
    for (const id of waiting) {
      const { version } = await taskRow(sql, org, id);
      await transition(sql.api, 'task_update', {
        organizationId: org.organizationId,
        taskRef: id,
        expectedVersion: version,
        patch: { title: 'settled' },
        actor: { kind: 'owner' },
      });
    }
    test.same(await statuses(sql, org, { one, two, three }), { one: 'completed', two: 'blocked', three: 'blocked' });
    await respond(sql.api, org, (await onlyItem(sql, org, two)).id, 'raise');
    test.match(await taskRow(sql, org, root), { spec: { budget: { maxAgentRuns: 501 } } });
    for (const id of waiting) {
      test.match(await taskRow(sql, org, id), { status: 'pending', spec: { budget: { maxAgentRuns: 10 } } });
      test.same(await openItems(sql, org, id), []);
    }
  },
);

scenario('what its task’s end has cancelled is not answered any more', async (test) => {
  const org = await createTestOrganization(sql);
  const { taskId, item } = await createAsking(sql, org);
  const notice = await createNotice(sql, org);
  await cancelTask(sql.api, org, taskId);
  await cancelTask(sql.api, org, notice.taskId);
  test.match(await refusal(respond(sql.api, org, item.id, 'x')), notOpen);
  test.match(await refusal(acknowledge(sql.api, org, notice.item.id)), notOpen);
});

scenario('another organization’s items are not there, nor is anything of a deleted one', async (test) => {
  const [org, other] = [await createTestOrganization(sql), await createTestOrganization(sql)];
  const { taskId, item } = await createAsking(sql, org);
  for (const [at, id] of [
    [other, item.id],
    [org, randomUUID()],
  ] as const) {
    test.match(await refusal(respond(sql.api, at, id, 'x')), missing);
    test.match(await refusal(acknowledge(sql.api, at, id)), missing);
  }
  test.match(await taskRow(sql, org, taskId), { status: 'blocked' });
  await transition(sql.api, 'organization_delete', { organizationId: org.organizationId });
  const gone = { status: 404, code: 'organization_not_found' };
  test.match(await refusal(respond(sql.api, org, item.id, 'x')), gone);
  test.match(await refusal(acknowledge(sql.api, org, item.id)), gone);
});

scenario('two people at once: the second finds it answered', async (test) => {
  const org = await createTestOrganization(sql);
  const { taskId, item } = await createRepair(sql, org);
  const [one, two] = [await openSession(test, sql), await openSession(test, sql)];
  await one.begin();
  await respond(one, org, item.id, 'try_again');
  const second = refusal(respond(two, org, item.id, 'cancel'));
  await two.waits();
  await one.commit();
  test.match(await second, notOpen);
  test.match(await taskRow(sql, org, taskId), { status: 'pending' });

  const elsewhere = await createTestOrganization(sql);
  const asking = await createAsking(sql, elsewhere);
  const settled = await Promise.allSettled(
    Array.from({ length: 8 }, (_, index) => respond(sql.api, elsewhere, asking.item.id, `answer ${index}`)),
  );
  test.equal(settled.filter(({ status }) => status === 'fulfilled').length, 1);
  const { answers: kept } = await taskRow(sql, elsewhere, asking.taskId);
  test.equal((kept as unknown[]).length, 1);
  const notice = await createNotice(sql, org);
  await one.begin();
  await acknowledge(one, org, notice.item.id);
  const late = refusal(acknowledge(two, org, notice.item.id));
  await two.waits();
  await one.commit();
  test.match(await late, notOpen);
});

scenario('an answer and a cancel of the task at once', async (test) => {
  const org = await createTestOrganization(sql);
  const { taskId, item } = await createAsking(sql, org);
  const [person, other] = [await openSession(test, sql), await openSession(test, sql)];
  await person.begin();
  await cancelTask(person, org, taskId);
  const answering = refusal(respond(other, org, item.id, 'x'));
  await other.waits();
  await person.commit();
  test.match(await answering, notOpen);
  const again = await createAsking(sql, org);
  await person.begin();
  await respond(person, org, again.item.id, 'x');
  const cancelling = cancelTask(other, org, again.taskId);
  await other.waits();
  await person.commit();
  await cancelling;
  test.match(await taskRow(sql, org, again.taskId), { status: 'cancelled' });
});

/** An operator who verifies, and a department who works. */
async function departments() {
  const operator = await createTestOrganization(sql);
  return { operator, growth: await createSecondProfile(sql, operator, { kind: 'department' }) };
}

scenario('accept of what a verifier refused twice: nobody judges it again', async (test) => {
  const { operator, growth } = await departments();
  const run = await runNew(sql, growth, { spec: { verification: 'agent' } });
  await completeRun(sql.api, run, { result: { kind: 'completed', summary: 'First', artifacts: [] } });
  await completeVerdict(sql, await runMode(sql, operator, 'verify'), 'failed');
  const second = await runMode(sql, growth, 'execute');
  await completeRun(sql.api, second, { result: { kind: 'completed', summary: 'Second', artifacts: [] } });
  await completeVerdict(sql, await runMode(sql, operator, 'verify'), 'failed');
  await respond(sql.api, growth, (await onlyItem(sql, growth, run.taskId)).id, 'accept');
  test.match(await taskRow(sql, growth, run.taskId), {
    status: 'completed',
    phase: 'closed',
    result: { summary: 'Second', completion: { disposition: 'accepted', runIds: [second.runId] } },
  });
});

scenario('accept of an initiative that a verifier refused twice ends its new plan', async (test) => {
  const { operator, growth } = await departments();
  const { root } = await createInitiative(sql, growth, ['one'], { spec: { verification: 'agent' } });
  await completeRun(sql.api, await runNext(sql, growth));
  await completeVerdict(sql, await runMode(sql, operator, 'verify'), 'failed');
  await completePlan(sql, await runMode(sql, growth, 'plan'), [make('two'), make('three')]);
  for (const _ of ['two', 'three']) await completeRun(sql.api, await runNext(sql, growth));
  await completeVerdict(sql, await runMode(sql, operator, 'verify'), 'failed');
  test.match(await taskRow(sql, growth, root), { status: 'blocked', phase: 'plan' });
  await respond(sql.api, growth, (await onlyItem(sql, growth, root)).id, 'accept');
  test.match(await taskRow(sql, growth, root), {
    status: 'completed',
    replan: null,
    result: { kind: 'completed', summary: /^3 of the tasks/, completion: { disposition: 'accepted' } },
  });
});

scenario('raise of replans that are used up: the initiative is planned again', async (test) => {
  const org = await createTestOrganization(sql);
  const { root, one } = await planned(sql, org, [make('one')], { spec: { budget: { maxReplans: 0 } } });
  await cancelTask(sql.api, org, String(one));
  const id = String(root);
  test.match(await taskRow(sql, org, id), { status: 'blocked', blockers: [{ kind: 'budget' }] });
  await respond(sql.api, org, (await onlyItem(sql, org, id)).id, 'raise');
  test.match(await taskRow(sql, org, id), {
    status: 'pending',
    phase: 'plan',
    replan_count: 1,
    spec: { budget: { maxReplans: 2, maxAgentRuns: 500 } },
  });
});
