import t from 'tap';
import { functionText } from '../../../engine/db/function_text.ts';
import {
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
} from '../../support/chat_fixtures.ts';
import { updateOrganization } from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSession, openSql, refusal, transition } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const lost = { status: 409, code: 'run_lease_expired', reason: 'lease_lost' };
function overdue(claim: { organizationId: string; runRequestId: string }, seconds: number) {
  return transition(sql.jobs, 'chat_turn_end_overdue', {
    organizationId: claim.organizationId,
    runRequestId: claim.runRequestId,
    startSeconds: seconds,
  });
}

scenario('a turn that nobody starts in time fails, with its claim', async (test) => {
  const org = await createChatOrganization(sql);
  const chat = await createChat(sql, org);
  const sent = await send(sql.api, org, chat.id);
  const claim = await claimTurn(sql, org);
  test.same(await overdue(claim, 300), { outcome: 'unchanged' });
  test.same(await overdue(claim, 0), { outcome: 'failed', chatId: chat.id });
  test.same(await overdue(claim, 0), { outcome: 'unchanged' });
  test.match(await messageRow(sql, org, sent.assistantMessage.id), {
    status: 'failed',
    revision: 2,
    error: { code: 'runtime_unavailable', retryable: true },
  });
  test.match(await refusal(startTurn(sql.api, claim)), lost);
  const turn = await startedTurn(sql, org);
  test.same(await overdue(turn, 0), { outcome: 'unchanged' }, 'a started one is never overdue');
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
  const late = transition(rival, 'chat_turn_end_overdue', {
    organizationId: org.organizationId,
    runRequestId: claim.runRequestId,
    startSeconds: 0,
  });
  await rival.waits();
  await session.commit();
  test.same(await late, { outcome: 'unchanged' });
  test.match(await completeTurn(sql.api, turn), { status: 'succeeded' });
});

scenario('the sweep finds what nobody has started, over all organizations', async (test) => {
  const org = await createChatOrganization(sql);
  const chat = await createChat(sql, org);
  await send(sql.api, org, chat.id);
  const due = async (seconds: number) => {
    const { rows } = await sql.jobs.query(
      `select ids from ${functionText('dispatch_due', { chatStartSeconds: '$2' })}
       where organization_id = $1 and kind = 'chat_overdue'`,
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
