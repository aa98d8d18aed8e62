import { randomUUID } from 'node:crypto';
import t from 'tap';
import type { Message } from '../../../api/messages/schema.ts';
import { expectSuccess, ownerPath, refusalOf } from '../../support/api_fixtures.ts';
import { openGateway, REFUND } from '../../support/gateway_world.ts';
import { until } from '../../support/wait.ts';
import { ask, chatPath, createChat, createChatOrganization, follow } from '../chats/support.ts';
import { runtimeOf, startTurn } from './turns.ts';

const world = await openGateway(t);
const { app } = world;
const org = await createChatOrganization(app);
await world.connectShop(org);
const chat = await createChat(app, org);

const read = async ({ id }: Message) => expectSuccess(await app.owner.get<Message>(ownerPath(org, `/messages/${id}`)));

/** The next turn of the chat, which may call the shop. */
async function turn() {
  const reply = await ask(app, chat);
  const started = await startTurn(app, org);
  const by = await world.resolve(org, started);
  async function refund(charge: string) {
    const { action } = expectSuccess(await world.execute(by, { tool: REFUND, arguments: { charge } }));
    if (!action) throw new Error('no action was proposed');
    return action;
  }
  return { reply, refund, runtime: runtimeOf(app, started) };
}

t.test('what a turn proposes is in its reply, as everybody reads it', async (t) => {
  const stream = await follow(app.url, chatPath(chat, '/events'));
  t.teardown(() => stream.stop());
  const { reply, refund, runtime } = await turn();
  const first = await refund('ch_1');
  const second = await refund('ch_2');
  t.match(first, { chatId: chat.id, messageId: reply.id });
  t.same((await read(reply)).parts, []);
  expectSuccess(await runtime.complete({ parts: [{ kind: 'text', text: 'I propose two.' }] }));
  const message = await read(reply);
  const parts = [first, second].map(({ id, summary }) => ({ id, kind: 'action', actionId: id, summary }));
  t.same(message.parts.slice(1), parts);
  const { data } = await until('the stream shows the end', () =>
    stream.events.find((event) => event.data.message?.id === reply.id && event.data.message.status === 'complete'),
  );
  t.same(data.message?.parts, message.parts);

  await world.approve({ org }, first.id);
  await world.runAction({ org }, first.id);
  t.same(await read(reply), message, 'what becomes of them changes no message');

  const next = await turn();
  const { messages } = expectSuccess(await next.runtime.conversation());
  t.same(messages.find(({ id }) => id === reply.id)?.parts, message.parts);
  expectSuccess(await next.runtime.complete({ parts: [] }));
  t.same((await read(next.reply)).parts, []);
});

t.test('a runtime places the part, and an action of anybody else is refused', async (t) => {
  const { reply, refund, runtime } = await turn();
  const { id: actionId, summary } = await refund('ch_3');
  const part = { kind: 'action', actionId };
  const last = { kind: 'text', text: 'Is that right?' };
  expectSuccess(await runtime.write(1, [{ ...part, summary: 'A gift' }, last]));
  const { parts } = await read(reply);
  t.match(parts, [{ id: actionId, kind: 'action', actionId, summary }, last]);
  expectSuccess(await runtime.write(2, parts), 200);
  t.same((await read(reply)).parts, parts, 'what was read may be written');
  const other = await world.caller();
  const foreign = expectSuccess(await world.execute(other, { tool: REFUND, arguments: { charge: 'ch_3' } })).action?.id;
  for (const id of [foreign, randomUUID()]) {
    const written = await runtime.write(3, [last, { ...part, actionId: id }]);
    t.equal(refusalOf(written), '400 validation_failed unknown_action');
    const output = { parts: [{ ...part, actionId: id }] };
    t.equal(refusalOf(await runtime.complete(output)), '400 validation_failed unknown_action');
  }
  t.equal((await runtime.write(3, [{ ...part, status: 'approved' }])).status, 400, 'it has no status');
  t.equal(refusalOf(await runtime.write(3, [part, part])), '400 validation_failed duplicate_id');
  expectSuccess(await runtime.complete());
  t.same((await read(reply)).parts, parts);
});
