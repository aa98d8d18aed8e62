import t from 'tap';
import { z } from 'zod';
import { functionText } from '../../../engine/db/function_text.ts';
import {
  type Claim,
  cancelTask,
  claimNext,
  completeRun,
  createSecondProfile,
  createTask,
  createTestOrganization,
  failRun,
  lastRequest,
  patchTask,
  pull,
  startRun,
  type TestOrganization,
  taskCreate,
  updateOrganization,
  updateProfile,
} from '../../support/fixtures.ts';
import { brokenInvariants, scenarios } from '../../support/invariants.ts';
import { openSession, openSql, type Sql, transition } from '../../support/transitions.ts';

const sql = await openSql(t);
const scenario = scenarios(t, sql);

const CREATE_TASK = functionText('task_create', {
  organizationId: '$1',
  task: `jsonb_build_object('title', 'task ' || n, 'ownerAgentProfileId', $2::text, 'priority', $4::int)`,
  actor: `'{"kind": "owner"}'`,
});

/** Many ready tasks, fifty a statement. */
async function createTasks(on: Sql, org: TestOrganization, count: number, priority = 0): Promise<void> {
  for (let made = 0; made < count; made += 50) {
    await on.api.query(`select count(${CREATE_TASK}) from generate_series(1, $3::int) n`, [
      org.organizationId,
      org.profileId,
      Math.min(50, count - made),
      priority,
    ]);
  }
}

function titles(claims: readonly Claim[]): string[] {
  return claims.map((claim) => claim.task.title);
}

const totalsResult = z.object({
  task: z.object({ ready: z.int(), held: z.int() }),
  chat: z.object({ oldestSeconds: z.literal(0) }),
});
const oldestResult = z.object({ task: z.object({ oldestSeconds: z.number() }) });

const at = (...orgs: Pick<TestOrganization, 'organizationId'>[]) => ({
  organizationIds: orgs.map((org) => org.organizationId),
});

scenario('the totals for metrics are those of every organization', async (test) => {
  const totals = async () => totalsResult.parse(await transition(sql.api, 'dispatch_totals', {})).task;
  const before = await totals();
  for (const org of [await createTestOrganization(sql), await createTestOrganization(sql)]) {
    for (let made = 0; made < 3; made += 1) await createTask(sql, org);
    await startRun(sql.api, await claimNext(sql, org));
  }
  test.same(await totals(), { ready: before.ready + 4, held: before.held + 2 });
  await test.rejects(transition(sql.jobs, 'dispatch_totals', {}), { code: '42501' });
});

scenario('the oldest request is one that may be pulled, of whichever organization', async (test) => {
  const oldest = async () => oldestResult.parse(await transition(sql.api, 'dispatch_totals', {})).task.oldestSeconds;
  const age = (org: TestOrganization, hours: number) =>
    sql.owner.query(
      `update app.run_requests set published_at = clock_timestamp() - make_interval(hours => $2)
       where organization_id = $1 and state = 'published'`,
      [org.organizationId, hours],
    );
  const [young, old] = [await createTestOrganization(sql), await createTestOrganization(sql)];
  for (const org of [young, old]) await createTask(sql, org);
  await age(young, 500);
  await age(old, 1000);
  const hours = async () => Math.floor((await oldest()) / 3_600);
  test.equal(await hours(), 1000);
  await updateOrganization(sql.api, old, { status: 'suspended' });
  test.equal(await hours(), 500, 'of a suspended organization nothing is handed out');
  await updateOrganization(sql.api, old, { status: 'active' });
  test.equal(await hours(), 1000);
  for (const org of [young, old]) await claimNext(sql, org);
  test.ok((await hours()) < 500);
});

