import { randomUUID } from 'node:crypto';
import t from 'tap';
import { contextPrefix } from '../../../engine/storage/index.ts';
import {
  agentPath,
  expectSuccess,
  type Fields,
  ownerPath,
  refusalOf,
  runTask,
  sqlOf,
  storedKeys,
  workerOf,
} from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { createChat, createChatOrganization } from '../../support/chat_fixtures.ts';
import { spoil } from '../../support/context_files.ts';
import { createTestOrganization, type TestOrganization } from '../../support/fixtures.ts';

const app = await startTestApp(t);
const sql = sqlOf(app);
const { storage } = app.services;

type Source = Fields & Readonly<{ id: string; sha256: string }>;

const retain = (org: TestOrganization, body: Fields, client = app.owner) =>
  client.post<Source>(ownerPath(org, '/context/sources'), body);

async function attach(org: TestOrganization, content: string) {
  const chat = await createChat(sql, org);
  const attachmentId = randomUUID();
  const path = ownerPath(org, `/chats/${chat.id}/attachments/${attachmentId}?fileName=plan.md&mediaType=text/markdown`);
  expectSuccess(await app.owner.put(path, content), 201);
  return { kind: 'chat_attachment', chatId: chat.id, attachmentId };
}

async function copies(org: TestOrganization): Promise<string[]> {
  const { objects } = await storage.list(contextPrefix(org.organizationId));
  return objects.map(({ key }) => key);
}

async function content(org: TestOrganization, id: string): Promise<string> {
  return (await app.owner.fetch(ownerPath(org, `/context/sources/${id}/content`))).text();
}

t.test('an attachment is kept as a source of its own, once', async (test) => {
  const org = await createChatOrganization(sql);
  const named = await attach(org, 'the plan');
  const source = expectSuccess(await retain(org, { ...named, department: 'growth', title: 'Plan' }), 201);
  test.match(source, {
    origin: 'chat',
    status: 'stored',
    kind: 'markdown',
    title: 'Plan',
    fileName: 'plan.md',
    mediaType: 'text/markdown',
    sizeBytes: 8,
    department: 'growth',
    provenanceUrls: [`org://${org.organizationId}/chats/${named.chatId}/attachments/${named.attachmentId}`],
  });
  test.equal(await content(org, source.id), 'the plan');
  const again = expectSuccess(await retain(org, { ...named, department: 'growth' }), 201);
  test.equal(again.id, source.id);
  test.equal((await copies(org)).length, 1);
  test.equal(refusalOf(await retain(org, named)), '409 state_conflict in_use', 'it is of a department already');
  test.equal((await copies(org)).length, 1);
  // What the chat had goes with the chat.
  for (const key of await storedKeys(app, org)) if (key.includes('/chats/')) await storage.delete(key);
  test.equal(await content(org, source.id), 'the plan');
});

t.test('two at once make one source and leave one copy', async (test) => {
  const org = await createChatOrganization(sql);
  const named = await attach(org, 'the plan');
  const sources = await Promise.all([1, 2, 3].map(() => retain(org, named)));
  test.equal(new Set(sources.map((reply) => expectSuccess(reply, 201).id)).size, 1);
  test.equal((await copies(org)).length, 1);
});

t.test('an artifact is kept, as agents may that change any task', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runTask(app, org);
  const worker = workerOf(app, run);
  expectSuccess(await worker.put('out/report.csv', 'a,b'), 201);
  const named = { kind: 'run_artifact', runId: run.runId, artifactIndex: 0 };
  test.equal(refusalOf(await retain(org, named)), '404 not_found', 'none is recorded yet');
  expectSuccess(await worker.completeWith('out/report.csv'));
  const asking = await runTask(app, org);
  const agent = app.owner.as(asking.executionToken);
  const path = agentPath(org, '/context/sources');
  const source = expectSuccess(await agent.post<Source>(path, named), 201);
  test.match(source, { origin: 'task', fileName: 'report.csv', mediaType: 'text/csv' });
  test.equal(await content(org, source.id), 'a,b');

  const department = await createTestOrganization(sql, { kind: 'department' });
  const limited = await runTask(app, department);
  const refused = await app.owner.as(limited.executionToken).post(agentPath(department, '/context/sources'), named);
  test.equal(refusalOf(refused), '401 agent_unauthorized');
  test.equal(refusalOf(await agent.post(agentPath(department, '/context/sources'), named)), '401 agent_unauthorized');
});

t.test('what is not there, or not whole, is not kept', async (test) => {
  const org = await createChatOrganization(sql);
  const elsewhere = await createChatOrganization(sql);
  const named = await attach(org, 'the plan');
  test.equal(refusalOf(await retain(elsewhere, named)), '404 attachment_not_found');
  test.equal(refusalOf(await retain(org, { ...named, attachmentId: randomUUID() })), '404 attachment_not_found');
  const run = { kind: 'run_artifact', runId: randomUUID(), artifactIndex: 0 };
  test.equal(refusalOf(await retain(org, run)), '404 run_not_found');
  test.equal(refusalOf(await retain({ ...org, organizationId: randomUUID() }, named)), '404 organization_not_found');
  for (const body of [
    {},
    { kind: 'file' },
    { ...named, chatId: 'x' },
    { ...named, department: 'sales' },
    { ...named, path: '/etc' },
  ]) {
    test.equal((await retain(org, body)).status, 400, JSON.stringify(body));
  }
  const [key = ''] = await storedKeys(app, org);
  await spoil(storage, key, 'the palm');
  test.equal(refusalOf(await retain(org, named)), '409 state_conflict');
  await spoil(storage, key, 'the');
  test.equal(refusalOf(await retain(org, named)), '409 state_conflict');
  await storage.delete(key);
  test.equal(refusalOf(await retain(org, named)), '409 state_conflict');
  test.same(await copies(org), []);
  test.same(expectSuccess(await app.owner.get<{ items: Fields[] }>(ownerPath(org, '/context/sources'))).items, []);
});
