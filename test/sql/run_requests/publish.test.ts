import t from 'tap';
import { createTestOrganization, dueIn, endLease, expire, makeDue, publish, runNew } from '../../support/fixtures.ts';
import { scenarios } from '../../support/invariants.ts';
import { openSql } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

scenario('a request is published when its backoff is over, and not before', async (test) => {
  const org = await createTestOrganization(sql);
  const run = await runNew(sql, org);
  await endLease(sql, run);
  await expire(sql.jobs, run, { backoffSeconds: 100 });
  test.same(await dueIn(sql, org), {});
  test.match(await publish(sql.jobs, org, [run.runRequestId]), { published: 0 });
  await makeDue(sql, org, run.taskId);
  test.same(await dueIn(sql, org), { publish: [run.runRequestId] });
  test.match(await publish(sql.jobs, org, [run.runRequestId]), { published: 1 });
  test.match(await publish(sql.jobs, org, [run.runRequestId]), { published: 0 }, 'once');
  test.same(await dueIn(sql, org), {});
});
