import { createHash, randomUUID } from 'node:crypto';
import t from 'tap';
import type { Schedule } from '../../../api/schedules/schema.ts';
import { chatPrefix } from '../../../engine/storage/index.ts';
import {
  agentPath,
  expectSuccess,
  type Fields,
  fingerprint,
  type HeldRun,
  makeTask,
  ownerPath,
  readTask,
  refusalOf,
  runTask,
  sqlOf,
  workerOf,
} from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { entry, publishDocuments } from '../../support/context_files.ts';
import { createSecondProfile, createTestOrganization, type TestOrganization } from '../../support/fixtures.ts';
import { issuePaths } from '../../support/http.ts';
import { fire, scheduledTasks } from '../../support/schedule_fixtures.ts';
import { transition } from '../../support/transitions.ts';
import { chatPath, createChat, patchChat } from '../chats/support.ts';

const app = await startTestApp(t);
const sql = sqlOf(app);
const org = await createTestOrganization(sql, {
  key: 'operator',
  maxConcurrentRuns: 20,
  limits: { maxConcurrentRuns: 20 },
});
const growth = await createSecondProfile(sql, org, { key: 'growth', kind: 'department' });
const elsewhere = await createTestOrganization(sql);

const sha256 = (bytes: string) => createHash('sha256').update(bytes).digest('hex');

async function attach(at: TestOrganization, bytes: string) {
  const chat = await createChat(app, at);
  const id = randomUUID();
  const query = { fileName: 'Notes.txt', mediaType: 'text/plain' };
  expectSuccess(await app.owner.put(chatPath(chat, `/attachments/${id}`), bytes, { query }), 201);
  const input = (path: string) => ({ kind: 'attachment', chatId: chat.id, attachmentId: id, path });
  return { chat, input };
}

/** What the owner is shown of the files that a run was given as inputs: whether each is there. */
async function shown(run: HeldRun): Promise<Record<string, unknown>> {
  const path = ownerPath(org, `/runs/${run.runId}/context`);
  const { files } = expectSuccess(await app.owner.get<{ files: Fields[] }>(path));
  const inputs = files.filter(({ role }) => role === 'input');
  return Object.fromEntries(inputs.map(({ path, available }) => [path, available]));
}

t.test('a worker reads an attachment of a chat, until the chat is removed', async (t) => {
  const { chat, input } = await attach(org, 'Grüße\n');
  const foreign = await attach(elsewhere, 'secret');
  const never = { ...input('never.txt'), attachmentId: randomUUID() };
  const inputs = [input('in/letter.txt'), foreign.input('foreign.txt'), never];
  const run = await runTask(app, org, { spec: { inputs } });
  const worker = workerOf(app, run);
  const { files } = expectSuccess(await worker.inputs());
  t.match(files, [
    { path: 'foreign.txt', available: false, sizeBytes: 0, sha256: null },
    {
      path: 'in/letter.txt',
      name: 'letter.txt',
      role: 'input',
      mediaType: 'text/plain',
      sizeBytes: 8,
      available: true,
      sha256: sha256('Grüße\n'),
    },
    { path: 'never.txt', available: false, sizeBytes: 0, sha256: null },
  ]);
  const response = await worker.input('in/letter.txt');
  t.same([response.status, await response.text()], [200, 'Grüße\n']);
  t.equal((await worker.input('foreign.txt')).status, 400);
  const content = ownerPath(org, `/runs/${run.runId}/context/files/content?path=in/letter.txt`);
  t.equal(await (await app.owner.fetch(content)).text(), 'Grüße\n', 'as its owner does');
  t.same(await shown(run), { 'foreign.txt': false, 'in/letter.txt': true, 'never.txt': false });

  expectSuccess(await patchChat(app, chat, { status: 'archived' }));
  await sql.owner.query(`update app.chats set archived_at = now() - interval '31 days' where id = $1`, [chat.id]);
  const purge = { organizationId: org.organizationId, chatId: chat.id, limit: 10, forget: false };
  while (!(await transition(sql.jobs, 'chat_purge', purge))['done']);
  await app.services.storage.deletePrefix(chatPrefix(org.organizationId, chat.id));
  t.match(expectSuccess(await worker.inputs()).files[1], { path: 'in/letter.txt', available: false, sha256: null });
  t.equal((await worker.input('in/letter.txt')).status, 400);
  t.equal(refusalOf(await app.owner.get(content)), '404 not_found');
  t.same(await shown(run), { 'foreign.txt': false, 'in/letter.txt': false, 'never.txt': false });
  expectSuccess(await worker.complete());
});

