import { randomUUID } from 'node:crypto';
import t from 'tap';
import {
  claim,
  expectSuccess,
  type Fields,
  makeTask,
  ownerPath,
  PULL,
  type PulledItem,
  pullItems,
  refusalOf,
  runTask,
  sqlOf,
  startRun,
  workerOf,
} from '../../support/api_fixtures.ts';
import { startTestApp } from '../../support/app.ts';
import {
  createSecondProfile,
  createTestOrganization,
  lastRequest,
  type TestOrganization,
  updateOrganization,
} from '../../support/fixtures.ts';
import { brokenInvariants } from '../../support/invariants.ts';
import { until } from '../../support/wait.ts';

const app = await startTestApp(t, { config: { leaseClaimSeconds: 3600 } });
const sql = sqlOf(app);

const pull = (fields: Fields) => app.service.post<{ items: PulledItem[] }>(PULL, { workerId: 'worker', ...fields });
const of = (org: TestOrganization, fields: Fields = {}) => ({ organizationIds: [org.organizationId], ...fields });

/** The number of requests that wait in this process for work. */
async function waiting(): Promise<number> {
  return (await app.services.metrics.pullWaiters.get()).values[0]?.value ?? 0;
}

t.test('an item carries all that a worker needs to begin', async (t) => {
  const org = await createTestOrganization(sql, { key: 'growth', kind: 'department' });
  const task = await makeTask(app, org, { priority: 3, spec: { objective: 'Do it' } });
  const [item, ...more] = await pullItems(app, of(org, { limit: 50, kinds: ['task'], profileKeys: ['growth', 'x'] }));
  t.same(more, []);
  t.match(item, {
    organizationId: org.organizationId,
    leaseToken: /^1\.[0-9a-f]{64}$/,
    kind: 'task',
    mode: 'execute',
    attempt: 1,
    priority: 3,
    agentProfile: { id: org.profileId, key: 'growth', kind: 'department', organizationId: org.organizationId },
  });
  t.same(item?.task, task);
  t.ok(Date.parse(item?.leaseExpiresAt ?? '') > Date.now() + 3_000_000);
});

t.test('priority first, then age; limit and filters hold', async (t) => {
  const org = await createTestOrganization(sql, { key: 'a', maxConcurrentRuns: 5 });
  const second = await createSecondProfile(sql, org, { key: 'b', maxConcurrentRuns: 5 });
  const low = await makeTask(app, org, { priority: -1 });
  const first = await makeTask(app, org, { priority: 5 });
  const other = await makeTask(app, second, { priority: 9 });
  const later = await makeTask(app, org, { priority: 5 });
  t.same(await pullItems(app, of(org, { profileKeys: ['c'] })), []);
  t.same(await pullItems(app, of(org, { kinds: ['chat'] })), []);
  t.same(await pullItems(app, { organizationIds: [randomUUID()] }), []);
  const ids = (items: readonly PulledItem[]) => items.map((item) => item.task.id);
  t.same(ids(await pullItems(app, of(org, { profileKeys: ['a'], limit: 2 }))), [first.id, later.id]);
  t.same(ids(await pullItems(app, of(org, { limit: 10 }))), [other.id, low.id]);
  t.same(await pullItems(app, of(org, { limit: 10 })), [], 'each is handed out once');
});

t.test('an organization at its capacity is passed over, and organizations take turns', async (t) => {
  const small = await createTestOrganization(sql, { limits: { maxConcurrentRuns: 1 }, maxConcurrentRuns: 5 });
  const large = await createTestOrganization(sql, { limits: { maxConcurrentRuns: 5 }, maxConcurrentRuns: 5 });
  for (let n = 0; n < 3; n += 1) {
    await makeTask(app, small, { priority: 100 });
    await makeTask(app, large);
  }
  const both = { organizationIds: [small.organizationId, large.organizationId] };
  const items = await pullItems(app, { ...both, limit: 2 });
  t.same(new Set(items.map((item) => item.organizationId)), new Set(both.organizationIds), 'one each');
  t.equal((await pullItems(app, { ...both, limit: 50 })).length, 2, 'the other two of the large one');
  const held = items.find((item) => item.organizationId === small.organizationId);
  const run = await startRun(app, held as PulledItem);
  t.same(await pullItems(app, of(small)), [], 'a run holds capacity as its claim did');
  expectSuccess(await workerOf(app, run).complete());
  t.equal((await pullItems(app, of(small))).length, 1, 'and gives it back at its end');
});

