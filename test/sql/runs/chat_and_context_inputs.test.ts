import { randomUUID } from 'node:crypto';
import t from 'tap';
import {
  type Chat,
  createChat,
  createChatOrganization,
  putAttachment,
  updateChat,
} from '../../support/chat_fixtures.ts';
import { document, promote, recordHealth } from '../../support/context_fixtures.ts';
import {
  claimNext,
  completeRun,
  completeVerdict,
  createSecondProfile,
  createTask,
  createTestOrganization,
  type Run,
  runMode,
  runNext,
  sha256,
  startRun,
  type TestOrganization,
} from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { type Connection, type JsonObject, openSession, openSql, transition } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const attachment = (chatId: string, attachmentId: string, path: string) => ({
  kind: 'attachment',
  chatId,
  attachmentId,
  path,
});

/** What a run was given as inputs of its task: the storage key and the size of each, by its path. */
async function given(run: Pick<Run, 'organizationId' | 'runId'>): Promise<Record<string, string>> {
  const { rows } = await sql.owner.query(
    `select path, format('%s %s %s', coalesce(storage_key, 'none'), media_type, size) as what from app.run_inputs
     where organization_id = $1 and run_id = $2 and role = 'input' order by path`,
    [run.organizationId, run.runId],
  );
  return Object.fromEntries(rows.map(({ path, what }) => [path, what]));
}

async function runOf(org: TestOrganization, inputs: readonly JsonObject[], fields: JsonObject = {}): Promise<Run> {
  await createTask(sql, org, { spec: { inputs, ...fields } });
  return runNext(sql, org);
}

/** An organization with a chat and an executor. */
async function chatAndWorker(): Promise<{ org: TestOrganization; chat: Chat }> {
  const org = await createSecondProfile(sql, await createChatOrganization(sql));
  return { org, chat: await createChat(sql, org) };
}

async function attach(org: TestOrganization, chatId: string, storageKey: string): Promise<string> {
  const id = randomUUID();
  await putAttachment(sql.api, org, chatId, { id, storageKey });
  return id;
}

/** Archived so long ago that it is removed. */
async function expired(org: TestOrganization, chat: Chat): Promise<void> {
  await updateChat(sql.api, org, chat.id, { status: 'archived' });
  await sql.owner.query(
    `update app.chats set archived_at = now() - interval '31 days' where organization_id = $1 and id = $2`,
    [org.organizationId, chat.id],
  );
}

function purge(
  connection: Connection,
  org: TestOrganization,
  chat: Chat,
  forget = false,
  limit = 100,
): Promise<JsonObject> {
  return transition(connection, 'chat_purge', {
    organizationId: org.organizationId,
    chatId: chat.id,
    limit,
    forget,
  });
}

async function purgeAll(org: TestOrganization, chat: Chat, limit?: number): Promise<number> {
  for (let calls = 1; ; calls += 1) if ((await purge(sql.jobs, org, chat, false, limit))['done']) return calls;
}

const NONE = 'none application/octet-stream 0';

scenario('a run is given attachments of its organization, and others are listed without bytes', async (test) => {
  const { org, chat } = await chatAndWorker();
  const other = await createChat(sql, org);
  const id = await attach(org, chat.id, 'a1');
  const elsewhere = await chatAndWorker();
  const foreign = await attach(elsewhere.org, elsewhere.chat.id, 'foreign');
  const run = await runOf(org, [
    attachment(chat.id, id, 'in/notes.txt'),
    attachment(chat.id, id, 'again.txt'),
    attachment(other.id, id, 'of-another-chat.txt'),
    attachment(chat.id, randomUUID(), 'never.txt'),
    attachment(randomUUID(), id, 'no-chat.txt'),
    attachment(elsewhere.chat.id, foreign, 'foreign.txt'),
    { kind: 'inline', path: 'again.txt', text: 'second of the same path' },
  ]);
  test.same(await given(run), {
    'in/notes.txt': 'a1 text/plain 5',
    'again.txt': 'a1 text/plain 5',
    'of-another-chat.txt': NONE,
    'never.txt': NONE,
    'no-chat.txt': NONE,
    'foreign.txt': NONE,
  });
  const { rows } = await sql.owner.query(
    `select distinct sha256, chat_id from app.run_inputs where run_id = $1 and storage_key is not null`,
    [run.runId],
  );
  test.same(rows, [{ sha256: sha256('bytes'), chat_id: chat.id }]);
});

scenario('a chat that is removed takes the bytes of its attachments from all runs', async (test) => {
  const { org, chat } = await chatAndWorker();
  const kept = await createChat(sql, org);
  const [id, keptId] = [await attach(org, chat.id, 'a1'), await attach(org, kept.id, 'k1')];
  const inputs = [
    attachment(chat.id, id, 'a.txt'),
    attachment(chat.id, id, 'b.txt'),
    attachment(kept.id, keptId, 'kept.txt'),
    { kind: 'inline', path: 'i.txt', text: 'inline' },
  ];
  const run = await runOf(org, inputs);
  const all = { 'a.txt': 'a1 text/plain 5', 'b.txt': 'a1 text/plain 5' };
  const rest = { 'kept.txt': 'k1 text/plain 5', 'i.txt': 'none text/plain 6' };
  await updateChat(sql.api, org, chat.id, { status: 'archived' });
  test.same(await given(run), { ...all, ...rest }, 'archived: nothing is gone yet');
  await completeRun(sql.api, run);
  const archived = await runOf(org, inputs);
  test.same(await given(archived), { ...all, ...rest });
  await updateChat(sql.api, org, chat.id, { status: 'open' });
  await expired(org, chat);
  test.ok((await purgeAll(org, chat, 1)) > 4, 'in batches');
  const gone = { 'a.txt': 'none text/plain 5', 'b.txt': 'none text/plain 5', ...rest };
  test.same(await given(run), gone);
  test.same(await given(archived), gone);
  await completeRun(sql.api, archived);
  const later = await runOf(org, inputs);
  test.same(await given(later), { 'a.txt': NONE, 'b.txt': NONE, ...rest });
  test.same(await purge(sql.jobs, org, chat, true), { done: true, gone: true });
  test.same(await given(run), gone, 'the runs stay');
});