scenario('a pull hands out what is needed to start, to the worker that asked', async (test) => {
  const org = await createTestOrganization(sql);
  const task = await createTask(sql, org, { title: 'one', priority: 7, spec: { objective: 'Do it' } });
  await createTask(sql, org, { title: 'two' });
  const { items } = (await transition(sql.api, 'run_requests_pull', {
    workerIds: ['w-1', 'w-2', 'w-3'],
    organizationIds: [org.organizationId],
    profileKeys: null,
    kinds: null,
    claimSeconds: 30,
  })) as { items: [Claim, Claim] };
  test.equal(items.length, 2);
  const request = await lastRequest(sql, org, task.id);
  test.match(items[0], {
    organizationId: org.organizationId,
    runRequestId: request.id,
    leaseToken: /^1\.[0-9a-f]{64}$/,
    kind: 'task',
    mode: 'execute',
    attempt: 1,
    priority: 7,
    agentProfile: { id: org.profileId, key: org.profileKey, status: 'enabled' },
    task: { id: task.id, title: 'one', graph_revision: 1, spec: { objective: 'Do it' } },
  });
  const left = (Date.parse(String(items[0]['leaseExpiresAt'])) - Date.now()) / 1000;
  test.ok(left > 20 && left < 40);
  test.match(request, { state: 'leased', fence: 1, attempt: 0, worker_id: 'w-1' });
  test.equal((await lastRequest(sql, org, items[1].task.id))['worker_id'], 'w-2');
});

scenario('nothing to do is an empty result', async (test) => {
  const org = await createTestOrganization(sql);
  test.same(await pull(sql.api, at(org)), []);
  test.same(await pull(sql.api, { organizationIds: [] }), []);
});

scenario('within an organization the higher priority comes first, then the older, over all profiles', async (test) => {
  const org = await createTestOrganization(sql, { limits: { maxConcurrentRuns: 10 } });
  const second = await createSecondProfile(sql, org);
  await createTask(sql, org, { title: 'old' });
  await createTask(sql, second, { title: 'high', priority: 5 });
  await createTask(sql, second, { title: 'new' });
  await createTask(sql, org, { title: 'low', priority: -1 });
  await createTask(sql, org, { title: 'higher', priority: 6 });
  test.same(titles(await pull(sql.api, { ...at(org), limit: 3 })), ['higher', 'high', 'old']);
  test.same(titles(await pull(sql.api, { ...at(org), limit: 3 })), ['new', 'low']);
});

scenario('a changed priority counts for what waits already', async (test) => {
  const org = await createTestOrganization(sql);
  await createTask(sql, org, { title: 'first' });
  const second = await createTask(sql, org, { title: 'second' });
  await patchTask(sql, org, second.id, { priority: 1 });
  test.equal((await claimNext(sql, org)).task.id, second.id);
});

scenario('filters keep to organizations, profiles and kinds', async (test) => {
  const org = await createTestOrganization(sql);
  const second = await createSecondProfile(sql, org);
  const elsewhere = await createTestOrganization(sql);
  await createTask(sql, org, { title: 'here', priority: 9 });
  await createTask(sql, second, { title: 'second' });
  await createTask(sql, elsewhere, { title: 'elsewhere' });
  const all = at(org, elsewhere);
  test.same(await pull(sql.api, { ...all, kinds: ['chat'], limit: 9 }), []);
  test.same(await pull(sql.api, { ...all, profileKeys: ['nobody'], limit: 9 }), []);
  test.same(
    titles(await pull(sql.api, { ...all, profileKeys: [second.profileKey, elsewhere.profileKey], limit: 9 })).sort(),
    ['elsewhere', 'second'],
  );
  test.same(titles(await pull(sql.api, { ...at(elsewhere), limit: 9 })), []);
  test.same(titles(await pull(sql.api, { ...all, kinds: ['task', 'chat'], limit: 9 })), ['here']);
});

scenario(
  'capacity of the organization and of each profile is taken at the pull and given back at the end',
  async (test) => {
    const org = await createTestOrganization(sql, { limits: { maxConcurrentRuns: 3 }, maxConcurrentRuns: 2 });
    const second = await createSecondProfile(sql, org, { maxConcurrentRuns: 2 });
    for (let n = 0; n < 4; n += 1) {
      await createTask(sql, org, { title: `a${n}`, priority: 1 });
      await createTask(sql, second, { title: `b${n}` });
    }
    const first = await pull(sql.api, { ...at(org), limit: 50 });
    test.same(titles(first), ['a0', 'a1', 'b0'], 'two of the first profile, three together');
    test.same(await pull(sql.api, at(org)), []);
    const [one, two, three] = first;
    if (!one || !two || !three) return;
    const run = await startRun(sql.api, one);
    test.same(await pull(sql.api, at(org)), [], 'a start takes nothing more');
    await completeRun(sql.api, run);
    test.same(titles(await pull(sql.api, { ...at(org), limit: 50 })), ['a2']);
    await failRun(sql.api, await startRun(sql.api, two), { retryable: true });
    test.same(titles(await pull(sql.api, { ...at(org), limit: 50 })), ['a3']);
    await cancelTask(sql.api, org, three.task.id);
    test.same(
      titles(await pull(sql.api, { ...at(org), limit: 50 })),
      ['b1'],
      'a cancelled claim frees its place at once',
    );
  },
);

