import t from 'tap';
import {
  cancelMessage,
  claimTurn,
  completeTurn,
  createChat,
  createChatPlace,
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
  const place = await createChatPlace(sql);
  const turn = await startedTurn(sql, place);
  await write(sql.api, turn, 1, { append: 'half' });
  test.match(await failRun(sql.api, turn, { retryable: true }), { status: 'failed', chatId: turn.chatId });
  test.same(await failRun(sql.api, turn, { retryable: true }), { status: 'failed' });
  test.match(await refusal(failRun(sql.api, turn, { bodyHash: 'other' })), differs);
  test.match(await messageRow(sql, place, turn.messageId), {
    status: 'failed',
    error: { code: 'broken', message: 'It broke', retryable: true },
    parts: [{ text: 'half' }],
  });
  test.match(await turnRequest(sql, place, turn.messageId), { state: 'finished' });
  test.same(await pullTurns(sql.api, place), []);
  test.equal((await send(sql.api, place, turn.chatId)).assistantMessage.status, 'pending');
});

scenario('a claim whose lease ends is handed out again; a started turn whose lease ends has failed', async (test) => {
  const place = await createChatPlace(sql);
  const chat = await createChat(sql, place);
  const { assistantMessage } = await send(sql.api, place, chat.id);
  const first = await claimTurn(sql, place);
  test.equal(await expire(sql.jobs, first), 'kept');
  await endLease(sql, first);
  test.equal(await expire(sql.jobs, first), 'republished');
  const turn = await startTurn(sql.api, await claimTurn(sql, place));
  test.match(await refusal(startTurn(sql.api, first)), lost);
  await write(sql.api, turn, 1, { append: 'half' });
  await endLease(sql, turn);
  test.equal(await expire(sql.jobs, turn), 'expired');
  test.equal(await expire(sql.jobs, turn), 'kept');
  test.match(await messageRow(sql, place, assistantMessage.id), {
    status: 'failed',
    revision: 3,
    error: { code: 'run_lease_expired', retryable: true },
  });
  test.match(await refusal(write(sql.api, turn, 2, { append: '!' })), lost);
  test.match(await refusal(completeTurn(sql.api, turn)), lost);
  test.match(await refusal(failRun(sql.api, turn)), lost);
  test.match(await messageRow(sql, place, assistantMessage.id), { status: 'failed', revision: 3 });
  await send(sql.api, place, chat.id);
});

scenario('a turn that nobody starts in time fails, with its claim', async (test) => {
  const place = await createChatPlace(sql);
  const chat = await createChat(sql, place);
  const sent = await send(sql.api, place, chat.id);
  const claim = await claimTurn(sql, place);
  test.same(await overdue(claim, 300), { outcome: 'kept' });
  test.same(await overdue(claim, 0), { outcome: 'failed', chatId: chat.id });
  test.same(await overdue(claim, 0), { outcome: 'kept' });
  test.match(await messageRow(sql, place, sent.assistantMessage.id), {
    status: 'failed',
    revision: 2,
    error: { code: 'runtime_unavailable', retryable: true },
  });
  test.match(await refusal(startTurn(sql.api, claim)), lost);
  const turn = await startedTurn(sql, place);
  test.same(await overdue(turn, 0), { outcome: 'kept' }, 'a started one is not judged by it');
});

scenario('a start and the deadline at once: the first decides', async (test) => {
  const place = await createChatPlace(sql);
  const chat = await createChat(sql, place);
  await send(sql.api, place, chat.id);
  const claim = await claimTurn(sql, place);
  const session = await openSession(test, sql);
  const rival = await openSession(test, sql, 'runner_jobs');
  await session.begin();
  const turn = await startTurn(session, claim);
  const judged = transition(rival, 'chat_turn_overdue', {
    p_organization_id: place.organizationId,
    p_run_request_id: claim.runRequestId,
    p_start_seconds: 0,
  });
  await rival.waits();
  await session.commit();
  test.same(await judged, { outcome: 'kept' });
  test.match(await completeTurn(sql.api, turn), { status: 'succeeded' });
});

scenario('the sweep finds what nobody has started, over all organizations', async (test) => {
  const place = await createChatPlace(sql);
  const chat = await createChat(sql, place);
  await send(sql.api, place, chat.id);
  const due = async (seconds: number) => {
    const { rows } = await sql.jobs.query(
      `select ids from app.dispatch_due(1000, $2) where organization_id = $1 and sort = 'chat_overdue'`,
      [place.organizationId, seconds],
    );
    return rows.flatMap(({ ids }) => ids);
  };
  test.same(await due(300), []);
  test.equal((await due(0)).length, 1);
  const claim = await claimTurn(sql, place);
  test.same(await due(0), [claim.runRequestId]);
  await startTurn(sql.api, claim);
  test.same(await due(0), []);
});

