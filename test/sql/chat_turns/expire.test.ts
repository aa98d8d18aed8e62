import t from 'tap';
import {
  claimTurn,
  completeTurn,
  createChat,
  createChatOrganization,
  messageRow,
  send,
  startedTurn,
  startTurn,
  write,
} from '../../support/chat_fixtures.ts';
import { endLease, expire, failRun } from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSession, openSql, refusal } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const lost = { status: 409, code: 'run_lease_expired', reason: 'lease_lost' };

scenario('a claim whose lease ends is handed out again; a started turn whose lease ends has failed', async (test) => {
  const org = await createChatOrganization(sql);
  const chat = await createChat(sql, org);
  const { assistantMessage } = await send(sql.api, org, chat.id);
  const first = await claimTurn(sql, org);
  test.equal(await expire(sql.jobs, first), 'unchanged');
  await endLease(sql, first);
  test.equal(await expire(sql.jobs, first), 'republished');
  const turn = await startTurn(sql.api, await claimTurn(sql, org));
  test.match(await refusal(startTurn(sql.api, first)), lost);
  await write(sql.api, turn, 1, { append: 'half' });
  await endLease(sql, turn);
  test.equal(await expire(sql.jobs, turn), 'expired');
  test.equal(await expire(sql.jobs, turn), 'unchanged');
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
  test.equal(await expiring, 'unchanged');
  test.equal((await messageRow(sql, org, turn.messageId)).status, 'complete');
});
