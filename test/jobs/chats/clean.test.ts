import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { pathToFileURL } from 'node:url';
import t, { type Test } from 'tap';
import { createLogger } from '../../../engine/log.ts';
import { chatAttachmentKey, chatPrefix, openStorage, type Storage } from '../../../engine/storage/index.ts';
import { chatsClean } from '../../../jobs/chats/clean.ts';
import type { TaskContext } from '../../../jobs/runner/handler.ts';
import { openServices } from '../../../jobs/runner/services.ts';
import {
  chatRow,
  createChat,
  createChatPlace,
  exchange,
  putAttachment,
  send,
  startedTurn,
  text,
  updateChat,
} from '../../support/chat_fixtures.ts';
import { type Place, updateProfile } from '../../support/fixtures.ts';
import { openFolder } from '../../support/folders.ts';
import { openSql, refusal, transition } from '../../support/transitions.ts';
import { until } from '../../support/wait.ts';
import { addJob, jobsConfig, openJobs, queued } from '../support.ts';

const sql = await openSql(t);

async function openContext(test: Test): Promise<{ context: TaskContext; stop: () => void }> {
  const services = openServices(await jobsConfig(test, sql.url), createLogger('silent', 'jobs'));
  test.teardown(() => services.close());
  const stopping = new AbortController();
  const context = { ...services, jobId: '1', attempt: 1, addJob: async () => {}, signal: stopping.signal };
  return { context, stop: () => stopping.abort() };
}

async function attach(storage: Storage, place: Place, chatId: string): Promise<void> {
  const storageKey = chatAttachmentKey(place.organizationId, chatId);
  await storage.put(storageKey, Readable.from([Buffer.from('bytes')]));
  await putAttachment(sql.api, place, chatId, { storageKey });
}

/** A chat with messages and files, archived so many days ago. */
async function archivedChat(storage: Storage, place: Place, days: number, files = 2): Promise<string> {
  const { id } = await createChat(sql, place);
  for (let file = 0; file < files; file += 1) await attach(storage, place, id);
  await exchange(sql, place, id, [text('one')]);
  await exchange(sql, place, id, [text('two')]);
  await updateChat(sql.api, place, id, { status: 'archived' });
  await age(place, id, days);
  return id;
}

async function age(place: Place, chatId: string, days: number): Promise<void> {
  await sql.owner.query(
    `update app.chats set archived_at = now() - make_interval(days => $3) where organization_id = $1 and id = $2`,
    [place.organizationId, chatId, days],
  );
}

async function left(storage: Storage, place: Place, chatId: string) {
  const counts = await sql.owner.query(
    `select (select count(*)::int from app.messages where organization_id = $1 and chat_id = $2) as messages,
       (select count(*)::int from app.chat_attachments where organization_id = $1 and chat_id = $2) as attachments,
       (select count(*)::int from app.run_requests where organization_id = $1 and chat_id = $2) as requests,
       (select count(*)::int from app.runs where organization_id = $1 and chat_id = $2) as runs`,
    [place.organizationId, chatId],
  );
  const { objects } = await storage.list(chatPrefix(place.organizationId, chatId));
  return { chat: (await chatRow(sql, place, chatId)) !== undefined, objects: objects.length, ...counts.rows[0] };
}

const nothing = { chat: false, objects: 0, messages: 0, attachments: 0, requests: 0, runs: 0 };
const everything = { chat: true, objects: 2, messages: 4, attachments: 2, requests: 2, runs: 2 };

t.test('a chat goes 30 days after it was archived, with its messages, runs and files; others stay', async (test) => {
  const { context } = await openContext(test);
  const { storage } = context;
  const place = await createChatPlace(sql);
  const old = await archivedChat(storage, place, 31);
  const recent = await archivedChat(storage, place, 29);
  const open = await createChat(sql, place);
  await attach(storage, place, open.id);
  await exchange(sql, place, open.id, [text('here')]);
  // An upload whose process died before it was recorded.
  await storage.put(chatAttachmentKey(place.organizationId, old), Readable.from([Buffer.from('stray')]));
  test.equal(await chatsClean({}, context), 'done');
  test.same(await left(storage, place, old), nothing);
  test.same(await left(storage, place, recent), everything);
  test.match(await left(storage, place, open.id), { chat: true, objects: 1, messages: 2, attachments: 1 });
  test.equal(await chatsClean({}, context), 'done', 'a repeat finds nothing');
  await send(sql.api, place, open.id);
});