scenario('a disabled profile ends its turns at once, and no chat is stuck', async (test) => {
  const place = await createChatPlace(sql);
  const started = await startedTurn(sql, place);
  const yielding = await startedTurn(sql, place);
  await cancelMessage(sql.api, place, yielding.sent.assistantMessage);
  const claimedChat = await createChat(sql, place);
  const claimed = await send(sql.api, place, claimedChat.id);
  const claim = await claimTurn(sql, place);
  const waitingChat = await createChat(sql, place);
  const waiting = await send(sql.api, place, waitingChat.id);
  const { chatIds } = await updateProfile(sql.api, place, { status: 'disabled' });
  const ended = [started.chatId, yielding.chatId, claimedChat.id, waitingChat.id];
  test.same((chatIds as string[]).toSorted(), ended.toSorted());

  for (const id of [started.messageId, claimed.assistantMessage.id, waiting.assistantMessage.id]) {
    test.match(await messageRow(sql, place, id), { status: 'failed', error: { code: 'runtime_unavailable' } });
  }
  test.equal((await messageRow(sql, place, yielding.messageId)).status, 'cancelled');
  test.match(await refusal(startTurn(sql.api, claim)), lost);
  test.same(await heartbeat(sql.api, started), { status: 'cancelling' });
  test.match(await completeTurn(sql.api, started), { status: 'cancelled' });
  test.match(await messageRow(sql, place, started.messageId), { status: 'failed' }, 'what is final stays');
  await endLease(sql, yielding);
  test.equal(await expire(sql.jobs, yielding), 'cancelled');
  test.match(await refusal(send(sql.api, place, waitingChat.id)), { status: 409, code: 'state_conflict' });
  await updateProfile(sql.api, place, { status: 'enabled' });
  await send(sql.api, place, waitingChat.id);
});

scenario('a profile that is disabled waits for a message that is being made, and ends its turn', async (test) => {
  const place = await createChatPlace(sql);
  const chat = await createChat(sql, place);
  const session = await openSession(test, sql);
  const rival = await openSession(test, sql);
  await session.begin();
  const { assistantMessage } = await send(session, place, chat.id);
  const disabling = updateProfile(rival, place, { status: 'disabled' });
  await rival.waits();
  await session.commit();
  await disabling;
  test.match(await messageRow(sql, place, assistantMessage.id), { status: 'failed' });

  await updateProfile(sql.api, place, { status: 'enabled' });
  await session.begin();
  await updateProfile(session, place, { status: 'disabled' });
  const sending = refusal(send(rival, place, chat.id));
  await rival.waits();
  await session.commit();
  test.match(await sending, { status: 409, code: 'state_conflict' });
});

scenario('a suspended organization’s turns are not handed out, and are overdue in the end', async (test) => {
  const place = await createChatPlace(sql);
  const turn = await startedTurn(sql, place);
  const chat = await createChat(sql, place);
  const { assistantMessage } = await send(sql.api, place, chat.id);
  const claim = await claimTurn(sql, place);
  await updateOrganization(sql.api, place, { status: 'suspended' });
  test.match(await refusal(startTurn(sql.api, claim)), lost);
  test.same(await pullTurns(sql.api, place), []);
  const request = await turnRequest(sql, place, assistantMessage.id);
  test.equal(request.state, 'published');
  test.match(await completeTurn(sql.api, turn), { status: 'succeeded' }, 'what runs may finish');
  await overdue({ organizationId: place.organizationId, runRequestId: request.id }, 0);
  test.match(await messageRow(sql, place, assistantMessage.id), { status: 'failed' });
});

scenario('a completion and an expiry at once: the first decides', async (test) => {
  const place = await createChatPlace(sql);
  const turn = await startedTurn(sql, place);
  const session = await openSession(test, sql);
  const rival = await openSession(test, sql, 'runner_jobs');
  await session.begin();
  await completeTurn(session, turn);
  const expiring = expire(rival, turn);
  await rival.waits();
  await session.commit();
  test.equal(await expiring, 'kept');
  test.equal((await messageRow(sql, place, turn.messageId)).status, 'complete');
});
