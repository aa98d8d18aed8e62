import { randomUUID } from 'node:crypto';
import t from 'tap';
import type { z } from 'zod';
import type { taskExplanationSchema } from '../../../api/tasks/explain.ts';
import { approve, createProposer, propose } from '../../support/action_fixtures.ts';
import { agentPath, expectSuccess, ownerPath, refusalOf, sqlOf } from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import {
  cancelTask,
  claimNext,
  completeRun,
  createInitiative,
  createProfile,
  createSecondProfile,
  createTask,
  createTestOrganization,
  failRun,
  insertOrganization,
  retryTask,
  runNew,
  runNext,
  setWorkDispatch,
  startRun,
  type TestOrganization,
  updateOrganization,
  updateProfile,
} from '../../support/fixtures.ts';
import { createAsking, createBudgetQuestion } from '../../support/inbox_fixtures.ts';

const app = await startTestApp(t);
const sql = sqlOf(app);

type Explanation = z.output<typeof taskExplanationSchema>;
const ask = (org: TestOrganization, ref: string) => app.owner.get<Explanation>(ownerPath(org, `/tasks/${ref}/explain`));
const explain = async (org: TestOrganization, ref: string) => expectSuccess(await ask(org, ref));
/** Each end of the chain: which task, what, and who has to act. */
const roots = async (org: TestOrganization, ref: string) =>
  (await explain(org, ref)).rootCauses.map(({ task, cause }) => [task.identifier, cause.kind, cause.actor]);

t.test('a ready task waits for a worker, a claimed one for its start, a running one runs', async (t) => {
  const org = await createTestOrganization(sql);
  const task = await createTask(sql, org);
  const ready = await explain(org, 'T-1');
  t.match(ready, { taskId: task.id, identifier: 'T-1', status: 'pending', phase: 'execute', truncated: false });
  t.match(ready.causes, [{ kind: 'worker', actor: 'worker', since: /Z$/, key: org.profileKey }]);
  t.match(ready.summary, /^T-1 is ready since .*Z, and no worker has taken it\.$/);
  const claim = await claimNext(sql, org);
  t.match((await explain(org, 'T-1')).causes, [{ kind: 'claimed', actor: 'worker', until: /Z$/ }]);
  const run = await startRun(sql.api, claim);
  t.match((await explain(org, 'T-1')).causes, [{ kind: 'running', runId: run.runId, since: /Z$/ }]);
  await completeRun(sql.api, run);
  t.match(await explain(org, 'T-1'), { causes: [], rootCauses: [], summary: 'T-1 is completed.' });
});

t.test('capacity, backoff, a stop and a suspension hold a ready task back', async (t) => {
  const org = await createTestOrganization(sql, { maxConcurrentRuns: 1, limits: { maxConcurrentRuns: 2 } });
  const second = await createSecondProfile(sql, org, { maxConcurrentRuns: 5 });
  await createTask(sql, org);
  await createTask(sql, org);
  const first = await runNext(sql, org);
  t.match((await explain(org, 'T-2')).causes, [
    { kind: 'profile_capacity', actor: 'worker', key: org.profileKey, held: 1, capacity: 1 },
  ]);
  await createTask(sql, second);
  await runNext(sql, second);
  t.match((await explain(org, 'T-2')).causes, [
    { kind: 'organization_capacity', held: 2, capacity: 2 },
    { kind: 'profile_capacity' },
  ]);
  const message = 'The command ended with exit status 3\nno such ledger\n  at all';
  await failRun(sql.api, first, { retryable: true, message });
  const waits = await explain(org, 'T-1');
  t.match(waits.causes, [{ kind: 'backoff', actor: 'time', until: /Z$/, attempt: 2, error: { message } }]);
  for (const said of [waits.summary, waits.causes[0]?.message]) t.ok(said?.includes(message), 'with each of its lines');
  t.same(await roots(org, 'T-2'), [['T-2', 'worker', 'worker']]);
  await updateOrganization(sql.api, org, { status: 'suspended' });
  t.same(await roots(org, 'T-2'), [['T-2', 'suspended', 'platform_operator']]);
  await updateOrganization(sql.api, org, { status: 'active' });
  await setWorkDispatch(sql.api, org, true);
  t.same(await roots(org, 'T-2'), [['T-2', 'worker', 'worker']], 'what is published may be taken');
  t.same(await roots(org, 'T-1'), [
    ['T-1', 'stopped', 'person'],
    ['T-1', 'backoff', 'time'],
  ]);
  await createTask(sql, second);
  t.match((await explain(org, 'T-4')).causes, [{ kind: 'stopped', since: /Z$/ }]);
});

