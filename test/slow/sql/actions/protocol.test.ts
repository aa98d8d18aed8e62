import { randomUUID } from 'node:crypto';
import t, { type Test } from 'tap';
import { z } from 'zod';
import { approve, createProposer, jobOf, propose, reject } from '../../../support/action_fixtures.ts';
import { cancelTask } from '../../../support/fixtures.ts';
import { plantFault } from '../../../support/planted_faults.ts';
import { openSession, openSql, Refusal, type Session, type Sql } from '../../../support/transitions.ts';

// Every order of what two jobs, the provider, people and the clock do about one action, in the database itself: a step is a call
// under a savepoint, and is taken back when all that may follow it was tried. A job may die anywhere: after each step the others
// go on without it. However it goes, the provider is asked once at most, and what it did is never taken for something else.
t.setTimeout(600_000);

/** A strong provider shows what is not there; a weak one finds things, and by finding nothing says nothing. */
type Reads = 'strong' | 'weak';
type Job = Readonly<{
  leaseId: string;
  at: 'idle' | 'execute' | 'begun' | 'responded' | 'look_up' | 'over';
  /** By its own clock its lease leaves the time to send. */
  inTime: boolean;
  /** What it has to report. */
  outcome: string;
}>;
type State = Readonly<{
  jobs: readonly Job[];
  /** Pending: it was sent, and nobody waits for the response any more. */
  provider: 'untouched' | 'pending' | 'applied' | 'refused';
  sent: number;
  ticks: number;
}>;
type By = Awaited<ReturnType<typeof createProposer>>;
type World = Readonly<{ session: Session; by: By; id: string; reads: Reads; seen: Set<string>; path: string[] }>;
type Step = Readonly<{ name: string; take: () => Promise<State> }>;

const JOBS = 2;
const TICKS = 3;
const FIELDS: Readonly<Record<string, object>> = {
  succeeded: { result: {} },
  found: { result: {} },
  failed: { error: { code: 'provider_failed', message: 'No' } },
};

const newJob = (): Job => ({ leaseId: randomUUID(), at: 'idle', inTime: false, outcome: '' });
const over = (job: Job): Job => ({ ...job, at: 'over' });
const callsOf = ({ session, by, id }: World, { leaseId }: Job) => jobOf(session, by.org, id, leaseId);

const rowSchema = z.object({
  status: z.string(),
  decision: z.string().nullable(),
  lease_id: z.string().nullable(),
  leased: z.boolean(),
  due: z.boolean(),
  open: z.boolean(),
  looked: z.int(),
  looks_until: z.boolean().nullable(),
  items: z.array(z.string()),
});

async function rowOf({ session, id }: World) {
  const { rows } = await session.query(
    `select status, decision, lease_id, coalesce(lease_expires_at > clock_timestamp(), false) as leased,
       coalesce(due_at <= clock_timestamp(), false) as due, due_at is not null as open, look_up_count as looked,
       look_up_until > clock_timestamp() as looks_until, array(select i.kind::text from app.human_inbox_items i
         where i.organization_id = a.organization_id and i.action_id = a.id and i.status = 'open') as items
     from app.actions a where id = $1`,
    [id],
  );
  return rowSchema.parse(rows[0]);
}

/** The call, or undefined where it is refused: then the transaction goes on as if it had not been made. */
async function tried<T>({ session }: World, call: () => Promise<T>): Promise<T | undefined> {
  await session.query('savepoint call', []);
  try {
    const result = await call();
    await session.query('release savepoint call', []);
    return result;
  } catch (error) {
    await session.query('rollback to savepoint call', []);
    if (error instanceof Refusal) return undefined;
    throw error;
  }
}

/** The next moments of a job, one for each thing that may happen to it. */
function movesOf(world: World, state: State, index: number): Step[] {
  const job = state.jobs[index] ?? newJob();
  const calls = callsOf(world, job);
  const after = (next: Job, changes: Partial<State> = {}): State => ({
    ...state,
    ...changes,
    jobs: state.jobs.map((one, at) => (at === index ? next : one)),
  });
  const step = (name: string, take: () => Promise<State>): Step => ({ name: `${name} ${index}`, take });
  const sends = (name: string, provider: State['provider'], outcome: string) =>
    step(`send, ${name}`, async () =>
      after(outcome === '' ? over(job) : { ...job, at: 'responded', outcome }, { provider, sent: state.sent + 1 }),
    );
  switch (job.at) {
    case 'idle':
      return [
        step('lease', async () => {
          const { leased, purpose } = await calls.lease();
          return after(leased ? { ...job, at: purpose === 'execute' ? 'execute' : 'look_up' } : over(job));
        }),
      ];
    case 'execute':
      return [
        step('begin', async () => {
          const begun = await tried(world, () => calls.begin());
          return after(begun?.['begun'] ? { ...job, at: 'begun', inTime: true } : over(job));
        }),
        step('give back', async () => {
          await calls.release(0);
          return after(over(job));
        }),
      ];
    case 'begun':
      if (!job.inTime) return [];
      return [
        sends('applied', 'applied', 'succeeded'),
        sends('refused', 'refused', 'failed'),
        sends('without a response', 'pending', ''),
        sends('which never arrives', 'untouched', ''),
      ];
    case 'look_up':
      return [
        step('look', async () => {
          const absent = world.reads === 'strong' ? 'absent' : 'none';
          return after({ ...job, at: 'responded', outcome: state.provider === 'applied' ? 'found' : absent });
        }),
      ];
    case 'responded':
      return [
        step(job.outcome, async () => {
          await tried(world, () => calls.finish(job.outcome, { ...FIELDS[job.outcome] }));
          return after(over(job));
        }),
      ];
    default:
      return [];
  }
}

