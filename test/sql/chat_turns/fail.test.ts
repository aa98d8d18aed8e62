import t from 'tap';
import {
  createChatOrganization,
  messageRow,
  pullTurns,
  send,
  startedTurn,
  turnRequest,
  write,
} from '../../support/chat_fixtures.ts';
import { failRun } from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSql, refusal } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const differs = { status: 409, code: 'run_lease_expired', reason: 'differs' };

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
