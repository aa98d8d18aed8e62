import t from 'tap';
import type { InboxItem } from '../../../api/human_inbox/schema.ts';
import {
  agentPath,
  expectSuccess,
  type Fields,
  makeTask,
  ownerPath,
  readTask,
  refusalOf,
  runTask,
  sqlOf,
  workerOf,
} from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { createTestOrganization, type TestOrganization } from '../../support/fixtures.ts';
import { createNotice } from '../../support/inbox_fixtures.ts';
import { brokenInvariants } from '../../support/invariants.ts';

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
  t.equal(refusalOf(await respond(org, notice.item.id, { response: 'x' })), '409 human_inbox_item_not_open');
  t.match(await readTask(app, org, notice.taskId), { status: 'blocked' });
  expectSuccess(await app.owner.post(ownerPath(org, `/tasks/${task.id}/cancel`)));
  t.equal(refusalOf(await respond(org, question.id, { response: 'x' })), '409 human_inbox_item_not_open');
  t.match(expectSuccess(await app.owner.get(inbox(org, `/${question.id}`))), { status: 'cancelled' });
});

t.test('a task that fails for good is told of, with the error of its run, and a retry closes that', async (t) => {
  const org = await newOrganization();
  const held = await runTask(app, org);
  const error = { code: 'command_failed', message: 'exit status 1: no such file', retryable: false };
  expectSuccess(await workerOf(app, held).fail(error));
  expectSuccess(await workerOf(app, held).fail(error), 200);
  const told = expectSuccess(await list(org));
  t.match(told, [
    {
      kind: 'notification',
      purpose: 'failure',
      status: 'open',
      taskId: held.taskId,
      runId: held.runId,
      allowFreeText: false,
      body: /command_failed: exit status 1: no such file\n\nOnce the cause is fixed, retry T-1: /,
    },
  ]);
  t.equal(told.length, 1, 'once, though it was reported twice');
  t.match(await summary(org), { questions: 0, notifications: 1, total: 1 });
  const id = told[0]?.id ?? '';
  t.equal(refusalOf(await respond(org, id, { response: 'retry' })), '400 validation_failed not_a_question');
  t.equal(refusalOf(await acknowledge(await newOrganization(), id)), '404 human_inbox_item_not_found');
  expectSuccess(await app.owner.post(ownerPath(org, `/tasks/${held.taskId}/retry`)));
  t.match(expectSuccess(await app.owner.get(inbox(org, `/${id}`))), { status: 'cancelled' });
  t.equal(refusalOf(await acknowledge(org, id)), '409 human_inbox_item_not_open');
});

t.test('the database is consistent after all of it', async (t) => {
  t.same(await brokenInvariants(sql), {});
});
