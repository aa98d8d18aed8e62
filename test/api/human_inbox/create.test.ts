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
  refusalOf,
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
import { brokenInvariants } from '../../support/invariants.ts';

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

t.test('the database is consistent after all of it', async (t) => {
  t.same(await brokenInvariants(sql), {});
});