scenario('raised limits open what was closed', async (test) => {
  const org = await createTestOrganization(sql, { limits: { maxConcurrentRuns: 1 }, maxConcurrentRuns: 1 });
  await createTasks(sql, org, 4);
  test.equal((await pull(sql.api, { ...at(org), limit: 9 })).length, 1);
  await updateOrganization(sql.api, org, { config: { limits: { maxConcurrentRuns: 3 } } });
  test.equal((await pull(sql.api, { ...at(org), limit: 9 })).length, 0);
  await updateProfile(sql.api, org, { config: { maxConcurrentRuns: 2 } });
  test.equal((await pull(sql.api, { ...at(org), limit: 9 })).length, 1);
  await updateProfile(sql.api, org, { config: { maxConcurrentRuns: 9 } });
  test.equal((await pull(sql.api, { ...at(org), limit: 9 })).length, 1);
});

scenario('one organization with a thousand requests does not starve another', async (test) => {
  // In a database of its own: the other tests would look at a thousand tasks too.
  const own = await openSql(test);
  const many = { limits: { maxConcurrentRuns: 1000 }, maxConcurrentRuns: 1000 };
  const big = await createTestOrganization(own, many);
  const small = await createTestOrganization(own, many);
  await createTasks(own, big, 1000, 5);
  await createTasks(own, small, 4);
  const order: string[] = [];
  for (let n = 0; n < 6; n += 1) {
    const [claim] = await pull(own.api, at(big, small));
    order.push(claim?.organizationId === small.organizationId ? 'small' : 'big');
  }
  test.equal(order.filter((who) => who === 'small').length, 3, `they take turns: ${order.join(' ')}`);
  const shared = await pull(own.api, { ...at(big, small), limit: 10 });
  test.equal(shared.filter((claim) => claim.organizationId === small.organizationId).length, 1, 'all that it has left');
  test.ok(shared.length >= 6, 'and the other one its share');
  test.same(await brokenInvariants(own), {});
});

scenario('a pull of many deals them out over the organizations', async (test) => {
  const many = { limits: { maxConcurrentRuns: 1000 }, maxConcurrentRuns: 1000 };
  const orgs = await Promise.all(Array.from({ length: 4 }, () => createTestOrganization(sql, many)));
  for (const org of orgs) await createTasks(sql, org, 10);
  const claims = await pull(sql.api, { ...at(...orgs), limit: 8 });
  for (const org of orgs) {
    test.equal(claims.filter((claim) => claim.organizationId === org.organizationId).length, 2);
  }
});

scenario('an organization at its capacity is passed over', async (test) => {
  const full = await createTestOrganization(sql, { limits: { maxConcurrentRuns: 1 } });
  const free = await createTestOrganization(sql);
  await createTasks(sql, full, 3);
  await createTasks(sql, free, 2);
  const claims = await pull(sql.api, { ...at(full, free), limit: 3 });
  test.equal(claims.length, 3);
  await createTasks(sql, free, 1);
  const [next] = await pull(sql.api, { ...at(full, free), limit: 3 });
  test.equal(next?.organizationId, free.organizationId);
});

scenario('eight pullers at once never exceed a capacity, and hand out nothing twice', async (test) => {
  const orgs = await Promise.all(
    Array.from({ length: 5 }, () =>
      createTestOrganization(sql, { limits: { maxConcurrentRuns: 3 }, maxConcurrentRuns: 2 }),
    ),
  );
  const seconds = await Promise.all(orgs.map((org) => createSecondProfile(sql, org, { maxConcurrentRuns: 2 })));
  for (const org of [...orgs, ...seconds]) await createTasks(sql, org, 12);
  const running = new Map<string, number>();
  const over: string[] = [];
  const seen = new Set<string>();
  const change = (key: string, by: number, limit: number) => {
    const value = (running.get(key) ?? 0) + by;
    running.set(key, value);
    if (value > limit) over.push(`${key}: ${value}`);
  };
  await Promise.all(
    Array.from({ length: 8 }, async (_, worker) => {
      for (let idle = 0; idle < 40 && seen.size < 120; ) {
        const claims = await pull(sql.api, { ...at(...orgs), limit: 1 + (worker % 4), workerId: `w-${worker}` });
        idle = claims.length > 0 ? 0 : idle + 1;
        for (const claim of claims) {
          if (seen.has(claim.runRequestId)) over.push(`${claim.runRequestId} twice`);
          seen.add(claim.runRequestId);
          const profile = String(claim.task['owner_agent_profile_id']);
          change(claim.organizationId, 1, 3);
          change(profile, 1, 2);
          const run = await startRun(sql.api, claim);
          change(claim.organizationId, -1, 3);
          change(profile, -1, 2);
          await completeRun(sql.api, run);
        }
      }
    }),
  );
  test.same(over, []);
  test.equal(seen.size, 120, 'and all is done in the end');
});

