import t from 'tap';
import { completeTurn, createChatOrganization, messageRow, startedTurn } from '../../support/chat_fixtures.ts';
import { completeRun, createTask, recordOutput, runNext } from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSql, refusal } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

scenario('the output has to be that of the run', async (test) => {
  const org = await createChatOrganization(sql);
  const turn = await startedTurn(sql, org);
  const refused = { status: 400, code: 'validation_failed', reason: 'output_of_kind' };
  test.match(await refusal(completeRun(sql.api, turn)), refused);
  test.equal((await messageRow(sql, org, turn.messageId)).status, 'pending', 'the lease stays');
  test.match(await refusal(recordOutput(sql.api, turn, 'out.txt')), refused);
  await completeTurn(sql.api, turn);
  await createTask(sql, org);
  const run = await runNext(sql, org);
  test.match(await refusal(completeTurn(sql.api, run)), refused);
  await completeRun(sql.api, run);
});
