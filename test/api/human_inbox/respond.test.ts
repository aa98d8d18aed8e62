import t from 'tap';
import type { InboxItem } from '../../../api/human_inbox/schema.ts';
import {
  agentPath,
  expectSuccess,
  type Fields,
  makeTask,
  ownerPath,
  pullItems,
  readTask,
  refusalOf,
  runNext,
  runTask,
  sqlOf,
  workerOf,
} from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { createTestOrganization, type TestOrganization } from '../../support/fixtures.ts';
import { issuePaths } from '../../support/http.ts';
import { createBudgetQuestion } from '../../support/inbox_fixtures.ts';
import { brokenInvariants } from '../../support/invariants.ts';
import { wakesPulls } from '../../support/wakes.ts';

const app = await startTestApp(t);
const sql = sqlOf(app);
const capacity = { maxConcurrentRuns: 20, limits: { maxConcurrentRuns: 20 } };
const newOrganization = (key = 'operator') => createTestOrganization(sql, { key, ...capacity });

type At = Pick<TestOrganization, 'organizationId'>;
const inbox = (at: At, rest = '') => ownerPath(at, `/human-inbox${rest}`);
const list = (at: At, query: Record<string, string | number> = {}) => app.owner.get<InboxItem[]>(inbox(at), { query });
const respond = (at: At, id: string, body: Fields) => app.owner.post<InboxItem>(inbox(at, `/${id}/respond`), body);
const ask = (at: At, ref: string, fields: Fields = {}, client = app.service) =>
  client.post<InboxItem>(agentPath(at, `/tasks/${ref}/human-inbox`), { kind: 'question', title: 'Which?', ...fields });
const summary = async (at: At) => expectSuccess(await app.owner.get<Fields>(ownerPath(at, '/inbox/summary')));

/** The one open item of an organization. */
async function only(at: At): Promise<InboxItem> {
  const { data } = await list(at);
  if (data.length !== 1 || !data[0]) throw new Error(`${data.length} open items`);
  return data[0];
}

const criteria = {
  acceptanceCriteria: [
    { kind: 'output_file', path: 'report.json', checks: [{ kind: 'media_type', anyOf: ['text/csv'] }] },
  ],
};

/** A task whose result was refused twice, by real bytes. */
async function refuseTwice(org: TestOrganization): Promise<string> {
  const first = await runTask(app, org, { spec: criteria });
  for (const run of [first, undefined]) {
    const worker = workerOf(app, run ?? (await runNext(app, org)));
    expectSuccess(await worker.put('report.json', '{}'), 201);
    t.match(expectSuccess(await worker.completeWith('report.json')), { status: 'failed' });
  }
  return first.taskId;
}

t.test('a question of a run is listed, read and answered; the task goes on with the answer', async (t) => {
  const org = await newOrganization();
  const run = await runTask(app, org);
  const result = { kind: 'needs_input', question: 'Which list holds?', options: ['old', 'new'] };
  expectSuccess(await workerOf(app, run).complete(result));
  const item = await only(org);
  t.match(item, {
    organizationId: org.organizationId,
    kind: 'question',
    status: 'open',
    purpose: 'needs_input',
    blocking: true,
    body: 'Which list holds?',
    options: ['old', 'new'],
    allowFreeText: true,
    taskId: run.taskId,
    runId: run.runId,
    actionId: null,
    chatId: null,
    scheduleId: null,
    response: null,
    note: null,
    respondedAt: null,
  });
  t.same(expectSuccess(await app.owner.get(inbox(org, `/${item.id}`))), item);
  t.same(await summary(org), { questions: 1, notifications: 0, approvals: 0, reconciliation: 0, total: 1 });
  const work = async () => {
    const answered = expectSuccess(await respond(org, item.id, { response: ' the new one ', note: 'Since March' }));
    t.match(answered, { id: item.id, status: 'responded', response: 'the new one', note: 'Since March' });
    t.ok(answered.respondedAt);
  };
  t.ok(await wakesPulls(app, work));
  t.equal(refusalOf(await respond(org, item.id, { response: 'old' })), '409 human_inbox_item_not_open');
  t.match(expectSuccess(await app.owner.get(inbox(org, `/${item.id}`))), { status: 'responded' }, 'still to be read');
  t.same((await list(org)).data, []);
  t.equal((await list(org, { status: 'responded' })).data.length, 1);
  const [next] = await pullItems(app, { organizationIds: [org.organizationId] });
  t.match(next?.task, {
    id: run.taskId,
    state: { answers: [{ inboxItemId: item.id, response: 'the new one', note: 'Since March' }] },
  });
});

t.test('a result that was refused twice: try again, accept, or cancel', async (t) => {
  const org = await newOrganization();
  const again = await refuseTwice(org);
  const item = await only(org);
  t.match(item, { purpose: 'repair', options: ['try_again', 'accept', 'cancel'], allowFreeText: false });
  const wrong = await respond(org, item.id, { response: 'mend it' });
  t.equal(refusalOf(wrong), '400 validation_failed not_an_option');
  t.same(issuePaths(wrong), ['response']);
  expectSuccess(await respond(org, item.id, { response: 'try_again', note: 'As CSV' }));
  t.match(await readTask(app, org, again), {
    status: 'pending',
    state: { contract: { failures: 2 }, answers: [{ response: 'try_again', note: 'As CSV' }] },
  });
  const worker = workerOf(app, await runNext(app, org));
  expectSuccess(await worker.put('report.json', '{}'), 201);
  expectSuccess(await worker.completeWith('report.json'));
  expectSuccess(await respond(org, (await only(org)).id, { response: 'accept' }));
  const accepted = await readTask(app, org, again);
  t.match(accepted, {
    status: 'completed',
    phase: 'closed',
    result: { kind: 'completed', artifacts: [{ path: 'report.json' }], completion: { disposition: 'accepted' } },
  });
  const dropped = await refuseTwice(org);
  expectSuccess(await respond(org, (await only(org)).id, { response: 'cancel' }));
  t.match(await readTask(app, org, dropped), { status: 'cancelled' });
});