scenario('a pull waits for no request and no organization that another transaction holds', async (test) => {
  const org = await createTestOrganization(sql);
  const busy = await createTestOrganization(sql);
  const first = await createTask(sql, org, { title: 'held', priority: 9 });
  await createTask(sql, org, { title: 'free' });
  await createTask(sql, busy, { title: 'busy' });
  const holder = await openSession(test, sql, 'owner');
  await holder.begin();
  await holder.query('select from app.run_requests where task_id = $1 for update', [first.id]);
  await holder.query('select from app.dispatch where organization_id = $1 for update', [busy.organizationId]);
  test.same(titles(await pull(sql.api, { ...at(org, busy), limit: 9 })), ['free']);
  await holder.rollback();
  test.same(titles(await pull(sql.api, { ...at(org, busy), limit: 9 })).sort(), ['busy', 'held']);
});

scenario(
  'an organization whose requests are all held by others loses its turn, not the turns of others',
  async (test) => {
    const held = await createTestOrganization(sql);
    const other = await createTestOrganization(sql);
    const task = await createTask(sql, held);
    const holder = await openSession(test, sql, 'owner');
    await holder.begin();
    await holder.query('select from app.run_requests where task_id = $1 for update', [task.id]);
    await createTask(sql, other, { title: 'other' });
    await pull(sql.api, at(held, other));
    await createTask(sql, other, { title: 'other' });
    const rest = await pull(sql.api, at(held, other));
    test.same(titles(rest), ['other']);
    await holder.rollback();
    test.equal((await pull(sql.api, at(held, other)))[0]?.task.id, task.id);
  },
);

scenario('a pull that crosses with a cancel hands out nothing that is cancelled', async (test) => {
  const org = await createTestOrganization(sql);
  const task = await createTask(sql, org);
  const [person, worker] = [await openSession(test, sql), await openSession(test, sql)];
  await person.begin();
  await cancelTask(person, org, task.id);
  test.same(await pull(sql.api, at(org)), [], 'not yet committed: held by the cancel');
  await person.commit();
  test.same(await pull(sql.api, at(org)), []);
  const second = await createTask(sql, org);
  await worker.begin();
  const [claim] = await pull(worker, at(org));
  const cancelled = cancelTask(person, org, second.id);
  await person.waits();
  await worker.commit();
  await cancelled;
  test.equal(claim?.task.id, second.id);
  test.match(await lastRequest(sql, org, second.id), { state: 'cancelled', lease_expires_at: null });
});

scenario('two pulls wait for each other, and then share', async (test) => {
  const org = await createTestOrganization(sql);
  await createTasks(sql, org, 2);
  const [one, two] = [await openSession(test, sql), await openSession(test, sql)];
  await one.begin();
  const first = await pull(one, at(org));
  const second = pull(two, at(org));
  await two.waits();
  await one.commit();
  const claimed = [...first, ...(await second)];
  test.equal(new Set(claimed.map((claim) => claim.runRequestId)).size, 2);
});

scenario('no counter can be led astray by a transaction that was rolled back', async (test) => {
  const org = await createTestOrganization(sql);
  await createTasks(sql, org, 2);
  const session = await openSession(test, sql);
  await session.begin();
  await pull(session, { ...at(org), limit: 2 });
  await session.rollback();
  test.equal((await pull(sql.api, { ...at(org), limit: 2 })).length, 2);
  await session.begin();
  await taskCreate(session, org);
  await session.rollback();
  test.same(await pull(sql.api, at(org)), []);
});