t.test('a wait that finds nothing ends with an empty list', async (t) => {
  const org = await createTestOrganization(sql);
  const started = performance.now();
  t.same(await pullItems(app, of(org, { waitMs: 150 })), []);
  const took = performance.now() - started;
  t.ok(took >= 145, `${took} ms`);
  t.same(await pullItems(app, of(org, { waitMs: 0 })), []);
});

t.test('a waiting pull is woken by what makes work ready', async (t) => {
  const org = await createTestOrganization(sql);
  const fastest = new Map<string, number>();
  const woken = async (what: string, cause: () => Promise<unknown>) => {
    const before = await waiting();
    const pending = pull(of(org, { waitMs: 20_000 }));
    await until('the pull waits', async () => (await waiting()) > before);
    await cause();
    const caused = performance.now();
    const { items } = expectSuccess(await pending);
    t.equal(items.length, 1, what);
    fastest.set(what, Math.min(fastest.get(what) ?? Number.POSITIVE_INFINITY, performance.now() - caused));
    return startRun(app, items[0] as PulledItem);
  };
  // Notifications alone are faster than this: without one, the next look comes after two seconds.
  const late = () => [...fastest].filter(([, ms]) => ms >= 1_500);
  // Again where the machine was held up.
  for (let round = 0; round === 0 || (round < 3 && late().length > 0); round += 1) {
    const created = await woken('a task that is created', () => makeTask(app, org));
    expectSuccess(await workerOf(app, created).complete());

    const failing = await runTask(app, org);
    expectSuccess(await workerOf(app, failing).fail());
    const retry = ownerPath(org, `/tasks/${failing.taskId}/retry`);
    const retried = await woken('a retry', () => app.owner.post(retry));

    const waits = await makeTask(app, org, { dependsOn: [retried.taskId] });
    const next = await woken('a prerequisite that completes', () => workerOf(app, retried).complete());
    t.equal(next.taskId, waits.id);
    expectSuccess(await workerOf(app, next).complete());
  }
  t.same(late(), []);
});

t.test('the end of a run wakes a pull where requests wait for its capacity', async (t) => {
  const org = await createTestOrganization(sql, { limits: { maxConcurrentRuns: 1 } });
  const run = await runTask(app, org);
  const { id } = await makeTask(app, org);
  const before = await waiting();
  const pending = pull(of(org, { waitMs: 20_000 }));
  await until('the pull waits', async () => (await waiting()) > before);
  expectSuccess(await workerOf(app, run).complete());
  t.same(
    expectSuccess(await pending).items.map((item) => item.task.id),
    [id],
  );
});

t.test('several that wait for the same share what comes, one each', async (t) => {
  const org = await createTestOrganization(sql, { maxConcurrentRuns: 5 });
  const before = await waiting();
  const pending = [1, 2, 3].map((n) => pull(of(org, { waitMs: 20_000, limit: 5, workerId: `w${n}` })));
  await until('all wait', async () => (await waiting()) === before + 3);
  const tasks = await Promise.all([1, 2, 3].map(() => makeTask(app, org)));
  const got = (await Promise.all(pending)).flatMap((response) => expectSuccess(response).items);
  t.same(new Set(got.map((item) => item.task.id)), new Set(tasks.map((task) => task.id)));
});

t.test('a client that goes away while it waits takes no work with it', async (t) => {
  const org = await createTestOrganization(sql);
  const before = await waiting();
  const leaving = new AbortController();
  const pending = app.service.post(PULL, { workerId: 'w', waitMs: 20_000, ...of(org) }, { signal: leaving.signal });
  await until('the pull waits', async () => (await waiting()) === before + 1);
  leaving.abort();
  await t.rejects(pending);
  await until('nobody waits', async () => (await waiting()) === before);
  const { id } = await makeTask(app, org);
  t.match(await lastRequest(sql, org, id), { state: 'published', fence: 0 });
});

/** Holds the gate that every claim passes, while `work` runs. */
async function withGateClosed(work: (claimsAtGate: () => Promise<boolean>) => Promise<void>): Promise<void> {
  const gate = await app.database.owner.connect();
  try {
    await gate.query('begin');
    await gate.query('select 1 from app.pull_gate for update');
    await work(async () => {
      // Not over the gate's connection: in a transaction the first look at the activity is kept for all later ones.
      const { rows } = await app.database.owner.query(
        `select 1 from pg_stat_activity
         where wait_event_type = 'Lock' and query like '%run_requests_pull%' and datname = current_database()`,
      );
      return rows.length > 0;
    });
  } finally {
    await gate.query('commit');
    gate.release();
  }
}

