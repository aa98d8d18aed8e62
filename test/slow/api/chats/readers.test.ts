import t from 'tap';
import { createChatStreams } from '../../../../api/chats/events/hub.ts';
import {
  ask,
  chatPath,
  createChat,
  createChatOrganization,
  follow,
  followChat,
  patchChat,
  revise,
} from '../../../api/chats/support.ts';
import { expectSuccess } from '../../../support/api_fixtures.ts';
import { startTestApp } from '../../../support/app.ts';
import { until } from '../../../support/wait.ts';

const app = await startTestApp(t);
const org = await createChatOrganization(app);
// Impatient, so that nobody has to wait for a minute.
// They hear of all changes by notification, for the app tells its own streams of them.
const options = { ...app.services, notifier: { sender: () => undefined }, keepAliveMs: 300 };
const impatient = createChatStreams({ ...options, stallMs: 400 });
const patient = createChatStreams({ ...options, stallMs: 60_000 });
t.teardown(() => Promise.all([impatient.close(), patient.close()]));
const use = (chatStreams: typeof patient) => Object.assign(app.services, { chatStreams });

const metric = async (name: string, label = '') => {
  const text = await app.services.metrics.registry.metrics();
  return Number(new RegExp(`^${name}${label} (\\d+)$`, 'm').exec(text)?.[1] ?? 0);
};
const open = () => metric('runner_chat_streams');
const cut = () => metric('runner_chat_streams_cut_total');
const skipped = () => metric('runner_chat_stream_revisions_total', '\\{result="skipped"\\}');

// More than the kernel and Node hold for a connection, in a few revisions.
const large = (mark: string) => mark.padEnd(1_000_000, '.');

t.test('comment lines keep the connection open', async (t) => {
  use(patient);
  const chat = await createChat(app, org);
  const stream = await followChat(app, chat);
  await until('three', () => stream.comments() >= 3);
  t.equal(stream.events.length, 0);
  stream.stop();
  await until('it is forgotten', async () => (await open()) === 0);
});

t.test('a reader that stops for a while misses revisions, and gets the last one; others get theirs', async (t) => {
  use(patient);
  const chat = await createChat(app, org);
  const reply = await ask(app, chat);
  const [slow, quick] = await Promise.all([followChat(app, chat), followChat(app, chat)]);
  t.teardown(() => {
    slow.stop();
    quick.stop();
  });
  await until('both begin', () => slow.events.length === 1 && quick.events.length === 1);
  const before = await skipped();
  slow.response.pause();
  for (let revision = 2; revision <= 20; revision += 1) {
    await revise(app, reply, { text: large(`${revision}`) });
    await until('the other reader', () => quick.events.at(-1)?.data.message?.revision === revision);
  }
  await revise(app, reply, { text: 'the end', status: 'complete' });
  await until('the end', () => quick.events.at(-1)?.data.message?.status === 'complete');
  const next = await ask(app, chat);
  await until('the next reply', () => quick.events.at(-1)?.data.message?.id === next.id);
  slow.response.resume();
  await until('the slow one is there', () => slow.events.at(-1)?.data.message?.id === next.id);
  t.equal(quick.events.length, 22);
  t.ok(slow.events.length < 22, `${slow.events.length} of 22 events`);
  t.match(slow.events.at(-2)?.data.message, { id: reply.id, status: 'complete' }, 'the end of the first is not lost');
  t.ok((await skipped()) > before);
});

t.test('the end of a chat reaches a reader that had stopped', async (t) => {
  use(patient);
  const chat = await createChat(app, org);
  const reply = await ask(app, chat);
  const slow = await followChat(app, chat);
  await until('it begins', () => slow.events.length === 1);
  slow.response.pause();
  for (let revision = 2; revision <= 16; revision += 1) await revise(app, reply, { text: large(`${revision}`) });
  await revise(app, reply, { text: 'the end', status: 'complete' });
  expectSuccess(await patchChat(app, chat, { status: 'archived' }));
  slow.response.resume();
  await until('the end', () => slow.ended());
  t.match(slow.events.at(-2)?.data.message, { status: 'complete' });
  t.equal(slow.events.at(-1)?.event, 'chat.closed');
});

t.test('a reader that reads nothing for too long is cut off; one that has nothing to read is not', async (t) => {
  use(impatient);
  const chat = await createChat(app, org);
  const reply = await ask(app, chat);
  const idle = await follow(app.url, chatPath(await createChat(app, org), '/events'));
  const stuck = await followChat(app, chat);
  t.teardown(() => {
    idle.stop();
    // Paused, it hears of the cut only when it reads on.
    stuck.stop();
  });
  await until('it begins', () => stuck.events.length === 1);
  const before = await cut();
  stuck.response.pause();
  for (let revision = 2; revision <= 20; revision += 1) await revise(app, reply, { text: large(`${revision}`) });
  await until('it is cut off', async () => (await cut()) === before + 1);
  await until('it is forgotten', async () => (await open()) === 1);
  t.notOk(idle.ended());
  await until('comments', () => idle.comments() > 3);
});
