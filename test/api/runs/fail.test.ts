import t from 'tap';
import {
  claim,
  expectSuccess,
  makeTask,
  ownerPath,
  readTask,
  runNext,
  sqlOf,
  startRun,
  workerOf,
} from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { createTestOrganization, lastRequest, publishNow } from '../../support/fixtures.ts';
import { brokenInvariants } from '../../support/invariants.ts';

const app = await startTestApp(t, { config: { leaseSeconds: 300, leaseClaimSeconds: 3600, retryBackoffSeconds: 1 } });
const sql = sqlOf(app);
const org = await createTestOrganization(sql, {
  key: 'growth',
  kind: 'department',
  maxConcurrentRuns: 50,
  limits: { maxConcurrentRuns: 50 },
});

t.test('a retryable failure is tried again after a backoff, until the attempts are used up', async (t) => {
  const task = await makeTask(app, org, { priority: 1000, spec: { budget: { maxAttemptsPerPhase: 2 } } });
  const first = await runNext(app, org);
  const before = Date.now();
  t.same(expectSuccess(await workerOf(app, first).fail({ retryable: true })), { status: 'failed' });
  const after = Date.now();
  t.match(await readTask(app, org, task.id), { status: 'pending', state: { activeRunIds: [] } });
  const why = expectSuccess(await app.owner.get<{ summary: string }>(ownerPath(org, `/tasks/${task.id}/explain`)));
  t.match(why.summary, /is tried again at .*, as attempt 2, after: It broke\.$/);
  const { state, due_at: due } = await lastRequest(sql, org, task.id);
  t.equal(state, 'queued');
  t.ok(due.getTime() >= before + 500 && due.getTime() <= after + 1_000, 'due within the first backoff');
  await publishNow(sql, org, task.id);
  const claimed = await claim(app, org);
  const failures = [
    { runId: first.runId, mode: 'execute', status: 'failed', error: { code: 'broken', message: 'It broke' } },
  ];
  t.match(claimed.task?.state.failures, failures, 'the next run is told of the failure');
  const second = await startRun(app, claimed);
  t.equal(second.attempt, 2);
  expectSuccess(await workerOf(app, second).fail({ retryable: true, code: 'again' }));
  t.match(await readTask(app, org, task.id), {
    status: 'failed',
    phase: 'closed',
    state: { error: { code: 'again' } },
  });
});

t.test('everything is consistent after all of it', async (t) => {
  t.same(await brokenInvariants(sql), {});
});
