import { randomUUID } from 'node:crypto';
import t from 'tap';
import { type ActionRow, createActing, grantGateway, propose } from '../../support/action_fixtures.ts';
import {
  cancelMessage,
  claimTurn,
  completeTurn,
  createChat,
  createChatOrganization,
  messageRow,
  send,
  startTurn,
  text,
  write,
} from '../../support/chat_fixtures.ts';
import { endLease, expire, failRun, heartbeat } from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSql, refusal } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

async function acting() {
  const org = await createChatOrganization(sql);
  const { integration } = await createActing(sql, undefined, org);
  const chat = await createChat(sql, org);

  /** The next turn of the chat, with a capability for the integration. */
  async function turn(chatId = chat.id) {
    const { assistantMessage } = await send(sql.api, org, chatId);
    const started = await startTurn(sql.api, await claimTurn(sql, org));
    const by = await grantGateway(sql, org, integration, started);
    return {
      started,
      reply: assistantMessage,
      propose: (amount: number) => propose(sql, by, { arguments: { amount } }),
      message: () => messageRow(sql, org, assistantMessage.id),
    };
  }
  return { org, turn };
}

const part = ({ id, ...action }: ActionRow) => ({ id, kind: 'action', actionId: id, summary: action['summary'] });
const unknown = { status: 400, code: 'validation_failed', reason: 'unknown_action' };

scenario('a reply that is complete shows what its turn proposed, in that order and without a status', async (test) => {
  const { turn } = await acting();
  const { started, propose, message } = await turn();
  const first = await propose(1);
  const second = await propose(2);
  test.equal((await propose(1)).id, first.id, 'the same again');
  test.match(await message(), { status: 'pending', parts: [] });
  await completeTurn(sql.api, started);
  const done = await message();
  test.match(done.parts[0], { kind: 'text', text: 'Done' });
  test.same(done.parts.slice(1), [part(first), part(second)]);
  await completeTurn(sql.api, started);
  test.same(await message(), done, 'a repeat changes nothing');
  const { rows } = await sql.owner.query('select search_text from app.messages where id = $1', [done.id]);
  test.same(rows, [{ search_text: 'done' }]);
});

scenario(
  'a turn that proposes nothing shows nothing, one that proposes what was proposed before shows that',
  async (test) => {
    const { turn } = await acting();
    const one = await turn();
    const action = await one.propose(1);
    await completeTurn(sql.api, one.started);
    const none = await turn();
    await completeTurn(sql.api, none.started);
    test.equal((await none.message()).parts.length, 1);
    const again = await turn();
    test.equal((await again.propose(1)).id, action.id);
    await completeTurn(sql.api, again.started, { parts: [] });
    test.same((await again.message()).parts, [part(action)]);
  },
);

scenario('a reply that fails or is cancelled shows them too, after what was written', async (test) => {
  const { org, turn } = await acting();
  const failed = await turn();
  const inFailed = await failed.propose(1);
  await write(sql.api, failed.started, 1, { append: 'Half' });
  await failRun(sql.api, failed.started);
  const message = await failed.message();
  test.equal(message.status, 'failed');
  test.match(message.parts, [{ kind: 'text', text: 'Half' }, part(inFailed)]);

  const lost = await turn();
  const inLost = await lost.propose(2);
  await endLease(sql, lost.started);
  await expire(sql.jobs, lost.started);
  test.match(await lost.message(), { status: 'failed', parts: [part(inLost)] });

  const cancelled = await turn();
  const inCancelled = await cancelled.propose(3);
  await cancelMessage(sql.api, org, cancelled.reply);
  test.same((await cancelled.message()).parts, []);
  test.match(await heartbeat(sql.api, cancelled.started), { status: 'cancelling' });
  await completeTurn(sql.api, cancelled.started);
  test.match(await cancelled.message(), { status: 'cancelled', parts: [part(inCancelled)] });
});

scenario('a runtime places them itself, and keeps their ids; what they do is not for it to say', async (test) => {
  const { turn } = await acting();
  const { started, propose, message } = await turn();
  const first = await propose(1);
  const second = await propose(2);
  const third = await propose(3);
  const named = (actionId: string, fields = {}) => ({ kind: 'action', actionId, ...fields });
  await write(sql.api, started, 1, { parts: [named(second.id, { summary: 'Nothing at all' }), text('There')] });
  test.match((await message()).parts, [part(second), { kind: 'text' }]);
  await write(sql.api, started, 2, { append: '.' });
  await write(sql.api, started, 3, { parts: [named(first.id, { id: 'mine' }), text('Here'), named(second.id)] });
  test.match((await message()).parts, [{ ...part(first), id: 'mine' }, { text: 'Here' }, part(second)]);
  await completeTurn(sql.api, started, { parts: [{ ...text('Mine'), id: third.id }, named(second.id)] });
  const { parts } = await message();
  test.equal(parts.length, 4);
  test.match(parts.slice(0, 3), [{ id: third.id, kind: 'text' }, part(second), part(first)]);
  test.match(parts[3], { ...part(third), id: /^(?!.*^mine$)/ });
  test.not(parts[3]?.id, third.id, 'another part has that id');
});

scenario('a part names an action of its own turn', async (test) => {
  const { turn } = await acting();
  const earlier = await turn();
  const before = await earlier.propose(1);
  await completeTurn(sql.api, earlier.started);
  const stranger = await acting();
  const foreign = await stranger.turn();
  const theirs = await foreign.propose(1);
  const { started, message } = await turn();
  for (const actionId of [before.id, theirs.id, randomUUID()]) {
    const parts = [{ kind: 'action', actionId }];
    test.match(await refusal(write(sql.api, started, 1, { parts })), unknown);
    test.match(await refusal(completeTurn(sql.api, started, { parts })), unknown);
  }
  test.match(await message(), { status: 'pending', revision: 1, parts: [] });
  await completeTurn(sql.api, started, { parts: [] });
  await completeTurn(sql.api, foreign.started, { parts: [] });
  test.same((await message()).parts, []);
});

scenario('nothing has to be answered about them', async (test) => {
  const { org, turn } = await acting();
  const { started, propose, reply } = await turn();
  await propose(1);
  await completeTurn(sql.api, started);
  const next = await send(sql.api, org, reply.chat_id);
  test.match(next.assistantMessage, { status: 'pending' });
});