t.test('an onboarding holds a ready task back, and a stop of the owner is said beside it', async (t) => {
  const made = randomUUID();
  await insertOrganization(sql.api, made, { slug: `s-${made}`, name: 'New', status: 'onboarding' });
  const profile = await createProfile(sql, made);
  const org = { organizationId: made, profileId: profile.id, profileKey: profile.key };
  await createTask(sql, org);
  t.match(await explain(org, 'T-1'), {
    causes: [{ kind: 'onboarding', actor: 'person' }],
    summary: 'T-1 is held back: the organization is not onboarded yet.',
  });
  await setWorkDispatch(sql.api, org, true);
  t.same(await roots(org, 'T-1'), [
    ['T-1', 'onboarding', 'person'],
    ['T-1', 'stopped', 'person'],
  ]);
});

t.test('each blocker says what a person needs', async (t) => {
  const org = await createTestOrganization(sql);
  const asking = await createAsking(sql, org);
  t.match((await explain(org, asking.taskId)).causes, [
    { kind: 'human', actor: 'person', inboxItemId: asking.item.id, title: 'Question about: A task' },
  ]);
  const budget = await createBudgetQuestion(sql, org);
  t.match(await explain(org, budget.taskId), {
    causes: [
      {
        kind: 'budget',
        actor: 'person',
        inboxItemId: budget.item.id,
        budgets: [{ taskId: budget.taskId, budget: 'maxAgentRuns', used: 1, allowed: 1 }],
      },
    ],
    summary: 'T-2 has used a budget up (maxAgentRuns of T-2: 1 of 1): raise it or cancel.',
  });
  const later = await createTask(sql, org, { scheduledAt: '2999-01-01T00:00:00Z' });
  t.match((await explain(org, later.id)).causes, [
    { kind: 'schedule', actor: 'time', until: '2999-01-01T00:00:00.000Z' },
  ]);
  await updateProfile(sql.api, org, { status: 'disabled' });
  t.match((await explain(org, later.id)).causes, [
    { kind: 'schedule' },
    { kind: 'profile', actor: 'person', agentProfileId: org.profileId, key: org.profileKey },
  ]);
});

t.test('an action waits for an owner, then for the backend', async (t) => {
  const by = await createProposer(sql);
  const action = await propose(sql, by, { summary: 'Refund order 5512' });
  await completeRun(sql.api, by.run, {
    result: { kind: 'waiting', reason: 'It has to be done', actionIds: [action.id] },
  });
  const cause = { kind: 'action', actionId: action.id, title: 'Refund order 5512' };
  t.match(await explain(by.org, by.run.taskId), {
    causes: [{ ...cause, actor: 'person', status: 'awaiting_approval', inboxItemId: /./ }],
    summary: 'T-1 waits until an owner decides about an action (awaiting_approval): Refund order 5512.',
  });
  await approve(sql.api, by.org, action.id);
  const approved = await explain(by.org, by.run.taskId);
  t.match(approved, {
    causes: [{ ...cause, actor: 'backend', status: 'approved' }],
    summary: 'T-1 waits for an action (approved): Refund order 5512.',
  });
  t.notOk('inboxItemId' in (approved.causes[0] ?? {}), 'there is nothing left to decide');
});

t.test('who is missing to verify a task is told, and not its owner', async (t) => {
  const org = await createTestOrganization(sql, { kind: 'department' });
  const judge = await createSecondProfile(sql, org, { key: 'judge', kind: 'operator' });
  const run = await runNew(sql, org, { spec: { verification: 'agent' } });
  await completeRun(sql.api, run);
  await updateProfile(sql.api, judge, { status: 'disabled' });
  t.match(await explain(org, run.taskId), {
    causes: [{ kind: 'profile', actor: 'person', reason: 'verifier', agentProfileId: judge.profileId, key: 'judge' }],
    summary: 'T-1 is to be verified by the disabled profile judge.',
  });
  await updateProfile(sql.api, judge, { kind: 'department', department: 'growth' });
  const { causes, summary } = await explain(org, run.taskId);
  t.match(causes, [{ kind: 'profile', reason: 'verifier', agentProfileId: undefined }]);
  t.equal(summary, 'T-1 has nobody who may verify it.');
  await updateProfile(sql.api, org, { status: 'disabled' });
  t.match((await explain(org, run.taskId)).causes, [{ kind: 'profile', reason: undefined, key: org.profileKey }]);
});

t.test('a run that waits says until when and why', async (t) => {
  const org = await createTestOrganization(sql);
  await createTask(sql, org);
  const run = await runNext(sql, org);
  const result = { kind: 'waiting', until: '2999-01-01T00:00:00Z', reason: 'The report comes out then' };
  await completeRun(sql.api, run, { result });
  t.match((await explain(org, 'T-1')).causes, [
    { kind: 'waiting', actor: 'time', until: '2999-01-01T00:00:00.000Z', reason: result.reason },
  ]);
});

