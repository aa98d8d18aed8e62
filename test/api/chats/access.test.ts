import t from 'tap';
import { createChatStreams } from '../../../api/chats/events/hub.ts';
import { expectSuccess } from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import type { TestOrganization } from '../../support/fixtures.ts';
import { startIssuer } from '../../support/jwt.ts';
import { until } from '../../support/wait.ts';
import { ask, createChat, createChatOrganization, followChat, revise } from './support.ts';

const issuer = await startIssuer(t);
const app = await startTestApp(t, { config: { ownerAuth: issuer.ownerAuth } });
/** The same database behind a loopback port without authentication: a platform operator. */
const platform = await startTestApp(t, { database: app.database });
const patient = app.services.chatStreams;
// Asks for the membership before each revision, whenever it asked last.
const strict = createChatStreams({ ...app.services, notifier: { sender: () => undefined }, accessMs: 0 });
t.teardown(() => strict.close());
const use = (chatStreams: typeof patient) => Object.assign(app.services, { chatStreams });

const member = (org: TestOrganization, subject: string) => `/organizations/${org.organizationId}/members/${subject}`;
const invite = async (org: TestOrganization, subject: string) =>
  expectSuccess(await platform.owner.put(member(org, subject), { role: 'viewer' }));
const remove = async (org: TestOrganization, subject: string) =>
  t.equal((await platform.owner.delete(member(org, subject))).status, 200);
const withToken = async (subject: string, expiresAt?: Date) => ({
  headers: { authorization: `Bearer ${await issuer.token(subject, expiresAt)}` },
});

t.test('the stream of a removed member ends without a further message; those of others go on', async (t) => {
  use(strict);
  const org = await createChatOrganization(platform);
  const chat = await createChat(platform, org);
  const reply = await ask(platform, chat);
  for (const subject of ['vic', 'anna']) await invite(org, subject);
  const removed = await followChat(app, chat, await withToken('vic'));
  const kept = await followChat(app, chat, await withToken('anna'));
  t.teardown(() => kept.stop());
  await until('both begin', () => removed.events.length === 1 && kept.events.length === 1);
  await revise(platform, reply, { text: 'one' });
  await until('both see it', () => removed.events.length === 2 && kept.events.length === 2);
  await remove(org, 'vic');
  await revise(platform, reply, { text: 'two' });
  await until('the member sees it', () => kept.events.length === 3);
  await until('the end', () => removed.ended());
  t.equal(removed.events.length, 2);
  t.equal((await followChat(app, chat, await withToken('vic'))).status, 404);
});

t.test('a removal ends a stream in whose chat nothing happens, and a member of elsewhere stays there', async (t) => {
  use(patient);
  const [org, other] = [await createChatOrganization(platform), await createChatOrganization(platform)];
  const chat = await createChat(platform, org);
  const elsewhere = await createChat(platform, other);
  for (const one of [org, other]) await invite(one, 'vic');
  const quiet = await followChat(app, chat, await withToken('vic'));
  const stays = await followChat(app, elsewhere, await withToken('vic'));
  t.teardown(() => stays.stop());
  await remove(org, 'vic');
  await until('the end', () => quiet.ended());
  t.notOk(stays.ended());
  const reply = await ask(platform, elsewhere);
  await until('the reply', () => stays.events.at(-1)?.data.message?.id === reply.id);
});

t.test('a stream ends with its token', async (t) => {
  use(patient);
  const org = await createChatOrganization(platform);
  const chat = await createChat(platform, org);
  await invite(org, 'vic');
  // Clocks may differ by five seconds: this one has as long to go.
  const ending = await followChat(app, chat, await withToken('vic', new Date()));
  t.equal(ending.status, 200);
  const lasting = await followChat(app, chat, await withToken('vic'));
  t.teardown(() => lasting.stop());
  await until('the end', () => ending.ended());
  t.notOk(lasting.ended());
});

t.test('the end of the organization closes the chat for its members', async (t) => {
  use(strict);
  const org = await createChatOrganization(platform);
  const chat = await createChat(platform, org);
  await invite(org, 'vic');
  const stream = await followChat(app, chat, await withToken('vic'));
  await ask(platform, chat);
  await until('it begins', () => stream.events.length === 1);
  t.equal((await platform.owner.delete(`/organizations/${org.organizationId}`)).status, 200);
  await until('the end', () => stream.ended());
  t.equal(stream.events.at(-1)?.event, 'chat.closed');
});
