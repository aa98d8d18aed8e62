import t from 'tap';
import {
  addDependency,
  appendLogs,
  type Claim,
  cancelTask,
  capability,
  completeRun,
  createSecondProfile,
  createTask,
  createTestOrganization,
  dispatchAll,
  endLease,
  expire,
  failRun,
  heartbeat,
  logEntry,
  make,
  markRunning,
  patchTask,
  pull,
  type Run,
  releaseClaim,
  retryTask,
  setWorkDispatch,
  stageOutcome,
  startRun,
  type TestOrganization,
  updateOrganization,
  updateProfile,
} from '../../../support/fixtures.ts';
import { brokenInvariants } from '../../../support/invariants.ts';
import { type JsonObject, openSql, Refusal } from '../../../support/transitions.ts';

const sql = await openSql(t);

/** A small generator of numbers in [0, 1) that gives the same ones for the same seed. */
function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let value = Math.imul(state ^ (state >>> 15), 1 | state);
    value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value;
    return ((value ^ (value >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Refusals are results, and these three are tried again by their callers; everything else is a bug. */
const TRANSIENT = ['40001', '40P01', '55P03'];

type World = {
  orgs: TestOrganization[];
  tasks: string[];
  initiatives: string[];
  claims: Claim[];
  runs: Run[];
};

type Step = (world: World, random: () => number) => Promise<unknown>;

function pick<T>(random: () => number, from: readonly T[]): T | undefined {
  return from[Math.floor(random() * from.length)];
}

/** Takes one out, so that no other actor holds it. */
function take<T>(random: () => number, from: T[]): T | undefined {
  return from.splice(Math.floor(random() * from.length), 1)[0];
}

/** Waits for all of them, whatever becomes of each. */
async function together(calls: readonly Promise<unknown>[]): Promise<void> {
  const settled = await Promise.allSettled(calls);
  for (const call of settled) if (call.status === 'rejected') throw call.reason;
}

/** What a run of this mode hands in: a plan of a few tasks, or a verdict. */
async function handIn(run: Run, random: () => number): Promise<void> {
  const { rows } = await sql.owner.query<{ mode: string; below: string[] }>(
    `select u.mode, array(select c.id from app.tasks c where c.organization_id = u.organization_id
       and c.parent_id = u.task_id) as below
     from app.runs u where u.organization_id = $1 and u.id = $2`,
    [run.organizationId, run.runId],
  );
  const [{ mode, below } = { mode: '', below: [] }] = rows;
  if (mode === 'verify') {
    const verdict = random() < 0.6 ? 'passed' : 'failed';
    await stageOutcome(sql, run, { kind: 'verification', verdict, summary: verdict, evidence: [] });
  }
  if (mode !== 'plan') return;
  const operations: JsonObject[] = [make('a', { kind: random() < 0.2 ? 'initiative' : 'task' })];
  if (random() < 0.5) operations.push(make('b', { dependsOn: ['a'] }));
  const one = pick(random, below);
  if (one && random() < 0.3) operations.push({ op: 'cancel_task', task: one });
  if (one && random() < 0.3) operations.push({ op: 'add_dependency', task: 'a', dependsOn: one });
  await stageOutcome(sql, run, { kind: 'plan', operations });
}

const steps: readonly (readonly [weight: number, step: Step])[] = [
  [
    10,
    async (world, random) => {
      const parentId = random() < 0.7 ? pick(random, world.initiatives) : undefined;
      const dependsOn = random() < 0.3 ? [pick(random, world.tasks)].filter((id) => id !== undefined) : [];
      const initiative = random() < 0.2;
      const task = await createTask(sql, pick(random, world.orgs) as TestOrganization, {
        ...(parentId ? { parentId } : {}),
        kind: initiative ? 'initiative' : 'task',
        priority: Math.floor(random() * 3),
        dependsOn,
        spec: {
          budget: { maxAgentRuns: 1 + Math.floor(random() * 6), maxReplans: Math.floor(random() * 3) },
          ...(random() < 0.2 ? { verification: 'agent' } : {}),
        },
      });
      (initiative ? world.initiatives : world.tasks).push(task.id);
    },
  ],
  [
    14,
    async (world, random) => {
      const [org] = world.orgs;
      const limit = 1 + Math.floor(random() * 3);
      world.claims.push(...(await pull(sql.api, { organizationIds: [org?.organizationId ?? ''], limit })));
    },
  ],
  [
    14,
    async (world, random) => {
      const claim = take(random, world.claims);
      if (claim) world.runs.push(await startRun(sql.api, claim));
    },
  ],
  [
    2,
    async (world, random) => {
      const claim = take(random, world.claims);
      if (claim) await releaseClaim(sql.api, claim);
    },
  ],
  [
    3,
    async (world, random) => {
      const run = pick(random, world.runs);
      if (run)
        await together([heartbeat(sql.api, run), markRunning(sql.api, run), appendLogs(sql.api, run, [logEntry(1)])]);
    },
  ],
  [
    12,
    async (world, random) => {
      const run = take(random, world.runs);
      const again = random() < 0.2;
      if (!run) return;
      if (random() < 0.9) await handIn(run, random);
      await together([completeRun(sql.api, run), ...(again ? [completeRun(sql.api, run)] : [])]);
    },
  ],
  [
    4,
    async (world, random) => {
      const run = take(random, world.runs);
      if (run) await failRun(sql.api, run, { retryable: random() < 0.7, backoffSeconds: 0 });
    },
  ],
  [
    3,
    async (world, random) => {
      const held = take(random, random() < 0.5 ? world.runs : (world.claims as (Run | Claim)[]));
      if (!held) return;
      await endLease(sql, held);
      await expire(sql.jobs, held, { backoffSeconds: 0 });
    },
  ],
  [
    3,
    async (world, random) =>
      cancelTask(
        sql.api,
        world.orgs[0] as TestOrganization,
        pick(random, [...world.tasks, ...world.initiatives]) ?? '',
      ),
  ],
  [
    4,
    async (world, random) =>
      retryTask(sql.api, world.orgs[0] as TestOrganization, pick(random, [...world.tasks, ...world.initiatives]) ?? ''),
  ],
  [
    4,
    async (world, random) => {
      const id = pick(random, [...world.tasks, ...world.initiatives]);
      const profile = pick(random, world.orgs);
      if (!id) return;
      await patchTask(sql, world.orgs[0] as TestOrganization, id, {
        priority: Math.floor(random() * 3),
        ...(random() < 0.5 ? { spec: { budget: { maxAgentRuns: 1 + Math.floor(random() * 9) } } } : {}),
        ...(random() < 0.3 ? { ownerAgentProfileId: profile?.profileId } : {}),
      });
    },
  ],
  [
    3,
    async (world, random) => {
      const ids = [...world.tasks, ...world.initiatives];
      await addDependency(sql.api, world.orgs[0] as TestOrganization, pick(random, ids) ?? '', pick(random, ids) ?? '');
    },
  ],
  [
    1,
    async (world, random) => {
      const run = pick(random, world.runs);
      const actor = run ? capability(run.executionToken) : { kind: 'service' };
      await cancelTask(sql.api, world.orgs[0] as TestOrganization, pick(random, world.tasks) ?? '', actor);
    },
  ],
  [1, (world, random) => updateProfile(sql.api, pick(random, world.orgs) as TestOrganization, { status: 'disabled' })],
  [2, (world, random) => updateProfile(sql.api, pick(random, world.orgs) as TestOrganization, { status: 'enabled' })],
  [
    1,
    (world, random) =>
      updateProfile(sql.api, pick(random, world.orgs) as TestOrganization, {
        config: { maxConcurrentRuns: 1 + Math.floor(random() * 5) },
      }),
  ],
  [1, (world) => setWorkDispatch(sql.api, world.orgs[0] as TestOrganization, true)],
  [2, (world) => setWorkDispatch(sql.api, world.orgs[0] as TestOrganization, false)],
  [
    1,
    (world, random) =>
      updateOrganization(sql.api, world.orgs[0] as TestOrganization, {
        config: { limits: { maxConcurrentRuns: 1 + Math.floor(random() * 8) } },
      }),
  ],
  [1, (world) => updateOrganization(sql.api, world.orgs[0] as TestOrganization, { status: 'suspended' })],
  [2, (world) => updateOrganization(sql.api, world.orgs[0] as TestOrganization, { status: 'active' })],
  [3, () => dispatchAll(sql)],
];

async function attempt(work: Promise<unknown>, bugs: unknown[]): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (error instanceof Refusal || TRANSIENT.includes(String((error as { code?: string }).code))) return;
    bugs.push(error);
  }
}

async function storm(seed: number, actors: number, stepsEach: number) {
  const random = generator(seed);
  const org = await createTestOrganization(sql, { maxConcurrentRuns: 4 });
  const second = await createSecondProfile(sql, org, { maxConcurrentRuns: 3 });
  const world: World = { orgs: [org, second], tasks: [], initiatives: [], claims: [], runs: [] };
  const deck = steps.flatMap(([weight, step]) => Array.from({ length: weight }, () => step));
  const bugs: unknown[] = [];
  await Promise.all(
    Array.from({ length: actors }, async () => {
      for (let n = 0; n < stepsEach; n += 1) {
        const step = pick(random, deck);
        if (step) await attempt(step(world, random), bugs);
      }
    }),
  );
  return { org, second, bugs };
}

/** Lets everything that can still run do so, with nobody in its way. */
async function calm(orgs: readonly TestOrganization[]): Promise<void> {
  const [org] = orgs;
  if (!org) return;
  await updateOrganization(sql.api, org, { status: 'active', config: { limits: { maxConcurrentRuns: 50 } } });
  await setWorkDispatch(sql.api, org, false);
  for (const each of orgs) await updateProfile(sql.api, each, { status: 'enabled', config: { maxConcurrentRuns: 50 } });
  await sql.owner.query(
    `update app.run_requests set lease_expires_at = clock_timestamp()
     where organization_id = $1 and state in ('leased', 'started')`,
    [org.organizationId],
  );
  for (let round = 0; round < 200; round += 1) {
    await sql.owner.query(`update app.run_requests set due_at = clock_timestamp() where state = 'queued'`);
    await dispatchAll(sql);
    const claims = await pull(sql.api, { organizationIds: [org.organizationId], limit: 50 });
    const { rows } = await sql.owner.query(
      `select from app.run_requests where organization_id = $1 and state = 'queued'`,
      [org.organizationId],
    );
    if (claims.length === 0 && rows.length === 0) return;
    for (const claim of claims)
      await attempt(
        startRun(sql.api, claim).then((run) => handIn(run, () => 0.5).then(() => completeRun(sql.api, run))),
        [],
      );
  }
  throw new Error('the work never comes to an end');
}

for (const seed of [1, 2]) {
  t.test(`whatever is done at once, every invariant holds and the work comes to its end (${seed})`, async (test) => {
    const { org, second, bugs } = await storm(seed, 8, 50);
    test.same(bugs, [], 'every call returned or was refused');
    test.same(await brokenInvariants(sql), {}, 'in the middle of it');
    await calm([org, second]);
    test.same(await brokenInvariants(sql), {}, 'at the end');
    const { rows } = await sql.owner.query(
      `select t.status, t.blockers from app.tasks t
       where organization_id = $1 and (status in ('pending', 'running', 'waiting')
         or status = 'blocked' and blockers = '[]')`,
      [org.organizationId],
    );
    test.same(rows, [], 'nothing is left that could run');
    const held = await sql.owner.query('select held from app.dispatch where organization_id = $1 and held > 0', [
      org.organizationId,
    ]);
    test.same(held.rows, [], 'no lease is left');
  });
}