t.test('prerequisites and children are followed to what is no other task', async (t) => {
  const org = await createTestOrganization(sql);
  const asking = await createAsking(sql, org);
  const after = await createTask(sql, org, { dependsOn: [asking.taskId] });
  const ids = await createInitiative(sql, org, ['one', 'two']);
  const last = await createTask(sql, org, { dependsOn: [after.id, ids.root] });
  const told = await explain(org, last.id);
  t.same(
    told.tasks.map((task) => [task.identifier, task.distance, task.viaTaskId]),
    [
      ['T-5', 0, null],
      ['T-2', 1, last.id],
      ['I-1', 1, last.id],
      ['T-1', 2, after.id],
      ['T-3', 2, ids.root],
      ['T-4', 2, ids.root],
    ],
  );
  t.match(told.causes, [
    { kind: 'dependency', actor: 'task', taskId: after.id, message: 'T-5 waits for T-2' },
    { kind: 'dependency', taskId: ids.root, message: 'T-5 waits for I-1' },
  ]);
  t.match(told.tasks[2]?.causes, [{ kind: 'children', open: 2 }]);
  t.match(told.rootCauses, [
    { task: { identifier: 'T-1' }, cause: { kind: 'human', inboxItemId: asking.item.id } },
    { task: { identifier: 'T-3' }, cause: { kind: 'worker' } },
    { task: { identifier: 'T-4' }, cause: { kind: 'worker' } },
  ]);
  t.equal(told.summary, 'T-1 waits for an answer in the inbox: Question about: A task (and 2 more).');
});

t.test('a failure and a cancel are told with the task where they began', async (t) => {
  const org = await createTestOrganization(sql);
  const ids = await createInitiative(sql, org, ['one', 'two'], { spec: { budget: { maxReplans: 0 } } });
  const after = await createTask(sql, org, { dependsOn: [ids.two] });
  await failRun(sql.api, await runNext(sql, org));
  const told = await explain(org, after.id);
  t.match(told.rootCauses, [
    { task: { id: ids.one }, cause: { kind: 'failed', actor: 'person', error: { message: 'It broke' } } },
  ]);
  t.match(told.summary, /^T-1 has failed: It broke\.$/);
  t.match((await explain(org, ids.two)).causes, [
    { kind: 'cancelled', actor: 'person', originTaskId: ids.one, message: 'T-2 was cancelled by the failure of T-1' },
  ]);
  await retryTask(sql.api, org, ids.one);
  await cancelTask(sql.api, org, ids.two);
  t.same(await roots(org, after.id), [['T-2', 'cancelled', 'person']]);
  t.same(await roots(org, ids.two), [['T-2', 'cancelled', 'person']]);
});

t.test('of very many tasks a hundred are told, and first what waits for a person', async (t) => {
  const org = await createTestOrganization(sql);
  const names = Array.from({ length: 120 }, (_, n) => `t${n}`);
  const ids = await createInitiative(sql, org, names);
  await updateProfile(sql.api, org, { status: 'disabled' });
  const asleep = await createSecondProfile(sql, org, { status: 'disabled' });
  await createTask(sql, asleep, { parentId: ids.root });
  await updateProfile(sql.api, org, { status: 'enabled' });
  const told = await explain(org, ids.root);
  t.equal(told.truncated, true);
  t.equal(told.tasks.length, 100);
  t.match(told.tasks[1], { distance: 1, causes: [{ kind: 'profile' }] });
});

t.test('agents ask too; nobody about what another organization has', async (t) => {
  const org = await createTestOrganization(sql);
  const elsewhere = await createTestOrganization(sql);
  const task = await createTask(sql, org);
  const run = await runNext(sql, org);
  const path = (at: TestOrganization, ref: string) => agentPath(at, `/tasks/${ref}/explain`);
  const agent = app.owner.as(run.executionToken);
  const told = expectSuccess(await app.service.get<Explanation>(path(org, task.id)));
  t.match(told.causes, [{ kind: 'running', runId: run.runId }]);
  t.same(expectSuccess(await agent.get(path(org, 'T-1'))), told);
  t.equal(refusalOf(await agent.get(path(elsewhere, 'T-1'))), '401 agent_unauthorized');
  t.equal(refusalOf(await app.service.get(path(elsewhere, task.id))), '404 not_found');
  t.equal(refusalOf(await ask(elsewhere, task.id)), '404 task_not_found');
  t.equal(refusalOf(await ask(org, randomUUID())), '404 task_not_found');
  t.equal(refusalOf(await ask({ ...org, organizationId: randomUUID() }, 'T-1')), '404 task_not_found');
  t.equal((await ask(org, 'nothing')).status, 400);
});