t.test('a claim that is under way when its client goes is given back', async (t) => {
  const org = await createTestOrganization(sql);
  const { id } = await makeTask(app, org);
  const before = app.logged.length;
  await withGateClosed(async (claimsAtGate) => {
    const leaving = new AbortController();
    const pending = app.service.post(PULL, { workerId: 'w', ...of(org) }, { signal: leaving.signal });
    await until('the claim waits at the gate', claimsAtGate);
    leaving.abort();
    await t.rejects(pending);
    await until('the server has noticed', () =>
      app.logged.slice(before).some((line) => line['operation'] === 'pullRunRequests'),
    );
  });
  await until('it was claimed and given back', async () => {
    const { state, fence } = await lastRequest(sql, org, id);
    return state === 'published' && fence === 1;
  });
  t.equal((await claim(app, org)).task.id, id, 'and the next worker has it');
});

t.test('a pull is checked, and the service token alone opens it', async (t) => {
  const wrong: Readonly<Record<string, Fields>> = {
    'no worker': { workerId: undefined },
    'an empty worker': { workerId: '' },
    'a long worker': { workerId: 'x'.repeat(201) },
    'a NUL': { workerId: 'a\0' },
    'limit 0': { limit: 0 },
    'limit 51': { limit: 51 },
    'a limit as text': { limit: '1' },
    'a long wait': { waitMs: 30_001 },
    'a negative wait': { waitMs: -1 },
    'no organizations': { organizationIds: [] },
    'an organization that is no id': { organizationIds: ['acme'] },
    'an unknown kind': { kinds: ['mail'] },
    'an unknown field': { queue: 'x' },
  };
  for (const [name, fields] of Object.entries(wrong)) {
    t.match(refusalOf(await pull(fields)), /^400 validation_failed/, name);
  }
  t.equal(refusalOf(await app.owner.post(PULL, { workerId: 'w' })), '401 agent_unauthorized');
  t.equal(refusalOf(await app.owner.as('x'.repeat(40)).post(PULL, { workerId: 'w' })), '401 agent_unauthorized');
  const run = await runTask(app, await createTestOrganization(sql));
  const capability = app.owner.as(run.executionToken);
  t.equal(refusalOf(await capability.post(PULL, { workerId: 'w' })), '401 agent_unauthorized');
});

t.test('an Idempotency-Key does not count here: each pull claims anew', async (t) => {
  const org = await createTestOrganization(sql, { maxConcurrentRuns: 5 });
  const made = [(await makeTask(app, org)).id, (await makeTask(app, org)).id];
  const headers = { 'idempotency-key': 'k' };
  const got = [1, 2].map(() =>
    app.service.post<{ items: PulledItem[] }>(PULL, { workerId: 'w', ...of(org) }, { headers }),
  );
  const ids = (await Promise.all(got)).flatMap((reply) => expectSuccess(reply).items.map((item) => item.task.id));
  t.same(new Set(ids), new Set(made));
});

t.test('a stopped or suspended organization: what is published can be taken, or nothing at all', async (t) => {
  const org = await createTestOrganization(sql, { maxConcurrentRuns: 5 });
  const published = await makeTask(app, org);
  const dispatch = `/internal/agent/organizations/${org.organizationId}/work-dispatch`;
  expectSuccess(await app.service.patch(dispatch, { stopped: true }));
  const parked = await makeTask(app, org);
  t.same(
    (await pullItems(app, of(org, { limit: 5 }))).map((item) => item.task.id),
    [published.id],
  );
  const before = await waiting();
  const pending = pull(of(org, { waitMs: 20_000 }));
  await until('the pull waits', async () => (await waiting()) === before + 1);
  t.match(expectSuccess(await app.service.patch(dispatch, { stopped: false })), { publishedRunRequests: 1 });
  t.same(
    expectSuccess(await pending).items.map((item) => item.task.id),
    [parked.id],
  );

  await makeTask(app, org);
  await updateOrganization(app.database.owner, org, { status: 'suspended' });
  t.same(await pullItems(app, of(org)), []);
  await updateOrganization(app.database.owner, org, { status: 'active' });
  t.equal((await pullItems(app, of(org))).length, 1);
});

t.test('the counters are right after all of it', async (t) => {
  t.same(await brokenInvariants(sql), {});
});