scenario('a start and the removal of the chat at once leave no input that names removed bytes', async (test) => {
  const { org, chat } = await chatAndWorker();
  const id = await attach(org, chat.id, 'a1');
  await createTask(sql, org, { spec: { inputs: [attachment(chat.id, id, 'a.txt')] } });
  await expired(org, chat);
  const claim = await claimNext(sql, org);
  const starting = await openSession(test, sql);
  const removing = await openSession(test, sql, 'runner_jobs');
  await starting.begin();
  const run = await startRun(starting, claim);
  const removed = purge(removing, org, chat);
  await removing.waits();
  await starting.commit();
  test.same(await removed, { done: false, gone: false });
  await purgeAll(org, chat);
  test.same(await given(run), { 'a.txt': 'none text/plain 5' });
});

scenario('a start does not wait for a removal that is under way, and gives nothing of it', async (test) => {
  const { org, chat } = await chatAndWorker();
  const id = await attach(org, chat.id, 'a1');
  await createTask(sql, org, { spec: { inputs: [attachment(chat.id, id, 'a.txt')] } });
  await expired(org, chat);
  const removing = await openSession(test, sql, 'runner_jobs');
  await removing.begin();
  await purge(removing, org, chat);
  const run = await runNext(sql, org);
  test.same(await given(run), { 'a.txt': NONE });
  await removing.rollback();
  const next = await createSecondProfile(sql, org);
  test.same(await given(await runOf(next, [attachment(chat.id, id, 'a.txt')])), { 'a.txt': 'a1 text/plain 5' });
  await purgeAll(org, chat);
});

const file = (path: string) => ({ kind: 'context_file', path });
const json = (key: string, size = 15) => `${key} application/json ${size}`;

scenario('a context file is of the department of the owner, else of the organization', async (test) => {
  const growth = await createTestOrganization(sql, { kind: 'department', department: 'growth' });
  const operator = await createSecondProfile(sql, growth);
  const inputs = [file('facts.json'), file('how/refund.json'), file('only-support.json'), file('missing.json')];
  const none = Object.fromEntries(inputs.map(({ path }) => [path, json('none', 0)]));
  const before = await runOf(growth, inputs);
  test.same(await given(before), none, 'nothing is published');
  const two = [document('facts.json', { storageKey: 'o' }), document('how/refund.json', { storageKey: 'h' })];
  await promote(sql.api, growth, { documents: two });
  await promote(sql.api, growth, { scope: 'growth', documents: [document('facts.json', { storageKey: 'g' })] });
  const support = [document('facts.json', { storageKey: 's' }), document('only-support.json', { storageKey: 's2' })];
  await promote(sql.api, growth, { scope: 'support', documents: support });
  await completeRun(sql.api, before);
  const run = await runOf(growth, inputs, { verification: 'agent' });
  const expected = { ...none, 'facts.json': json('g'), 'how/refund.json': json('h') };
  test.same(await given(run), expected);
  const ofOperator = await runOf(operator, inputs);
  test.same(await given(ofOperator), { ...expected, 'facts.json': json('o'), 'only-support.json': json('s2') });
  await completeRun(sql.api, ofOperator);
  await completeRun(sql.api, run);
  const judge = await runMode(sql, operator, 'verify');
  test.same(await given(judge), expected, 'a verifier of no department is given what the owner was given');
  await completeVerdict(sql, judge, 'passed');

  const newer = [document('facts.json', { storageKey: 'g2' })];
  await promote(sql.api, growth, { scope: 'growth', base: 1, documents: newer });
  test.same(await given(run), expected, 'fixed at its start');
  test.match(await given(await runOf(growth, inputs)), { 'facts.json': json('g2') });
  const elsewhere = await createTestOrganization(sql, { kind: 'department', department: 'growth' });
  test.same(await given(await runOf(elsewhere, inputs)), none, 'of no other organization');
});

scenario(
  'a document that the audit could not read is listed without bytes, and no other scope stands in',
  async (test) => {
    const org = await createTestOrganization(sql, { kind: 'department', department: 'growth' });
    await promote(sql.api, org, { documents: [document('facts.json', { storageKey: 'o' })] });
    await promote(sql.api, org, { scope: 'growth', documents: [document('facts.json', { storageKey: 'g' })] });
    await recordHealth(sql.jobs, org, {
      context: { organization: 1, growth: 1 },
      unreadable: { growth: ['facts.json'] },
    });
    const run = await runOf(org, [file('facts.json')]);
    test.same(await given(run), { 'facts.json': json('none') });
  },
);
