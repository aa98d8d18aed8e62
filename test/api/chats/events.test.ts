import { randomUUID } from 'node:crypto';
import t from 'tap';
import { expectSuccess, refusalOf } from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { until } from '../../support/wait.ts';
import {
  ask,
  chatPath,
  createChat,
  createChatOrganization,
  type Followed,
  followChat,
  patchChat,
  revise,
} from './support.ts';

const app = await startTestApp(t);
const org = await createChatOrganization(app);
const other = await createChatOrganization(app);

const ids = (followed: Followed) => followed.events.map((event) => event.id);
const count = (followed: Followed, events: number) => until(`${events} events`, () => followed.events.length >= events);
const last = (followed: Followed) => followed.events.at(-1)?.data.message;

t.test('a stream begins with the retry time, the snapshot, and goes on with each revision', async (t) => {
  const chat = await createChat(app, org);
  const reply = await ask(app, chat);
  const stream = await followChat(app, chat, { headers: { 'accept-encoding': 'gzip, br' } });
  t.teardown(() => stream.stop());
  t.match(stream, {
    status: 200,
    headers: {
      'content-type': 'text/event-stream',
      'cache-control': 'no-store, no-transform',
      'x-accel-buffering': 'no',
      'content-encoding': undefined,
    },
  });
  await count(stream, 1);
  t.ok(stream.text().startsWith('retry: 2000\n\n'));
  t.equal(stream.retry(), 2000);
  t.match(stream.events[0], { id: `${reply.id}:1`, event: 'chat.snapshot', data: { type: 'chat.snapshot' } });
  t.same(stream.events[0]?.data.message, reply, 'the message as the other endpoints show it');
  await revise(app, reply, { text: 'One\ntwo\r\u2028three' });
  await count(stream, 2);
  t.match(stream.events[1], {
    id: `${reply.id}:2`,
    event: 'chat.message',
    data: { type: 'chat.message', message: { revision: 2, parts: [{ text: 'One\ntwo\r\u2028three' }] } },
  });
});

t.test('nothing comes until there is a reply; the first one is a snapshot', async (t) => {
  const chat = await createChat(app, org);
  const stream = await followChat(app, chat);
  t.teardown(() => stream.stop());
  await until('the retry time', () => stream.retry() !== undefined);
  t.equal(stream.events.length, 0);
  const reply = await ask(app, chat);
  await count(stream, 1);
  t.match(stream.events[0], { id: `${reply.id}:1`, event: 'chat.snapshot' });
});

t.test('fifty revisions as fast as they come: rising, and the last one arrives', async (t) => {
  const chat = await createChat(app, org);
  const reply = await ask(app, chat);
  const streams = await Promise.all([followChat(app, chat), followChat(app, chat), followChat(app, chat)]);
  t.teardown(() => {
    for (const stream of streams) stream.stop();
  });
  for (let revision = 2; revision <= 50; revision += 1) await revise(app, reply, { text: `${revision}` });
  await revise(app, reply, { text: 'done', status: 'complete' });
  for (const stream of streams) {
    await until('the last one', () => last(stream)?.status === 'complete');
    const seen = stream.events.map((event) => event.data.message?.revision ?? 0);
    t.same(
      seen,
      [...new Set(seen)].sort((a, b) => a - b),
    );
    t.match(stream.events.at(-1), { id: `${reply.id}:51`, data: { message: { parts: [{ text: 'done' }] } } });
    t.ok(stream.events.every(({ data }) => data.message?.revision === 51 || data.message?.status === 'pending'));
  }
});

t.test('the next reply follows in the same stream, after the last revision of the one before', async (t) => {
  const chat = await createChat(app, org);
  const first = await ask(app, chat);
  const stream = await followChat(app, chat);
  t.teardown(() => stream.stop());
  await count(stream, 1);
  // Both at once: one look at the tables finds the second reply, and the first one's end.
  await revise(app, first, { status: 'complete', silent: true });
  const second = await ask(app, chat);
  await count(stream, 3);
  t.same(ids(stream), [`${first.id}:1`, `${first.id}:2`, `${second.id}:1`]);
  t.same(stream.revisions(), ['chat.snapshot 1', 'chat.message 2', 'chat.message 1']);
});

