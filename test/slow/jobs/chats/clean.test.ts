import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { pathToFileURL } from 'node:url';
import t, { type Test } from 'tap';
import { createLogger } from '../../../../engine/log.ts';
import { chatAttachmentKey, chatPrefix, openStorage, type Storage } from '../../../../engine/storage/index.ts';
import { chatsClean } from '../../../../jobs/chats/clean.ts';
import type { JobContext } from '../../../../jobs/runner/handler.ts';
import { openServices } from '../../../../jobs/runner/services.ts';
import { addJob, jobsConfig, openJobs, queued } from '../../../jobs/support.ts';
import {
  chatRow,
  createChat,
  createChatOrganization,
  exchange,
  putAttachment,
  send,
  startedTurn,
  text,
  updateChat,
} from '../../../support/chat_fixtures.ts';
import { type TestOrganization, updateProfile } from '../../../support/fixtures.ts';
import { openFolder } from '../../../support/folders.ts';
import { openSql, refusal, transition } from '../../../support/transitions.ts';
import { until } from '../../../support/wait.ts';

const sql = await openSql(t);

async function openContext(test: Test): Promise<{ context: JobContext; stop: () => void }> {
  const services = openServices(await jobsConfig(test, sql.url), createLogger('silent', 'jobs'));
  test.teardown(() => services.close());
  const stopping = new AbortController();
  const context = { ...services, jobId: '1', attempt: 1, addJob: async () => {}, signal: stopping.signal };
  return { context, stop: () => stopping.abort() };
}

async function attach(storage: Storage, org: TestOrganization, chatId: string): Promise<void> {
  const storageKey = chatAttachmentKey(org.organizationId, chatId);
  await storage.put(storageKey, Readable.from([Buffer.from('bytes')]));
  await putAttachment(sql.api, org, chatId, { storageKey });
}

/** A chat with messages and files, archived so many days ago. */
async function archivedChat(storage: Storage, org: TestOrganization, days: number, files = 2): Promise<string> {
  const { id } = await createChat(sql, org);
  for (let file = 0; file < files; file += 1) await attach(storage, org, id);
  await exchange(sql, org, id, [text('one')]);
  await exchange(sql, org, id, [text('two')]);
  await updateChat(sql.api, org, id, { status: 'archived' });
  await age(org, id, days);
  return id;
}

async function archive(org: TestOrganization): Promise<string> {
  const { id } = await createChat(sql, org);
  await updateChat(sql.api, org, id, { status: 'archived' });
  return id;
}

async function age(org: TestOrganization, chatId: string, days: number): Promise<void> {
  await sql.owner.query(
    `update app.chats set archived_at = now() - make_interval(days => $3) where organization_id = $1 and id = $2`,
    [org.organizationId, chatId, days],
  );
}

async function left(storage: Storage, org: TestOrganization, chatId: string) {
  const counts = await sql.owner.query(
    `select (select count(*)::int from app.messages where organization_id = $1 and chat_id = $2) as messages,
       (select count(*)::int from app.chat_attachments where organization_id = $1 and chat_id = $2) as attachments,
       (select count(*)::int from app.run_requests where organization_id = $1 and chat_id = $2) as requests,
       (select count(*)::int from app.runs where organization_id = $1 and chat_id = $2) as runs`,
    [org.organizationId, chatId],
  );
  const { objects } = await storage.list(chatPrefix(org.organizationId, chatId));
  return { chat: (await chatRow(sql, org, chatId)) !== undefined, objects: objects.length, ...counts.rows[0] };
}

const nothing = { chat: false, objects: 0, messages: 0, attachments: 0, requests: 0, runs: 0 };
const everything = { chat: true, objects: 2, messages: 4, attachments: 2, requests: 2, runs: 2 };

t.test('a chat goes 30 days after it was archived, with its messages, runs and files; others stay', async (test) => {
  const { context } = await openContext(test);
  const { storage } = context;
  const org = await createChatOrganization(sql);
  const old = await archivedChat(storage, org, 31);
  const recent = await archivedChat(storage, org, 29);
  const open = await createChat(sql, org);
  await attach(storage, org, open.id);
  await exchange(sql, org, open.id, [text('here')]);
  // An upload whose process died before it was recorded.
  await storage.put(chatAttachmentKey(org.organizationId, old), Readable.from([Buffer.from('stray')]));
  test.equal(await chatsClean({}, context), 'done');
  test.same(await left(storage, org, old), nothing);
  test.same(await left(storage, org, recent), everything);
  test.match(await left(storage, org, open.id), { chat: true, objects: 1, messages: 2, attachments: 1 });
  test.equal(await chatsClean({}, context), 'done', 'a repeat finds nothing');
  await send(sql.api, org, open.id);
});