t.test('a removal that is cut off anywhere goes on; meanwhile nobody sees the chat', async (test) => {
  const { context } = await openContext(test);
  const { storage } = context;
  const place = await createChatPlace(sql);
  const id = await archivedChat(storage, place, 31);
  const failing = {
    ...storage,
    deletePrefix: async (prefix: string) => {
      await storage.deletePrefix(prefix, { batch: 1 });
      throw new Error('the disk is gone');
    },
  };
  await test.rejects(chatsClean({}, { ...context, storage: failing }), { message: /1 chats could not be removed/ });
  test.same(await left(storage, place, id), { ...nothing, chat: true, objects: 1 });
  test.match(await refusal(updateChat(sql.api, place, id, { status: 'open' })), {
    status: 404,
    code: 'chat_not_found',
  });
  test.match(await refusal(send(sql.api, place, id)), { code: 'chat_not_found' });
  const seen = await sql.api.query(
    `with scope as materialized (select set_config('app.organization_id', $1, true))
     select c.id from scope, lateral (select id from app.chats where id = $2 offset 0) c`,
    [place.organizationId, id],
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
  test.same(await left(storage, place, id), { ...nothing, chat: true, objects: 1 });
  test.equal(await chatsClean({}, context), 'done');
  test.same(await left(storage, place, id), nothing);
});

t.test('one chat that cannot be removed stops no other', async (test) => {
  const { context } = await openContext(test);
  const { storage } = context;
  const place = await createChatPlace(sql);
  const [broken, fine] = [await archivedChat(storage, place, 40), await archivedChat(storage, place, 35)];
  const failing = {
    ...storage,
    deletePrefix: async (...args: Parameters<Storage['deletePrefix']>) => {
      if (args[0].includes(broken)) throw new Error('broken on purpose');
      return storage.deletePrefix(...args);
    },
  };
  await test.rejects(chatsClean({}, { ...context, storage: failing }));
  test.same(await left(storage, place, fine), nothing);
  test.match(await left(storage, place, broken), { chat: true });
  await chatsClean({}, context);
  test.same(await left(storage, place, broken), nothing);
});

t.test('a chat whose runtime still holds a slot waits for it', async (test) => {
  const { context } = await openContext(test);
  const place = await createChatPlace(sql);
  const turn = await startedTurn(sql, place);
  await updateProfile(sql.api, place, { status: 'disabled' });
  await updateChat(sql.api, place, turn.chatId, { status: 'archived' });
  await age(place, turn.chatId, 31);
  test.equal(await chatsClean({}, context), 'done');
  test.match(await left(context.storage, place, turn.chatId), { chat: true, messages: 2 });
});

t.test('a purge that is not due, or another organization’s, removes nothing', async (test) => {
  const { context } = await openContext(test);
  const place = await createChatPlace(sql);
  const id = await archivedChat(context.storage, place, 29);
  const purge = (organizationId: string, chatId: string) =>
    transition(sql.jobs, 'chat_purge', {
      p_organization_id: organizationId,
      p_chat_id: chatId,
      p_limit: 10,
      p_forget: true,
    });
  const gone = { done: true, gone: true };
  test.same(await purge(place.organizationId, id), gone);
  test.same(await purge(place.organizationId, (await createChat(sql, place)).id), gone);
  test.same(await purge((await createChatPlace(sql)).organizationId, id), gone);
  test.same(await purge(place.organizationId, randomUUID()), gone);
  test.same(await left(context.storage, place, id), everything);
});

t.test('the job process removes them, fails what nobody starts, and tells the streams', async (test) => {
  const storageUrl = pathToFileURL(await openFolder(test)).href;
  const storage = openStorage(storageUrl);
  const place = await createChatPlace(sql);
  // Before the process, which would fail its turns too if they were not started within a second.
  const old = await archivedChat(storage, place, 31);
  await openJobs(test, sql.url, { CHAT_START_SECONDS: '1', STORAGE_URL: storageUrl });
  await addJob(sql.owner, 'chats__clean', {}, 'chats__clean');
  await until('the job has run', async () => (await queued(sql.owner, 'chats__clean')).length === 0);
  test.same(await left(storage, place, old), nothing);

  const told: (string | undefined)[] = [];
  const listener = await sql.owner.connect();
  test.teardown(() => listener.release(true));
  listener.on('notification', ({ payload }) => told.push(payload));
  await listener.query('listen runner_chat');
  const chat = await createChat(sql, place);
  await send(sql.api, place, chat.id);
  await until('its streams are told', async () => told.includes(`${place.organizationId} ${chat.id}`));
  await send(sql.api, place, chat.id);
});
