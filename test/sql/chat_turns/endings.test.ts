import t from 'tap';
import {
  cancelMessage,
  claimTurn,
  completeTurn,
  createChat,
  createChatOrganization,
  messageRow,
  pullTurns,
  send,
  startedTurn,
  startTurn,
  turnRequest,
  write,
} from '../../support/chat_fixtures.ts';
import { endLease, expire, failRun, heartbeat, updateOrganization, updateProfile } from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSession, openSql, refusal, transition } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const lost = { status: 409, code: 'run_lease_expired', reason: 'lease_lost' };
const differs = { status: 409, code: 'run_lease_expired', reason: 'differs' };

function overdue(claim: { organizationId: string; runRequestId: string }, seconds: number) {
  return transition(sql.jobs, 'chat_turn_overdue', {
    p_organization_id: claim.organizationId,
    p_run_request_id: claim.runRequestId,
    p_start_seconds: seconds,
  });
}

scenario('a failed turn leaves its error, and is not run again; the chat goes on', async (test) => {
  const org = await createChatOrganization(sql);
  const turn = await startedTurn(sql, org);
  await write(sql.api, turn, 1, { append: 'half' });
  test.match(await failRun(sql.api, turn, { retryable: true }), { status: 'failed', chatId: turn.chatId });
  test.same(await failRun(sql.api, turn, { retryable: true }), { status: 'failed' });
  test.match(await refusal(failRun(sql.api, turn, { bodyHash: 'other' })), differs);
  test.match(await messageRow(sql, org, turn.messageId), {
    status: 'failed',
    error: { code: 'broken', message: 'It broke', retryable: true },
    parts: [{ text: 'half' }],
  });
  test.match(await turnRequest(sql, org, turn.messageId), { state: 'finished' });
  test.same(await pullTurns(sql.api, org), []);
  test.equal((await send(sql.api, org, turn.chatId)).assistantMessage.status, 'pending');
});

scenario('a claim whose lease ends is handed out again; a started turn whose lease ends has failed', async (test) => {
  const org = await createChatOrganization(sql);
  const chat = await createChat(sql, org);
  const { assistantMessage } = await send(sql.api, org, chat.id);
  const first = await claimTurn(sql, org);
  test.equal(await expire(sql.jobs, first), 'kept');
  await endLease(sql, first);
  test.equal(await expire(sql.jobs, first), 'republished');
  const turn = await startTurn(sql.api, await claimTurn(sql, org));
  test.match(await refusal(startTurn(sql.api, first)), lost);
  await write(sql.api, turn, 1, { append: 'half' });
  await endLease(sql, turn);
  test.equal(await expire(sql.jobs, turn), 'expired');
  test.equal(await expire(sql.jobs, turn), 'kept');
  test.match(await messageRow(sql, org, assistantMessage.id), {
    status: 'failed',
    revision: 3,
    error: { code: 'run_lease_expired', retryable: true },
  });
  test.match(await refusal(write(sql.api, turn, 2, { append: '!' })), lost);
  test.match(await refusal(completeTurn(sql.api, turn)), lost);
  test.match(await refusal(failRun(sql.api, turn)), lost);
  test.match(await messageRow(sql, org, assistantMessage.id), { status: 'failed', revision: 3 });
  await send(sql.api, org, chat.id);
});

scenario('a turn that nobody starts in time fails, with its claim', async (test) => {
  const org = await createChatOrganization(sql);
  const chat = await createChat(sql, org);
  const sent = await send(sql.api, org, chat.id);
  const claim = await claimTurn(sql, org);
  test.same(await overdue(claim, 300), { outcome: 'kept' });
  test.same(await overdue(claim, 0), { outcome: 'failed', chatId: chat.id });
  test.same(await overdue(claim, 0), { outcome: 'kept' });
  test.match(await messageRow(sql, org, sent.assistantMessage.id), {
    status: 'failed',
    revision: 2,
    error: { code: 'runtime_unavailable', retryable: true },
  });
  test.match(await refusal(startTurn(sql.api, claim)), lost);
  const turn = await startedTurn(sql, org);
  test.same(await overdue(turn, 0), { outcome: 'kept' }, 'a started one is not judged by it');
});

scenario('a start and the deadline at once: the first decides', async (test) => {
  const org = await createChatOrganization(sql);
  const chat = await createChat(sql, org);
  await send(sql.api, org, chat.id);
  const claim = await claimTurn(sql, org);
  const session = await openSession(test, sql);
  const rival = await openSession(test, sql, 'runner_jobs');
  await session.begin();
  const turn = await startTurn(session, claim);
  const judged = transition(rival, 'chat_turn_overdue', {
    p_organization_id: org.organizationId,
    p_run_request_id: claim.runRequestId,
    p_start_seconds: 0,
  });
  await rival.waits();
  await session.commit();
  test.same(await judged, { outcome: 'kept' });
  test.match(await completeTurn(sql.api, turn), { status: 'succeeded' });
});

scenario('the sweep finds what nobody has started, over all organizations', async (test) => {
  const org = await createChatOrganization(sql);
  const chat = await createChat(sql, org);
  await send(sql.api, org, chat.id);
  const due = async (seconds: number) => {
    const { rows } = await sql.jobs.query(
      `select ids from app.dispatch_due(1000, $2) where organization_id = $1 and kind = 'chat_overdue'`,
      [org.organizationId, seconds],
    );
    return rows.flatMap(({ ids }) => ids);
  };
  test.same(await due(300), []);
  test.equal((await due(0)).length, 1);
  const claim = await claimTurn(sql, org);
  test.same(await due(0), [claim.runRequestId]);
  await startTurn(sql.api, claim);
  test.same(await due(0), []);
});

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
  const { chatIds } = await updateProfile(sql.api, org, { status: 'disabled' });
  const ended = [started.chatId, yielding.chatId, claimedChat.id, waitingChat.id];
  test.same((chatIds as string[]).toSorted(), ended.toSorted());

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

scenario('a suspended organization’s turns are not handed out, and are overdue in the end', async (test) => {
  const org = await createChatOrganization(sql);
  const turn = await startedTurn(sql, org);
  const chat = await createChat(sql, org);
  const { assistantMessage } = await send(sql.api, org, chat.id);
  const claim = await claimTurn(sql, org);
  await updateOrganization(sql.api, org, { status: 'suspended' });
  test.match(await refusal(startTurn(sql.api, claim)), lost);
  test.same(await pullTurns(sql.api, org), []);
  const request = await turnRequest(sql, org, assistantMessage.id);
  test.equal(request.state, 'published');
  test.match(await completeTurn(sql.api, turn), { status: 'succeeded' }, 'what runs may finish');
  await overdue({ organizationId: org.organizationId, runRequestId: request.id }, 0);
  test.match(await messageRow(sql, org, assistantMessage.id), { status: 'failed' });
});

scenario('a completion and an expiry at once: the first decides', async (test) => {
  const org = await createChatOrganization(sql);
  const turn = await startedTurn(sql, org);
  const session = await openSession(test, sql);
  const rival = await openSession(test, sql, 'runner_jobs');
  await session.begin();
  await completeTurn(session, turn);
  const expiring = expire(rival, turn);
  await rival.waits();
  await session.commit();
  test.equal(await expiring, 'kept');
  test.equal((await messageRow(sql, org, turn.messageId)).status, 'complete');
});
