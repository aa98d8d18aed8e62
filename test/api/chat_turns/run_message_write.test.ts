import t from 'tap';
import type { Message } from '../../../api/messages/schema.ts';
import { expectSuccess, ownerPath, refusalOf } from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { ask, createChat, createChatOrganization } from '../chats/support.ts';
import { runtimeOf, startTurn } from './turns.ts';

const app = await startTestApp(t);
const org = await createChatOrganization(app);

const read = async (message: Message) =>
  expectSuccess(await app.owner.get<Message>(ownerPath(org, `/messages/${message.id}`)));

t.test('what was written last stays when the end brings no parts', async (t) => {
  const reply = await ask(app, await createChat(app, org));
  const runtime = runtimeOf(app, await startTurn(app, org));
  expectSuccess(await runtime.write(1, [{ kind: 'text', text: 'Written' }]));
  expectSuccess(await runtime.complete());
  t.match(await read(reply), { status: 'complete', parts: [{ text: 'Written' }] });
});

t.test('a base revision that is not the current one is refused, however large', async (t) => {
  const chat = await createChat(app, org);
  await ask(app, chat);
  const runtime = runtimeOf(app, await startTurn(app, org));
  for (const revision of [2, 2_147_483_647]) {
    t.equal(refusalOf(await runtime.append(revision, 'x')), '409 run_lease_expired differs');
  }
  t.equal(expectSuccess(await runtime.append(1, 'x')).revision, 2);
  expectSuccess(await runtime.complete());
});

t.test('a text that was made by appending may be rewritten, and completed with', async (t) => {
  const reply = await ask(app, await createChat(app, org));
  const runtime = runtimeOf(app, await startTurn(app, org));
  expectSuccess(await runtime.append(1, 'x'.repeat(60_000)));
  expectSuccess(await runtime.append(2, 'x'.repeat(60_000)));
  const { parts } = await read(reply);
  expectSuccess(await runtime.write(3, parts));
  expectSuccess(await runtime.complete({ parts }));
  t.same((await read(reply)).parts, parts);
});
