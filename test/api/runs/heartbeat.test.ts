import t from 'tap';
import { expectSuccess, ownerPath, refusalOf, runTask, sqlOf, workerOf } from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { createTestOrganization } from '../../support/fixtures.ts';
import { brokenInvariants } from '../../support/invariants.ts';
import { until } from '../../support/wait.ts';

const app = await startTestApp(t, {
  config: { leaseSeconds: 300, leaseClaimSeconds: 3600, retryBackoffSeconds: 1, cancelGraceSeconds: 90 },
});
const sql = sqlOf(app);
const org = await createTestOrganization(sql, {
  key: 'growth',
  kind: 'department',
  maxConcurrentRuns: 50,
  limits: { maxConcurrentRuns: 50 },
});

t.test('a heartbeat renews the lease by what the backend says', async (t) => {
  const run = await runTask(app, org);
  await app.database.owner.query(
    `update app.run_requests set lease_expires_at = clock_timestamp() + interval '5 seconds'
     where organization_id = $1 and id = $2`,
    [run.organizationId, run.runRequestId],
  );
  expectSuccess(await workerOf(app, run).heartbeat());
  const { rows } = await app.database.owner.query<{ left: number }>(
    `select extract(epoch from lease_expires_at - clock_timestamp())::int as left from app.run_requests
     where organization_id = $1 and id = $2`,
    [run.organizationId, run.runRequestId],
  );
  t.ok((rows[0]?.left ?? 0) > 200, `${rows[0]?.left} seconds`);
  const more = await workerOf(app, run).post('heartbeat', { leaseSeconds: 9999 });
  t.match(refusalOf(more), '400 validation_failed', 'the worker cannot choose');
  expectSuccess(await workerOf(app, run).complete());
});

t.test('after a cancel it is renewed for the grace that is set, and usage that is reported then is kept', async (t) => {
  const run = await runTask(app, org);
  expectSuccess(await app.owner.post(ownerPath(org, `/tasks/${run.taskId}/cancel`)));
  await app.database.owner.query(
    `update app.run_requests set lease_expires_at = clock_timestamp() + interval '5 seconds' where id = $1`,
    [run.runRequestId],
  );
  t.same(expectSuccess(await workerOf(app, run).heartbeat()), { status: 'cancelling' });
  const { rows } = await app.database.owner.query<{ left: number }>(
    `select extract(epoch from lease_expires_at - clock_timestamp())::int as left from app.run_requests where id = $1`,
    [run.runRequestId],
  );
  const left = rows[0]?.left ?? 0;
  t.ok(left > 60 && left <= 90, `${left} seconds`);
  const usage = { inputTokens: 12, outputTokens: 3, toolCalls: 2, costMinorUnits: 7 };
  const result = { kind: 'completed', summary: 'Too late' };
  t.same(expectSuccess(await workerOf(app, run).complete(result, { usage })), { status: 'cancelled' });
  const shown = expectSuccess(await app.owner.get(ownerPath(org, `/runs/${run.runId}`)));
  t.match(shown, { status: 'cancelled', output: null, usage });
});

t.test('a heartbeat that waits hears of a cancel at once, and returns by itself without one', async (t) => {
  const run = await runTask(app, org);
  t.same(expectSuccess(await workerOf(app, run).post('heartbeat', { waitMs: 10 })), { status: 'starting' });
  t.match(refusalOf(await workerOf(app, run).post('heartbeat', { waitMs: 30_001 })), '400 validation_failed');
  const waiting = [1, 2].map(() => workerOf(app, run).post('heartbeat', { waitMs: 30_000 }));
  expectSuccess(await app.owner.post(ownerPath(org, `/tasks/${run.taskId}/cancel`)));
  for (const beat of waiting) t.same(expectSuccess(await beat), { status: 'cancelling' });
  t.same(expectSuccess(await workerOf(app, run).post('heartbeat', { waitMs: 30_000 })), { status: 'cancelling' });
  expectSuccess(await workerOf(app, run).complete());
});

t.test('a cancel in another process is heard of too', async (t) => {
  const other = await startTestApp(t, { database: app.database });
  await until('both listen', () => app.services.listener.connected() && other.services.listener.connected());
  const run = await runTask(app, org);
  const waiting = workerOf(app, run).post('heartbeat', { waitMs: 30_000 });
  expectSuccess(await other.owner.post(ownerPath(org, `/tasks/${run.taskId}/cancel`)));
  t.same(expectSuccess(await waiting), { status: 'cancelling' });
  expectSuccess(await workerOf(app, run).complete());
});

t.test('everything is consistent after all of it', async (t) => {
  t.same(await brokenInvariants(sql), {});
});
