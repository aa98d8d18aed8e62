import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { isUnavailable } from '../../engine/db/errors.ts';
import type { Random } from './random.ts';
import type { Supervised } from './supervised.ts';
import type { World } from './world.ts';

const LOOK_MS = 20;
/** Where work stands still for so long, the next fault does not wait for it: faults that meet are worth more. */
const PATIENCE_MS = [1_500, 4_000] as const;

export const faultNames = [
  'worker killed',
  'half of the workers killed',
  'worker paused',
  'api killed',
  'every api killed',
  'jobs killed',
  'all jobs killed',
  'connections cut',
  'backend killed',
  'postgres restarted, fast',
  'postgres restarted, immediate',
  'postgres restarted, killed',
] as const;
export type FaultName = (typeof faultNames)[number];
/** How often each takes place. */
export type Deck = Readonly<Partial<Record<FaultName, number>>>;

type FaultOptions = Readonly<{ world: World; random: Random; signal: AbortSignal }>;

/** One of them that is there now; waits when none is. */
async function victim(
  among: readonly Supervised[],
  random: Random,
  signal: AbortSignal,
  preferred: () => Promise<ReadonlySet<string>> = async () => new Set(),
): Promise<Supervised> {
  for (;;) {
    const alive = among.filter((one) => one.alive());
    const names = await preferred();
    const first = alive.filter((one) => names.has(one.name));
    if (first.length > 0) return random.pick(first);
    if (alive.length > 0) return random.pick(alive);
    await sleep(LOOK_MS, undefined, { signal });
  }
}

/** Asked again while Postgres is away. */
async function query<R extends pg.QueryResultRow>(sql: pg.Pool, text: string, signal: AbortSignal): Promise<R[]> {
  for (;;) {
    try {
      return (await sql.query<R>(text)).rows;
    } catch (error) {
      if (!isUnavailable(error)) throw error;
    }
    await sleep(LOOK_MS, undefined, { signal });
  }
}

function half(random: Random, among: readonly Supervised[]): Supervised[] {
  return random.shuffle(among).slice(0, Math.ceil(among.length / 2));
}

/** False when it has ended already. */
function killProcess(pid: number): boolean {
  try {
    return process.kill(pid, 'SIGKILL');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ESRCH') return false;
    throw error;
  }
}

function faults({ world, random, signal }: FaultOptions): Readonly<Record<FaultName, () => Promise<void>>> {
  const { apis, jobs, workers, sql, postgres, log } = world;

  /** Workers that hold a run: a fault that hits an idle one proves little. */
  async function busy(): Promise<ReadonlySet<string>> {
    const held = `select distinct split_part(worker_id, '.', 1) as name from app.run_requests where state = 'started'`;
    const rows = await query<{ name: string }>(sql, held, signal);
    return new Set(rows.map(({ name }) => name));
  }

  function kill(...victims: readonly Supervised[]): void {
    for (const one of victims) if (one.kill()) log(`killed ${one.name}, generation ${one.generation()}`);
  }

  async function killAll(among: readonly Supervised[]): Promise<void> {
    await victim(among, random, signal);
    kill(...among);
  }

  /** Others die while Postgres is away, and come back before or after it. */
  async function restart(ending: Parameters<World['postgres']['restart']>[0]): Promise<void> {
    const downMs = random.between(0, 800);
    log(`Postgres is to end: ${ending}, away for ${downMs} ms`);
    const meanwhile = random.shuffle([...apis, ...jobs, ...workers]).slice(0, random.between(1, 3));
    const away = postgres.restart(ending, downMs);
    for (const one of meanwhile) {
      await Promise.race([away, sleep(random.between(0, 400), undefined, { signal })]);
      kill(one);
    }
    await away;
    log('Postgres is back');
  }

  return {
    'worker killed': async () => kill(await victim(workers, random, signal, busy)),
    'half of the workers killed': async () => kill(...half(random, workers)),
    async 'worker paused'() {
      const ms = world.leaseMs + random.between(200, 1_800);
      const one = await victim(workers, random, signal, busy);
      if (one.pause(ms)) log(`paused ${one.name} for ${ms} ms`);
    },
    'api killed': async () => kill(await victim(apis, random, signal)),
    'every api killed': () => killAll(apis),
    'jobs killed': async () => kill(await victim(jobs, random, signal)),
    'all jobs killed': () => killAll(jobs),
    async 'connections cut'() {
      const cut = `select pg_terminate_backend(pid) from pg_stat_activity where usename in ('runner_api', 'runner_jobs')`;
      log(`cut ${(await query(sql, cut, signal)).length} connections`);
    },
    async 'backend killed'() {
      // Postgres takes such an end for corrupted memory: it throws out everybody and recovers.
      const open = `select pid from pg_stat_activity where usename in ('runner_api', 'runner_jobs') order by pid`;
      for (;;) {
        const rows = await query<{ pid: number }>(sql, open, signal);
        if (rows.length > 0 && killProcess(random.pick(rows).pid)) break;
        await sleep(LOOK_MS, undefined, { signal });
      }
      log('killed a backend');
    },
    'postgres restarted, fast': () => restart('fast'),
    'postgres restarted, immediate': () => restart('immediate'),
    'postgres restarted, killed': () => restart('kill'),
  };
}

/** How far the work has come. */
export type Stage = Readonly<{ completed: number; runs: number }>;

/**
 * Deals the deck in an order that the seed decides, spread over the work: fault after fault comes when its share of the
 * tasks is completed, or when nothing has gone on for a while.
 */
export async function dealFaults(
  options: FaultOptions & Readonly<{ deck: Deck; tasks: number; stage: () => Stage }>,
): Promise<void> {
  const { world, random, deck, tasks, stage, signal } = options;
  const cards = random.shuffle(faultNames.flatMap((name) => Array.from({ length: deck[name] ?? 0 }, () => name)));
  const play = faults(options);

  // How far the work was when patience ended for the last time: it has to go on before that happens again.
  let spentAt = '';

  async function untilDue(completed: number): Promise<void> {
    const patienceMs = random.between(...PATIENCE_MS);
    let last = '';
    let movedAt = performance.now();
    while (stage().completed < completed) {
      await sleep(LOOK_MS, undefined, { signal });
      const now = JSON.stringify(stage());
      if (now !== last) movedAt = performance.now();
      last = now;
      // Before the first run there is nothing to disturb.
      if (stage().runs === 0 || now === spentAt || performance.now() - movedAt < patienceMs) continue;
      spentAt = now;
      return;
    }
  }

  for (const [index, name] of cards.entries()) {
    await untilDue(Math.max(1, Math.floor(tasks * (0.04 + (0.84 * index) / cards.length))));
    await play[name]();
    world.recorder.count(name);
  }
}