const late = (state: State): State => ({
  ...state,
  ticks: state.ticks + 1,
  jobs: state.jobs.map((job) => ({ ...job, inTime: false })),
});

/** The lease is over; the provider may still be at it. */
async function endLease({ session, id }: World, state: State): Promise<State> {
  await session.query(
    `update app.actions set lease_expires_at = now() - interval '1 second',
       due_at = case when due_at <= lease_expires_at then now() - interval '1 second' else due_at end
     where id = $1 and lease_expires_at is not null and isfinite(due_at)`,
    [id],
  );
  return late(state);
}

/** Lease and time-out are over: what was sent has arrived by now, or never does. */
async function passTimeout({ session, id }: World, state: State): Promise<State> {
  await session.query(
    `update app.actions set due_at = now() - interval '1 second',
       lease_expires_at = case when lease_expires_at is not null then now() - interval '1 second' end
     where id = $1 and isfinite(due_at)`,
    [id],
  );
  return { ...late(state), provider: state.provider === 'pending' ? 'applied' : state.provider };
}

async function endLookUps({ session, id }: World, state: State): Promise<State> {
  await session.query(`update app.actions set look_up_until = now() - interval '1 second' where id = $1`, [id]);
  return state;
}

type Row = Awaited<ReturnType<typeof rowOf>>;

function stepsOf(world: World, state: State, row: Row): Step[] {
  const { session, by, id } = world;
  const steps = state.jobs.flatMap((job, index) => {
    // Jobs that have not begun are alike.
    const isTurn = job.at !== 'idle' || state.jobs.findIndex(({ at }) => at === 'idle') === index;
    return isTurn ? movesOf(world, state, index) : [];
  });
  if (state.provider === 'pending') {
    steps.push({ name: 'it arrives', take: async () => ({ ...state, provider: 'applied' }) });
  }
  if (row.open && state.ticks < TICKS) {
    steps.push({ name: 'the lease ends', take: () => endLease(world, state) });
    steps.push({ name: 'time passes', take: () => passTimeout(world, state) });
    if (row.looks_until) steps.push({ name: 'looking up ends', take: () => endLookUps(world, state) });
  }
  const decide = (name: string, call: () => Promise<unknown>) =>
    steps.push({
      name,
      async take() {
        await call();
        return state;
      },
    });
  if (row.status === 'awaiting_approval') {
    decide('approve', () => approve(session, by.org, id));
    decide('reject', () => reject(session, by.org, id));
  }
  if (row.status === 'awaiting_approval' || row.status === 'approved') {
    decide('cancel', () => cancelTask(session, by.org, by.run.taskId));
  }
  return steps;
}

function check(world: World, state: State, row: Row): void {
  const { provider, sent } = state;
  const expected = { awaiting_approval: ['approval'], unknown: ['reconciliation'] }[row.status] ?? [];
  const broken = Object.entries({
    'it was sent twice': sent > 1,
    'it was sent without an approval': sent > 0 && row.decision !== 'approved',
    'what was sent is taken for what was not': sent > 0 && ['rejected', 'cancelled', 'approved'].includes(row.status),
    'what was not applied has succeeded': row.status === 'succeeded' && provider !== 'applied',
    'what was applied has failed': row.status === 'failed' && (provider === 'applied' || provider === 'pending'),
    'the inbox says something else': row.items.join() !== expected.join(),
  }).filter(([, is]) => is);
  if (broken.length > 0) throw new Error(`${broken.map(([name]) => name).join(', ')}: ${world.path.join(' → ')}`);
}

