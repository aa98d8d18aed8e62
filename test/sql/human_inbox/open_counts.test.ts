import t from 'tap';
import { createTestOrganization } from '../../support/fixtures.ts';
import { acknowledge, createAsking, createNotice, respond } from '../../support/inbox_fixtures.ts';
import { openSql, transition } from '../../support/transitions.ts';

const sql = await openSql(t);
const counts = () => transition(sql.api, 'human_inbox_open_counts', {});

t.test('what is open is counted by kind, over all organizations', async (test) => {
  test.same(await counts(), { question: 0, notification: 0, approval: 0, reconciliation: 0 });
  const [one, other] = [await createTestOrganization(sql), await createTestOrganization(sql)];
  const asking = await createAsking(sql, one);
  await createAsking(sql, other);
  const notice = await createNotice(sql, other);
  test.same(await counts(), { question: 2, notification: 1, approval: 0, reconciliation: 0 });
  await respond(sql.api, one, asking.item.id, 'x');
  await acknowledge(sql.api, other, notice.item.id);
  test.same(await counts(), { question: 1, notification: 0, approval: 0, reconciliation: 0 });
  await test.rejects(transition(sql.admin, 'human_inbox_open_counts', {}), { code: '42501' });
});
