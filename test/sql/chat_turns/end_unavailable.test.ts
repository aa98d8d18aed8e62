import t from 'tap';
import {
  cancelMessage,
  claimTurn,
  completeTurn,
  createChat,
  createChatOrganization,
  messageRow,
  send,
  startedTurn,
  startTurn,
} from '../../support/chat_fixtures.ts';
import { endLease, expire, heartbeat, updateProfile } from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSession, openSql, refusal } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const lost = { status: 409, code: 'run_lease_expired', reason: 'lease_lost' };

scenario('a disabled profile ends its turns at once, and no chat is stuck', async (test) => {
  const org = await createChatOrganization(sql);
  const started = await startedTurn(sql, org);
  const yielding = await startedTurn(sql, org);
  await cancelMessage(sql.api, org, yielding.sent.assistantMessage);
  const claimedChat = await createChat(sql, org);
  const claimed = await send(sql.api, org, claimedChat.id);
  const claim = await claimTurn(sql, org);
  const waitingChat = await createChat(sql, org);
  const waiting = await send(sql.api, org, waitingChat.id);
  await updateProfile(sql.api, org, { status: 'disabled' });

  for (const id of [started.messageId, claimed.assistantMessage.id, waiting.assistantMessage.id]) {
    test.match(await messageRow(sql, org, id), { status: 'failed', error: { code: 'runtime_unavailable' } });
  }
  test.equal((await messageRow(sql, org, yielding.messageId)).status, 'cancelled');
  test.match(await refusal(startTurn(sql.api, claim)), lost);
  test.same(await heartbeat(sql.api, started), { status: 'cancelling' });
  test.match(await completeTurn(sql.api, started), { status: 'cancelled' });
  test.match(await messageRow(sql, org, started.messageId), { status: 'failed' }, 'what is final stays');
  await endLease(sql, yielding);
  test.equal(await expire(sql.jobs, yielding), 'cancelled');
  test.match(await refusal(send(sql.api, org, waitingChat.id)), { status: 409, code: 'state_conflict' });
  await updateProfile(sql.api, org, { status: 'enabled' });
  await send(sql.api, org, waitingChat.id);
});

scenario('a profile that is disabled waits for a message that is being made, and ends its turn', async (test) => {
  const org = await createChatOrganization(sql);
  const chat = await createChat(sql, org);
  const session = await openSession(test, sql);
  const rival = await openSession(test, sql);
  await session.begin();
  const { assistantMessage } = await send(session, org, chat.id);
  const disabling = updateProfile(rival, org, { status: 'disabled' });
  await rival.waits();
  await session.commit();
  await disabling;
  test.match(await messageRow(sql, org, assistantMessage.id), { status: 'failed' });

  await updateProfile(sql.api, org, { status: 'enabled' });
  await session.begin();
  await updateProfile(session, org, { status: 'disabled' });
  const sending = refusal(send(rival, org, chat.id));
  await rival.waits();
  await session.commit();
  test.match(await sending, { status: 409, code: 'state_conflict' });
});
