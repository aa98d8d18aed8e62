import { randomUUID } from 'node:crypto';
import t from 'tap';
import { claim, makeTask, type PulledItem, refusalOf, sqlOf } from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { createTestOrganization, expire } from '../../support/fixtures.ts';
import { brokenInvariants } from '../../support/invariants.ts';

const app = await startTestApp(t, { config: { leaseClaimSeconds: 3600 } });
const sql = sqlOf(app);

t.test('a claim that is not started is handed out again, and then the first one is over', async (t) => {
  const org = await createTestOrganization(sql);
  await makeTask(app, org);
  const first = await claim(app, org);
  await app.database.owner.query(
    `update app.run_requests set lease_expires_at = clock_timestamp() - interval '1 second'
     where organization_id = $1`,
    [org.organizationId],
  );
  const start = (item: PulledItem) =>
    app.service.post(`/internal/run-requests/${item.runRequestId}/start`, {
      organizationId: item.organizationId,
      leaseToken: item.leaseToken,
      runId: randomUUID(),
      workerId: 'worker',
    });
  t.equal(refusalOf(await start(first)), '409 run_lease_expired lease_lost');
  await expire(app.database.owner, first);
  const second = await claim(app, org);
  t.match(second, { runRequestId: first.runRequestId, attempt: 1, leaseToken: /^2\./ });
  t.equal(refusalOf(await start(first)), '409 run_lease_expired lease_lost');
  t.equal((await start(second)).status, 200);
});

t.test('the counters are right after all of it', async (t) => {
  t.same(await brokenInvariants(sql), {});
});
