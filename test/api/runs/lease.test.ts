import { randomUUID } from 'node:crypto';
import t, { type Test } from 'tap';
import {
  claim,
  expectSuccess,
  type Fields,
  fingerprint,
  type PulledItem,
  refusalOf,
  runTask,
  sqlOf,
  startOf,
  startRun,
  workerOf,
} from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import { createTestOrganization, endLease, expire, logEntry, publishNow } from '../../support/fixtures.ts';
import { brokenInvariants } from '../../support/invariants.ts';

const app = await startTestApp(t, { config: { leaseSeconds: 300, leaseClaimSeconds: 3600, retryBackoffSeconds: 1 } });
const sql = sqlOf(app);
const org = await createTestOrganization(sql, {
  key: 'growth',
  kind: 'department',
  maxConcurrentRuns: 50,
  limits: { maxConcurrentRuns: 50 },
});
const elsewhere = await createTestOrganization(sql);

const start = (item: PulledItem, fields: Fields = {}) =>
  app.service.post(`/internal/run-requests/${item.runRequestId}/start`, { ...startOf(item), ...fields });

/** Each call of a holder, by its name. */
const calls = (
  worker: ReturnType<typeof workerOf>,
): Record<string, () => Promise<Parameters<typeof refusalOf>[0]>> => ({
  running: () => worker.running(),
  heartbeat: () => worker.heartbeat(),
  logs: () => worker.logs([logEntry(1)]),
  complete: () => worker.complete(),
  fail: () => worker.fail(),
  put: () => worker.put('a.txt', 'a'),
  inputs: () => worker.inputs(),
  input: () => app.service.get(`${worker.inputsPath}/content?path=a`, { headers: worker.headers }),
});

async function allRefuse(t: Test, worker: ReturnType<typeof workerOf>, name: string): Promise<void> {
  const before = await fingerprint(app);
  for (const [call, send] of Object.entries(calls(worker))) {
    t.equal(refusalOf(await send()), '409 run_lease_expired lease_lost', `${call} with ${name}`);
  }
  t.equal(await fingerprint(app), before, `nothing was changed with ${name}`);
}

t.test('without the lease nothing works, and nothing tells what exists', async (t) => {
  const run = await runTask(app, org, { spec: { inputs: [{ kind: 'inline', path: 'a', text: 'a' }] } });
  const foreign = await runTask(app, elsewhere);
  const [fence, secret] = run.leaseToken.split('.');
  const wrong: Readonly<Record<string, Fields>> = {
    'another secret': { leaseToken: `${fence}.${'0'.repeat(64)}` },
    'another fence': { leaseToken: `2.${secret}` },
    'no fence': { leaseToken: secret },
    'no secret': { leaseToken: `${fence}.` },
    'the execution token': { leaseToken: run.executionToken },
    'the lease of another run': { leaseToken: foreign.leaseToken },
    'any text': { leaseToken: '% \' "; --' },
    'an unknown run': { runId: randomUUID() },
    'an unknown organization': { organizationId: randomUUID() },
    'another organization': { organizationId: elsewhere.organizationId },
    'the run of another organization': { runId: foreign.runId },
  };
  for (const [name, fields] of Object.entries(wrong)) await allRefuse(t, workerOf(app, { ...run, ...fields }), name);
  expectSuccess(await workerOf(app, run).complete());
  expectSuccess(await workerOf(app, foreign).complete());
  const over = Object.entries(calls(workerOf(app, run))).filter(([call]) => call !== 'complete' && call !== 'fail');
  for (const [call, send] of over) {
    t.equal(refusalOf(await send()), '409 run_lease_expired lease_lost', `${call} after the end`);
  }
});

t.test(
  'an expired holder changes nothing from then on, even when it is first, and even as the same worker',
  async (t) => {
    const old = await runTask(app, org);
    await endLease(sql, old);
    await allRefuse(t, workerOf(app, old), 'a lease that has ended, which nobody has noticed');
    t.equal(await expire(sql.jobs, old), 'expired');
    await allRefuse(t, workerOf(app, old), 'an expired lease');
    await publishNow(sql, org, old.taskId);
    const item = await claim(app, org);
    await allRefuse(t, workerOf(app, old), 'a lease that another has claimed');
    t.match([item.runRequestId, item.attempt], [old.runRequestId, 2]);
    t.equal(refusalOf(await start({ ...item, leaseToken: old.leaseToken })), '409 run_lease_expired lease_lost');
    const run = await startRun(app, item);
    await allRefuse(t, workerOf(app, old), 'a lease that another runs under');
    await allRefuse(t, workerOf(app, { ...old, leaseToken: run.leaseToken }), 'the new lease for the old run');
    expectSuccess(await workerOf(app, run).complete());
  },
);

t.test('everything is consistent after all of it', async (t) => {
  t.same(await brokenInvariants(sql), {});
});
