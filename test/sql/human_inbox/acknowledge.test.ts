import t from 'tap';
import { createTestOrganization, taskRow } from '../../support/fixtures.ts';
import { acknowledge, createAsking, createNotice, respond } from '../../support/inbox_fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSql, refusal } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const notOpen = { status: 409, code: 'human_inbox_item_not_open' };

scenario('a notice is acknowledged, and what it tells stays as it is', async (test) => {
  const org = await createTestOrganization(sql);
  const { taskId, item } = await createNotice(sql, org);
  test.match(await acknowledge(sql.api, org, item.id), { status: 'acknowledged', response: null });
  test.match(await taskRow(sql, org, taskId), { status: 'blocked' });
  test.match(await refusal(acknowledge(sql.api, org, item.id)), notOpen);
});

scenario(
  'a notice is not responded to, a question not acknowledged; of one that is handled this is said first',
  async (test) => {
    const org = await createTestOrganization(sql);
    const notice = await createNotice(sql, org);
    const asking = await createAsking(sql, org);
    const invalid = (reason: string) => ({ status: 400, code: 'validation_failed', reason });
    test.match(await refusal(respond(sql.api, org, notice.item.id, 'x')), invalid('not_a_question'));
    test.match(await refusal(acknowledge(sql.api, org, asking.item.id)), invalid('not_a_notification'));
    await acknowledge(sql.api, org, notice.item.id);
    await respond(sql.api, org, asking.item.id, 'x');
    test.match(await refusal(respond(sql.api, org, notice.item.id, 'x')), notOpen);
    test.match(await refusal(acknowledge(sql.api, org, asking.item.id)), notOpen);
  },
);