t.test('a worker reads a document of the context of the owner’s department, or of the organization', async (t) => {
  const facts = { entries: [entry('plan', { value: 'organization' })] };
  const { storage } = app.services;
  await publishDocuments(sql, storage, org, { 'facts.json': facts, 'how/refund.json': facts });
  const own = { 'facts.json': { entries: [entry('plan', { value: 'growth' })] } };
  await publishDocuments(sql, storage, org, own, { scope: 'growth' });
  const inputs = ['facts.json', 'how/refund.json', 'never.json'].map((path) => ({ kind: 'context_file', path }));
  const run = await runTask(app, growth, { ownerProfileKey: 'growth', spec: { inputs } });
  const worker = workerOf(app, run);
  t.match(await (await worker.input('facts.json')).text(), /"growth"/);
  t.match(await (await worker.input('how/refund.json')).text(), /"organization"/);
  t.equal((await worker.input('never.json')).status, 400);
  t.same(await shown(run), { 'facts.json': true, 'how/refund.json': true, 'never.json': false });
  expectSuccess(await worker.complete());
});

t.test('whatever takes a spec takes both kinds', async (t) => {
  const { input } = await attach(org, 'x');
  const inputs = [input('a.txt'), { kind: 'context_file', path: 'facts.json' }];
  const later = { scheduledAt: '2099-01-01T00:00:00Z' };
  const made = await makeTask(app, org, { ...later, spec: { inputs } });
  t.same(made.spec.inputs, inputs, 'a creation');
  const plain = await makeTask(app, org, later);
  const patch = { expectedVersion: plain.version, spec: { inputs } };
  expectSuccess(await app.service.patch(agentPath(org, `/tasks/${plain.id}`), patch));
  t.same((await readTask(app, org, plain.id)).spec.inputs, inputs, 'a patch');
  const taskTemplate = { title: 'Weekly', ownerProfileKey: 'growth', spec: { inputs } };
  const body = { cron: '0 9 * * MON', taskTemplate };
  const schedule = expectSuccess(await app.service.post<Schedule>(agentPath(org, '/schedules'), body), 201);
  await fire(sql, org, schedule.id);
  t.match(await scheduledTasks(sql, org, schedule.id), [{ spec: { inputs } }], 'a schedule');

  const held = await runTask(app, org, { kind: 'initiative' });
  const { version: taskVersion, graphRevision } = await readTask(app, org, held.taskId);
  const operation = { op: 'create_task', key: 'a', title: 'A', ownerProfileKey: 'growth', spec: { inputs } };
  const outcome = { kind: 'plan', operations: [operation] };
  const staged = { runId: held.runId, taskVersion, graphRevision, idempotencyKey: 'k', outcome };
  const path = agentPath(org, `/tasks/${held.taskId}/outcomes`);
  expectSuccess(await app.service.as(held.executionToken).post(path, staged), 201);
  expectSuccess(await workerOf(app, held).complete());
  const { rows } = await sql.owner.query('select spec from app.tasks where parent_id = $1', [held.taskId]);
  t.same(
    rows.map(({ spec }) => spec.inputs),
    [inputs],
    'a plan',
  );
});

t.test('inputs that do not fit are refused, and nothing is made', async (t) => {
  const ids = { chatId: randomUUID(), attachmentId: randomUUID() };
  const before = await fingerprint(app);
  const wrong: Record<string, [Fields, string]> = {
    'no chat': [{ kind: 'attachment', attachmentId: ids.attachmentId, path: 'a' }, 'chatId'],
    'no id': [{ kind: 'attachment', ...ids, attachmentId: 'x', path: 'a' }, 'attachmentId'],
    'no path': [{ kind: 'attachment', ...ids }, 'path'],
    'a path above': [{ kind: 'attachment', ...ids, path: '../a' }, 'path'],
    'a selector above': [{ kind: 'context_file', path: 'a/../b' }, 'path'],
    'a scope': [{ kind: 'context_file', path: 'a', scope: 'growth' }, 'scope'],
  };
  for (const [name, [input, field]] of Object.entries(wrong)) {
    const reply = await app.owner.post(ownerPath(org, '/tasks'), { title: 'A', spec: { inputs: [input] } });
    t.match(refusalOf(reply), /^400 validation_failed/, name);
    t.same(issuePaths(reply), [`spec.inputs.0.${field}`], name);
  }
  t.equal(await fingerprint(app), before);
});