t.test('a removal that is cut off anywhere goes on; meanwhile nobody sees the chat', async (test) => {
  const { context } = await openContext(test);
  const { storage } = context;
  const org = await createChatOrganization(sql);
  const id = await archivedChat(storage, org, 31);
  const failing = {
    ...storage,
    deletePrefix: async (prefix: string) => {
      await storage.deletePrefix(prefix, { batch: 1 });
      throw new Error('the disk is gone');
    },
  };
  await test.rejects(chatsClean({}, { ...context, storage: failing }), { message: /1 chats could not be removed/ });
  test.same(await left(storage, org, id), { ...nothing, chat: true, objects: 1 });
  test.match(await refusal(updateChat(sql.api, org, id, { status: 'open' })), {
    status: 404,
    code: 'chat_not_found',
  });
  test.match(await refusal(send(sql.api, org, id)), { code: 'chat_not_found' });
  const seen = await sql.api.query(
    `with scope as materialized (select set_config('app.organization_id', $1, true))
     select c.id from scope, lateral (select id from app.chats where id = $2 offset 0) c`,
    [org.organizationId, id],
  );
  test.same(seen.rows, []);

  const { context: stopped, stop } = await openContext(test);
  const stopping = {
    ...storage,
    deletePrefix: async () => {
      stop();
      return { deleted: 0, done: false };
    },
  };
  test.equal(await chatsClean({}, { ...stopped, storage: stopping }), 'done');
  test.same(await left(storage, org, id), { ...nothing, chat: true, objects: 1 });
  test.equal(await chatsClean({}, context), 'done');
  test.same(await left(storage, org, id), nothing);
});

t.test('one chat that cannot be removed stops no other', async (test) => {
  const { context } = await openContext(test);
  const { storage } = context;
  const org = await createChatOrganization(sql);
  const [broken, fine] = [await archivedChat(storage, org, 40), await archivedChat(storage, org, 35)];
  const failing = {
    ...storage,
    deletePrefix: async (...args: Parameters<Storage['deletePrefix']>) => {
      if (args[0].includes(broken)) throw new Error('broken on purpose');
      return storage.deletePrefix(...args);
    },
  };
  await test.rejects(chatsClean({}, { ...context, storage: failing }));
  test.same(await left(storage, org, fine), nothing);
  test.match(await left(storage, org, broken), { chat: true });
  await chatsClean({}, context);
  test.same(await left(storage, org, broken), nothing);
});

t.test('organizations take turns, beside one that has many chats to be removed', async (test) => {
  const { context } = await openContext(test);
  const [many, one] = [await createChatOrganization(sql), await createChatOrganization(sql)];
  for (let chat = 0; chat < 30; chat += 1) await age(many, await archive(many), 40);
  const single = await archive(one);
  await age(one, single, 31);
  const removed: string[] = [];
  const storage: Storage = {
    ...context.storage,
    deletePrefix: (prefix, options) => {
      removed.push(prefix);
      return context.storage.deletePrefix(prefix, options);
    },
  };
  test.equal(await chatsClean({}, { ...context, storage }), 'done');
  test.equal(removed.length, 31);
  const place = removed.indexOf(chatPrefix(one.organizationId, single));
  test.ok(place >= 0 && place < 10, `it goes as number ${place + 1}`);
});

t.test('a chat whose runtime still holds a slot waits for it', async (test) => {
  const { context } = await openContext(test);
  const org = await createChatOrganization(sql);
  const turn = await startedTurn(sql, org);
  await updateProfile(sql.api, org, { status: 'disabled' });
  await updateChat(sql.api, org, turn.chatId, { status: 'archived' });
  await age(org, turn.chatId, 31);
  test.equal(await chatsClean({}, context), 'done');
  test.match(await left(context.storage, org, turn.chatId), { chat: true, messages: 2 });
});

t.test('a purge that is not due, or another organization’s, removes nothing', async (test) => {
  const { context } = await openContext(test);
  const org = await createChatOrganization(sql);
  const id = await archivedChat(context.storage, org, 29);
  const purge = (organizationId: string, chatId: string) =>
    transition(sql.jobs, 'chat_purge', {
      organizationId,
      chatId,
      limit: 10,
      forget: true,
    });
  const gone = { done: true, gone: true };
  test.same(await purge(org.organizationId, id), gone);
  test.same(await purge(org.organizationId, (await createChat(sql, org)).id), gone);
  test.same(await purge((await createChatOrganization(sql)).organizationId, id), gone);
  test.same(await purge(org.organizationId, randomUUID()), gone);
  test.same(await left(context.storage, org, id), everything);
});

t.test('the job process removes them, fails what nobody starts, and tells the streams', async (test) => {
  const storageUrl = pathToFileURL(await openFolder(test)).href;
  const storage = openStorage(storageUrl);
  const org = await createChatOrganization(sql);
  // Before the process, which would fail its turns too if they were not started within a second.
  const old = await archivedChat(storage, org, 31);
  await openJobs(test, sql.url, { CHAT_START_SECONDS: '1', STORAGE_URL: storageUrl });
  await addJob(sql.owner, 'chats__clean', {}, 'chats__clean');
  await until('the job has run', async () => (await queued(sql.owner, 'chats__clean')).length === 0);
  test.same(await left(storage, org, old), nothing);

  const told: (string | undefined)[] = [];
  const listener = await sql.owner.connect();
  test.teardown(() => listener.release(true));
  listener.on('notification', ({ payload }) => told.push(payload));
  await listener.query('listen runner_chat');
  const chat = await createChat(sql, org);
  await send(sql.api, org, chat.id);
  await until('its streams are told', async () => told.includes(`${org.organizationId} ${chat.id}`));
  await send(sql.api, org, chat.id);
});
