import { randomUUID } from 'node:crypto';
import t from 'tap';
import type { InboxItem } from '../../../api/human_inbox/schema.ts';
import {
  agentPath,
  expectSuccess,
  type Fields,
  fingerprint,
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
import {
  createSecondProfile,
  createTestOrganization,
  type TestOrganization,
  updateOrganization,
} from '../../support/fixtures.ts';
import { issuePaths } from '../../support/http.ts';
import { createBudgetQuestion, createNotice } from '../../support/inbox_fixtures.ts';
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
const acknowledge = (at: At, id: string) => app.owner.post<InboxItem>(inbox(at, `/${id}/acknowledge`));
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

t.test('notices are acknowledged, questions answered, and not the other way round', async (t) => {
  const org = await newOrganization();
  const notice = await createNotice(sql, org);
  const task = await makeTask(app, org);
  const question = expectSuccess(await ask(org, task.identifier), 201);
  t.match(await summary(org), { questions: 1, notifications: 1, total: 2 });
  t.equal((await list(org, { kind: 'notification' })).data[0]?.id, notice.item.id);
  t.equal((await list(org, { kind: 'approval' })).data.length, 0);
  t.equal(refusalOf(await respond(org, notice.item.id, { response: 'x' })), '400 validation_failed not_a_question');
  t.equal(refusalOf(await acknowledge(org, question.id)), '400 validation_failed not_a_notification');
  t.match(expectSuccess(await acknowledge(org, notice.item.id)), { status: 'acknowledged', response: null });
  t.equal(refusalOf(await acknowledge(org, notice.item.id)), '409 human_inbox_item_not_open');
  t.match(await readTask(app, org, notice.taskId), { status: 'blocked' });
  expectSuccess(await app.owner.post(ownerPath(org, `/tasks/${task.id}/cancel`)));
  t.equal(refusalOf(await respond(org, question.id, { response: 'x' })), '409 human_inbox_item_not_open');
  t.match(expectSuccess(await app.owner.get(inbox(org, `/${question.id}`))), { status: 'cancelled' });
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
  t.equal(refusalOf(other), '409 idempotency_key_reused');
  const answer = (response: string) =>
    app.owner.post(inbox(org, `/${first.id}/respond`), { response }, { headers: { 'idempotency-key': 'answer' } });
  const answered = expectSuccess(await answer('a'));
  t.same(expectSuccess(await answer('a')), answered);
  t.equal(refusalOf(await answer('b')), '409 idempotency_key_reused');
});

t.test('runs ask about what they may change', async (t) => {
  const org = await newOrganization();
  const growth = await createSecondProfile(sql, org, { key: 'growth', kind: 'department' });
  const elsewhere = await newOrganization();
  const other = await makeTask(app, org, { scheduledAt: '2099-01-01T00:00:00Z' });
  const run = await runTask(app, growth);
  const agent = app.owner.as(run.executionToken);
  const fields = { body: 'Long', options: ['a', 'b'], allowFreeText: false };
  t.match(expectSuccess(await ask(org, run.taskId, fields, agent), 201), {
    kind: 'question',
    purpose: 'agent',
    blocking: false,
    ...fields,
    runId: run.runId,
    taskId: run.taskId,
  });
  t.match(expectSuccess(await ask(org, run.taskId, { kind: 'notification' }, agent), 201), {
    kind: 'notification',
    allowFreeText: false,
  });
  const unauthorized = '401 agent_unauthorized';
  t.equal(refusalOf(await ask(org, other.id, {}, agent)), unauthorized);
  t.equal(refusalOf(await ask(elsewhere, run.taskId, {}, agent)), unauthorized);
  t.equal(refusalOf(await ask(org, run.taskId, {}, app.owner)), unauthorized);
  t.equal(refusalOf(await ask(elsewhere, run.taskId)), '404 not_found');
  t.equal(refusalOf(await ask(org, 'T-999')), '404 not_found');
  t.equal(refusalOf(await ask({ organizationId: randomUUID() }, run.taskId)), '404 not_found');
  expectSuccess(await workerOf(app, run).complete());
  t.equal(refusalOf(await ask(org, run.taskId, {}, agent)), unauthorized, 'its run is over');
  t.equal(refusalOf(await ask(org, run.taskId)), '409 state_conflict', 'and the task too');
  await updateOrganization(sql.api, org, { status: 'suspended' });
  t.equal(refusalOf(await ask(org, other.id)), '409 state_conflict');
});

t.test('what is not valid is 400, and changes nothing', async (t) => {
  const org = await newOrganization();
  const task = await makeTask(app, org);
  const { id } = expectSuccess(await ask(org, task.id), 201);
  const before = await fingerprint(app);
  const items: readonly (readonly [Fields, string])[] = [
    [{ kind: 'approval' }, 'kind'],
    [{ title: '' }, 'title'],
    [{ title: 'x'.repeat(501) }, 'title'],
    [{ body: 5 }, 'body'],
    [{ options: ['a', 'a'] }, 'options'],
    [{ options: [''] }, 'options.0'],
    [{ allowFreeText: false }, 'allowFreeText'],
    [{ kind: 'notification', blocking: true }, 'blocking'],
    [{ kind: 'notification', options: ['a'] }, 'options'],
    [{ urgency: 'high' }, 'urgency'],
  ];
  for (const [fields, path] of items) t.same(issuePaths(await ask(org, task.id, fields)), [path], path);
  const responses: readonly (readonly [Fields, string])[] = [
    [{}, 'response'],
    [{ response: ' ' }, 'response'],
    [{ response: ['a'] }, 'response'],
    [{ response: 'a\0' }, 'response'],
    [{ response: 'a', note: '' }, 'note'],
    [{ response: 'a', by: 'me' }, 'by'],
  ];
  for (const [body, path] of responses) t.same(issuePaths(await respond(org, id, body)), [path], JSON.stringify(body));
  t.match(refusalOf(await app.owner.post(inbox(org, `/${id}/acknowledge`), { x: 1 })), /^400 validation_failed/);
  t.match(refusalOf(await app.owner.get(inbox(org, '/x'))), /^400 validation_failed/);
  t.match(refusalOf(await list(org, { status: 'new' })), /^400 validation_failed/);
  t.match(refusalOf(await app.owner.get(ownerPath(org, '/inbox/summary?x=1'))), /^400 validation_failed/);
  t.equal(await fingerprint(app), before);
});

t.test('another organization’s inbox is its own', async (t) => {
  const [org, other] = [await newOrganization(), await newOrganization()];
  const task = await makeTask(app, org);
  const { id } = expectSuccess(await ask(org, task.id), 201);
  const nowhere = { organizationId: randomUUID() };
  for (const [at, code] of [
    [other, '404 human_inbox_item_not_found'],
    [nowhere, '404 organization_not_found'],
  ] as const) {
    t.equal(refusalOf(await app.owner.get(inbox(at, `/${id}`))), code);
    t.equal(refusalOf(await respond(at, id, { response: 'x' })), code);
    t.equal(refusalOf(await acknowledge(at, id)), code);
  }
  t.equal(refusalOf(await app.owner.get(inbox(org, `/${randomUUID()}`))), '404 human_inbox_item_not_found');
  t.same((await list(other)).data, []);
  t.match(await summary(other), { total: 0 });
  t.equal(refusalOf(await list(nowhere)), '404 organization_not_found');
  t.equal(refusalOf(await app.owner.get(ownerPath(nowhere, '/inbox/summary'))), '404 organization_not_found');
});

t.test('the list pages both ways, newest first', async (t) => {
  const org = await newOrganization();
  const task = await makeTask(app, org);
  const ids: string[] = [];
  for (let made = 0; made < 5; made += 1) ids.unshift(expectSuccess(await ask(org, task.id), 201).id);
  const first = await list(org, { limit: 2 });
  const second = await list(org, { limit: 2, cursor: first.body.pagination.nextCursor ?? '' });
  const third = await list(org, { limit: 2, cursor: second.body.pagination.nextCursor ?? '' });
  t.same(
    [first, second, third].flatMap(({ data }) => data.map(({ id }) => id)),
    ids,
  );
  t.notOk(third.body.pagination.hasNextPage);
  t.same((await list(org, { limit: 2, cursor: second.body.pagination.previousCursor ?? '' })).data, first.data);
  const cursor = first.body.pagination.nextCursor ?? '';
  t.match(refusalOf(await list(org, { limit: 2, kind: 'question', cursor })), /^400 validation_failed/);
});

t.test('the database is consistent after all of it', async (t) => {
  t.same(await brokenInvariants(sql), {});
});