t.test('a reader that comes back gets what the id that it names says', async (t) => {
  const chat = await createChat(app, org);
  const first = await ask(app, chat, 'One?');
  await revise(app, first);
  await revise(app, first, { status: 'complete' });
  const foreign = await ask(app, await createChat(app, other));
  const neighbour = await ask(app, await createChat(app, org));
  const second = await ask(app, chat, 'Two?');
  await revise(app, second);
  const snapshot = [`${second.id}:2`];
  const cases: readonly (readonly [string, string, readonly string[]])[] = [
    ['an older one', `${second.id}:1`, snapshot],
    ['one that is not there yet', `${second.id}:9`, snapshot],
    ['an earlier message', `${first.id}:1`, [`${first.id}:3`, ...snapshot]],
    ['the end of an earlier message', `${first.id}:3`, [`${first.id}:3`, ...snapshot]],
    ['the message that was asked', `${second.replyToMessageId}:1`, snapshot],
    ['another organization', `${foreign.id}:1`, snapshot],
    ['another chat', `${neighbour.id}:1`, snapshot],
    ['nobody', `${randomUUID()}:1`, snapshot],
    ['nothing', '', snapshot],
    ['junk', 'junk', snapshot],
    ['no revision', `${second.id}:`, snapshot],
    ['a huge revision', `${second.id}:99999999999999999999`, snapshot],
    ['text that is no id', `' or 1=1 --:2`, snapshot],
    ['half an id', second.id, snapshot],
  ];
  for (const [name, lastEventId, expected] of cases) {
    const stream = await followChat(app, chat, { lastEventId });
    await count(stream, expected.length);
    t.same(ids(stream), expected, name);
    t.equal(stream.events.at(-1)?.event, 'chat.snapshot', name);
    stream.stop();
  }
});

t.test('a reader that has the latest revision gets nothing until there is a newer one', async (t) => {
  const chat = await createChat(app, org);
  const reply = await ask(app, chat);
  const [upper, lower] = await Promise.all([
    followChat(app, chat, { lastEventId: `${reply.id.toUpperCase()}:1` }),
    followChat(app, chat, { lastEventId: `${reply.id}:1` }),
  ]);
  await until('the retry times', () => upper.retry() !== undefined && lower.retry() !== undefined);
  await revise(app, reply);
  for (const stream of [upper, lower]) {
    await count(stream, 1);
    t.match(stream.events[0], { id: `${reply.id}:2`, event: 'chat.message' });
    stream.stop();
  }
});

t.test('an archived chat ends its streams, and new ones after the snapshot', async (t) => {
  const chat = await createChat(app, org);
  const empty = await createChat(app, org);
  const reply = await ask(app, chat);
  await revise(app, reply, { status: 'complete' });
  const streams = [await followChat(app, chat), await followChat(app, empty)];
  expectSuccess(await patchChat(app, chat, { status: 'archived' }));
  expectSuccess(await app.owner.delete(chatPath(empty)));
  await until('both ended', () => streams.every((stream) => stream.ended()));
  t.same(streams[0]?.revisions(), ['chat.snapshot 2', 'chat.closed']);
  t.same(streams[1]?.revisions(), ['chat.closed']);
  t.same(streams[1]?.events[0]?.data, { type: 'chat.closed' });
  t.equal(streams[1]?.events[0]?.id, undefined, 'without an id');
  const again = await followChat(app, chat);
  await until('ended', () => again.ended());
  t.same(again.revisions(), ['chat.snapshot 2', 'chat.closed']);
  const resumed = await followChat(app, chat, { lastEventId: `${reply.id}:2` });
  await until('ended', () => resumed.ended());
  t.same(resumed.revisions(), ['chat.closed'], 'nothing else is new');
  expectSuccess(await patchChat(app, chat, { status: 'open' }));
  const restored = await followChat(app, chat);
  t.teardown(() => restored.stop());
  await count(restored, 1);
  await ask(app, chat);
  await count(restored, 2);
});

t.test('chats and organizations that are not there have no events', async (t) => {
  const chat = await createChat(app, org);
  t.equal(refusalOf(await app.owner.get(chatPath({ ...chat, id: randomUUID() }, '/events'))), '404 chat_not_found');
  const foreign = { ...chat, organizationId: other.organizationId };
  t.equal(refusalOf(await app.owner.get(chatPath(foreign, '/events'))), '404 chat_not_found');
  const nowhere = { ...chat, organizationId: randomUUID() };
  t.equal(refusalOf(await app.owner.get(chatPath(nowhere, '/events'))), '404 organization_not_found');
  t.equal(
    refusalOf(await app.owner.get(chatPath({ ...chat, id: 'x' }, '/events'))),
    '400 validation_failed invalid_format',
  );
});

t.test('HEAD shows the headers and opens no stream', async (t) => {
  const chat = await createChat(app, org);
  const head = await followChat(app, chat, { method: 'HEAD' });
  await until('ended', () => head.ended());
  t.match(head, { status: 200, headers: { 'content-type': 'text/event-stream' } });
  const missing = await followChat(app, { ...chat, id: randomUUID() }, { method: 'HEAD' });
  t.equal(missing.status, 404);
  missing.stop();
});