/** All jobs have died: others come, and end it. Then the dead report what they had, too late. */
async function checkEnd(world: World, before: State): Promise<void> {
  let state: State = before;
  for (let round = 0; round < 8 && (await rowOf(world)).open; round += 1) {
    state = await passTimeout(world, state);
    if (round > 3) state = await endLookUpsOnce(world, state);
    state = { ...state, jobs: [newJob()] };
    for (let moves = movesOf(world, state, 0); moves[0]; moves = movesOf(world, state, 0))
      state = await moves[0].take();
  }
  const row = await rowOf(world);
  check(world, state, row);
  const isLost = row.open || (world.reads === 'strong' && row.status === 'unknown');
  if (isLost) throw new Error(`it never ends, or ends as ${row.status}: ${world.path.join(' → ')}`);
  for (const job of before.jobs.filter(({ at }) => at === 'responded')) {
    await tried(world, () => callsOf(world, job).finish(job.outcome, { ...FIELDS[job.outcome] }));
  }
  const { status } = await rowOf(world);
  if (status !== row.status)
    throw new Error(`a late report made ${status} of ${row.status}: ${world.path.join(' → ')}`);
}

async function endLookUpsOnce(world: World, state: State): Promise<State> {
  return (await rowOf(world)).looks_until ? endLookUps(world, state) : state;
}

/** Tries all that may come next, and takes it back. */
async function explore(world: World, state: State): Promise<void> {
  const row = await rowOf(world);
  const holder = state.jobs.findIndex(({ leaseId }) => leaseId === row.lease_id);
  const jobs = state.jobs.map(({ at, inTime, outcome }) => [at, inTime, outcome]);
  const key = JSON.stringify([{ ...row, lease_id: holder }, jobs, state.provider, state.sent, state.ticks]);
  if (world.seen.has(key)) return;
  world.seen.add(key);
  check(world, state, row);
  const { session, path } = world;
  const mark = `step_${path.length}`;
  const undone = async (work: () => Promise<void>) => {
    await session.query(`savepoint ${mark}`, []);
    await work();
    await session.query(`rollback to savepoint ${mark}; release savepoint ${mark}`, []);
  };
  await undone(() => checkEnd(world, state));
  for (const { name, take } of stepsOf(world, state, row)) {
    path.push(name);
    await undone(async () => explore(world, await take()));
    path.pop();
  }
}

/** The statuses that were met. */
async function exploreAll(test: Test, sql: Sql, reads: Reads): Promise<Set<string>> {
  const by = await createProposer(sql);
  const { id } = await propose(sql, by);
  const session = await openSession(test, sql, 'owner');
  const world: World = { session, by, id, reads, seen: new Set(), path: [] };
  await session.begin();
  const jobs = Array.from({ length: JOBS }, newJob);
  await explore(world, { jobs, provider: 'untouched', sent: 0, ticks: 0 });
  await session.rollback();
  return new Set([...world.seen].map((key) => (JSON.parse(key) as [{ status: string }])[0].status));
}

for (const reads of ['strong', 'weak'] as const) {
  t.test(`in whatever order, an action is executed once at most and never lost: ${reads} reads`, async (test) => {
    const reached = [...(await exploreAll(test, await openSql(test), reads))].sort();
    const weakly = reads === 'weak' ? ['unknown'] : [];
    const always = ['approved', 'awaiting_approval', 'cancelled', 'executing', 'failed', 'rejected', 'succeeded'];
    test.same(reached, [...always, ...weakly], 'all of these are met');
  });
}

type Fault = Readonly<{ in: string; replace: string; by: string; found: RegExp; reads?: Reads }>;

const FAULTS: Readonly<Record<string, Fault>> = {
  'the provider is looked at before its time is over': {
    in: 'action_begin',
    replace: 'p_seconds + timeout_ms / 1000.0',
    by: 'p_seconds',
    found: /what was applied has failed/,
  },
  'whose lease it is does not count': {
    in: 'action_lease_require',
    replace: 'if a.lease_id is distinct from p_lease_id',
    by: 'if false',
    found: /sent twice|has succeeded|has failed|does not go with/,
  },
  'no item is opened for what is unknown': {
    in: 'action_unknown',
    replace: 'perform app.action_item_open(n)',
    by: 'null',
    found: /the inbox says something else/,
    reads: 'weak',
  },
  'what lost its job before the intent is not taken up again': {
    in: 'action_lease',
    replace: 'due_at = v_now + make_interval(secs => v_seconds)',
    by: `due_at = 'infinity'`,
    found: /it never ends/,
  },
};

for (const [name, fault] of Object.entries(FAULTS)) {
  t.test(`a planted fault is found: ${name}`, async (test) => {
    const sql = await openSql(test);
    await plantFault(sql, fault);
    await test.rejects(exploreAll(test, sql, fault.reads ?? 'strong'), { message: fault.found });
  });
}