t.test('a used-up budget is raised by one allowance', async (t) => {
  const org = await newOrganization();
  const { taskId, item } = await createBudgetQuestion(sql, org);
  t.match(await only(org), { id: item.id, purpose: 'budget', options: ['raise', 'cancel'], allowFreeText: false });
  t.equal(refusalOf(await respond(org, item.id, { response: 'more' })), '400 validation_failed not_an_option');
  expectSuccess(await respond(org, item.id, { response: 'raise' }));
  t.match(await readTask(app, org, taskId), { status: 'pending', spec: { budget: { maxAgentRuns: 11 } } });
});

t.test('what waits for a task that was cancelled: remove the dependency, try that task again, or cancel', async (t) => {
  const org = await newOrganization();
  async function waiting() {
    const first = await makeTask(app, org);
    const second = await makeTask(app, org, { dependsOn: [first.id] });
    expectSuccess(await app.owner.post(ownerPath(org, `/tasks/${first.id}/cancel`)));
    const item = await only(org);
    t.match(item, {
      purpose: 'prerequisite',
      taskId: second.id,
      options: ['retry', 'remove', 'wait', 'cancel'],
      allowFreeText: false,
    });
    return { first: first.id, second: second.id, item: item.id };
  }
  const removed = await waiting();
  t.equal(refusalOf(await respond(org, removed.item, { response: 'drop' })), '400 validation_failed not_an_option');
  const elsewhere = await newOrganization();
  t.equal(refusalOf(await respond(elsewhere, removed.item, { response: 'remove' })), '404 human_inbox_item_not_found');
  const remove = async () => {
    t.match(expectSuccess(await respond(org, removed.item, { response: 'remove' })), { status: 'responded' });
  };
  t.ok(await wakesPulls(app, remove));
  t.equal(refusalOf(await respond(org, removed.item, { response: 'remove' })), '409 human_inbox_item_not_open');
  t.match(await readTask(app, org, removed.first), { status: 'cancelled' });
  t.match(await readTask(app, org, removed.second), { status: 'pending', state: { blockers: [] } });
  const run = await runNext(app, org);
  t.equal(run.taskId, removed.second, 'it is worked at');
  expectSuccess(await workerOf(app, run).complete());

  const retried = await waiting();
  expectSuccess(await respond(org, retried.item, { response: 'retry' }));
  t.match(await readTask(app, org, retried.first), { status: 'pending' });
  t.match((await readTask(app, org, retried.second)).state.blockers, [{ kind: 'dependency', taskId: retried.first }]);
  for (const taskId of [retried.first, retried.second]) {
    const next = await runNext(app, org);
    t.equal(next.taskId, taskId);
    expectSuccess(await workerOf(app, next).complete());
  }
  t.match(await readTask(app, org, retried.second), { status: 'completed' });

  const dropped = await waiting();
  expectSuccess(await respond(org, dropped.item, { response: 'cancel' }));
  t.match(await readTask(app, org, dropped.second), { status: 'cancelled' });
});

t.test('two people at once: one answers, the other is told', async (t) => {
  const org = await newOrganization();
  const task = await makeTask(app, org);
  const { id } = expectSuccess(await ask(org, task.id, { blocking: true }), 201);
  const replies = await Promise.all(['a', 'b', 'c', 'd'].map((response) => respond(org, id, { response })));
  t.equal(replies.filter(({ status }) => status === 200).length, 1);
  for (const reply of replies) {
    if (reply.status !== 200) t.equal(refusalOf(reply), '409 human_inbox_item_not_open');
  }
  t.equal((await readTask(app, org, task.id)).state.answers?.length, 1);
});

t.test('the same Idempotency-Key answers, and asks, once', async (t) => {
  const org = await newOrganization();
  const task = await makeTask(app, org);
  const headers = { 'idempotency-key': 'once' };
  const path = agentPath(org, `/tasks/${task.id}/human-inbox`);
  const question = { kind: 'question', title: 'Which?' };
  const first = expectSuccess(await app.service.post<InboxItem>(path, question, { headers }), 201);
  t.same(expectSuccess(await app.service.post(path, question, { headers }), 201), first);
  const other = await app.service.post(path, { ...question, title: 'What?' }, { headers });
  t.equal(refusalOf(other), '409 idempotency_key_reused idempotency_key_reused');
  const answer = (response: string) =>
    app.owner.post(inbox(org, `/${first.id}/respond`), { response }, { headers: { 'idempotency-key': 'answer' } });
  const answered = expectSuccess(await answer('a'));
  t.same(expectSuccess(await answer('a')), answered);
  t.equal(refusalOf(await answer('b')), '409 idempotency_key_reused idempotency_key_reused');
});

t.test('the database is consistent after all of it', async (t) => {
  t.same(await brokenInvariants(sql), {});
});
