import { randomUUID } from 'node:crypto';
import t from 'tap';
import {
  cancelMessage,
  claimTurn,
  completeTurn,
  createChat,
  createChatOrganization,
  exchange,
  messageRow,
  send,
  startedTurn,
  startTurn,
  text,
  turnRequest,
  write,
} from '../../support/chat_fixtures.ts';
import { endLease, expire, failRun, heartbeat } from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSession, openSql, refusal } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const notCancellable = { status: 409, code: 'message_not_cancellable' };

scenario('a cancel before the start returns cancelling, and cancelled follows at once', async (test) => {
  const org = await createChatOrganization(sql);
  const chat = await createChat(sql, org);
  const { assistantMessage } = await send(sql.api, org, chat.id);
  test.match(await cancelMessage(sql.api, org, assistantMessage), { status: 'cancelling', revision: 2 });
  test.match(await messageRow(sql, org, assistantMessage.id), { status: 'cancelled', revision: 3, error: null });
  test.match(await turnRequest(sql, org, assistantMessage.id), { state: 'cancelled' });
  test.match(await refusal(cancelMessage(sql.api, org, assistantMessage)), notCancellable);

  const { assistantMessage: claimed } = await send(sql.api, org, chat.id);
  const claim = await claimTurn(sql, org);
  await cancelMessage(sql.api, org, claimed);
  test.match(await refusal(startTurn(sql.api, claim)), { code: 'run_lease_expired', reason: 'lease_lost' });
  test.equal((await messageRow(sql, org, claimed.id)).status, 'cancelled');
});

scenario('a cancel of a started turn waits for the runtime to yield', async (test) => {
  const org = await createChatOrganization(sql);
  const turn = await startedTurn(sql, org);
  await write(sql.api, turn, 1, { append: 'half' });
  const message = turn.sent.assistantMessage;
  test.match(await cancelMessage(sql.api, org, message), { status: 'cancelling', revision: 3 });
  test.match(await refusal(cancelMessage(sql.api, org, message)), notCancellable);
  test.same(await heartbeat(sql.api, turn), { status: 'cancelling' });
  test.match(await write(sql.api, turn, 3, { append: ' more' }), { revision: 3, status: 'cancelling' });
  const ended = { status: 'cancelled', chatId: turn.chatId, messageId: turn.messageId };
  test.same(await completeTurn(sql.api, turn), ended);
  test.same(await completeTurn(sql.api, turn), { status: 'cancelled' });
  test.match(await messageRow(sql, org, message.id), { status: 'cancelled', revision: 4, parts: [{ text: 'half' }] });
  test.match(await refusal(cancelMessage(sql.api, org, message)), notCancellable);
});

scenario('a cancelled turn ends with a failure of the runtime, or with its lease, as cancelled', async (test) => {
  const org = await createChatOrganization(sql);
  const failing = await startedTurn(sql, org);
  await cancelMessage(sql.api, org, failing.sent.assistantMessage);
  test.match(await failRun(sql.api, failing), { status: 'cancelled' });
  test.match(await messageRow(sql, org, failing.messageId), { status: 'cancelled', error: null });
  const silent = await startedTurn(sql, org);
  await cancelMessage(sql.api, org, silent.sent.assistantMessage);
  await endLease(sql, silent);
  test.equal(await expire(sql.jobs, silent), 'cancelled');
  test.match(await messageRow(sql, org, silent.messageId), { status: 'cancelled', error: null });
});

scenario('only a reply that is under way is cancelled, by its own organization and chat', async (test) => {
  const org = await createChatOrganization(sql);
  const chat = await createChat(sql, org);
  const reply = await exchange(sql, org, chat.id, [text('done')]);
  test.match(await refusal(cancelMessage(sql.api, org, reply)), notCancellable);
  const { userMessage, assistantMessage } = await send(sql.api, org, chat.id);
  test.match(await refusal(cancelMessage(sql.api, org, userMessage)), notCancellable);
  const missing = { status: 404, code: 'message_not_found' };
  const other = await createChatOrganization(sql);
  test.match(await refusal(cancelMessage(sql.api, other, assistantMessage)), missing);
  const elsewhere = { ...assistantMessage, chat_id: (await createChat(sql, org)).id };
  test.match(await refusal(cancelMessage(sql.api, org, elsewhere)), missing);
  test.match(await refusal(cancelMessage(sql.api, org, { ...assistantMessage, id: randomUUID() })), missing);
  test.equal((await messageRow(sql, org, assistantMessage.id)).status, 'pending');
});

scenario('a cancel and a completion at once: the first decides', async (test) => {
  const org = await createChatOrganization(sql);
  const [one, two] = [await startedTurn(sql, org), await startedTurn(sql, org)];
  const session = await openSession(test, sql);
  const rival = await openSession(test, sql);
  await session.begin();
  await completeTurn(session, one);
  const cancelling = refusal(cancelMessage(rival, org, one.sent.assistantMessage));
  await rival.waits();
  await session.commit();
  test.match(await cancelling, notCancellable);
  test.equal((await messageRow(sql, org, one.messageId)).status, 'complete');

  await session.begin();
  await cancelMessage(session, org, two.sent.assistantMessage);
  const completing = completeTurn(rival, two);
  await rival.waits();
  await session.commit();
  test.match(await completing, { status: 'cancelled' });
  test.equal((await messageRow(sql, org, two.messageId)).status, 'cancelled');
});

scenario('a cancel and a start at once: the first decides', async (test) => {
  const org = await createChatOrganization(sql);
  const chat = await createChat(sql, org);
  const { assistantMessage } = await send(sql.api, org, chat.id);
  const claim = await claimTurn(sql, org);
  const session = await openSession(test, sql);
  const rival = await openSession(test, sql);
  await session.begin();
  const turn = await startTurn(session, claim);
  const cancelling = cancelMessage(rival, org, assistantMessage);
  await rival.waits();
  await session.commit();
  test.match(await cancelling, { status: 'cancelling' });
  test.equal((await messageRow(sql, org, assistantMessage.id)).status, 'cancelling', 'the runtime has it');
  await completeTurn(sql.api, turn);
});

scenario('two cancels at once: one is taken', async (test) => {
  const org = await createChatOrganization(sql);
  const turn = await startedTurn(sql, org);
  const session = await openSession(test, sql);
  const rival = await openSession(test, sql);
  await session.begin();
  await cancelMessage(session, org, turn.sent.assistantMessage);
  const second = refusal(cancelMessage(rival, org, turn.sent.assistantMessage));
  await rival.waits();
  await session.commit();
  test.match(await second, notCancellable);
  await completeTurn(sql.api, turn);
});
