import { setTimeout as sleep } from 'node:timers/promises';
import { isUnavailable } from '../../engine/db/errors.ts';
import { brokenInvariants } from '../../test/support/invariants.ts';
import { checkArtifacts } from './artifacts.ts';
import { checkEnd, checkNow, type Violations } from './checks.ts';
import { type Deck, dealFaults } from './faults.ts';
import { createLoad } from './load.ts';
import { createOwner, RefusedError } from './owner.ts';
import type { World } from './world.ts';

const LOOK_MS = 250;
const INVARIANTS_EVERY_MS = 2_000;

export type Progress = Readonly<{ created: number; completed: number; runs: number; expired: number }>;

export type RoundOptions = Readonly<{
  tasks: number;
  deck: Deck;
  /** When nothing goes on for so long it is over: what is still open then is a violation. */
  stallMs: number;
  signal: AbortSignal;
  onProgress?: (progress: Progress) => void;
}>;

export type RoundReport = Readonly<{
  violations: Violations;
  counts: ReadonlyMap<string, number>;
  progress: Progress;
  seconds: number;
}>;

/** Looks at the database all the time, and keeps what it sees broken. */
function watch(world: World, { tasks, stallMs, onProgress, signal }: RoundOptions) {
  const { sql, recorder } = world;
  let progress: Progress = { created: 0, completed: 0, runs: 0, expired: 0 };
  let movedAt = performance.now();
  let invariantsAt = 0;

  function keep(violations: Violations): void {
    for (const [rule, rows] of Object.entries(violations)) for (const row of rows) recorder.violation(rule, row);
  }

  async function look(): Promise<void> {
    const { rows } = await sql.query<Progress>(`select
      (select count(*)::int from app.tasks) as created,
      (select count(*)::int from app.tasks where status = 'completed') as completed,
      (select count(*)::int from app.runs) as runs,
      (select count(*)::int from app.runs where status = 'expired') as expired`);
    const now = rows[0] ?? progress;
    if (now.created + now.completed + now.runs > progress.created + progress.completed + progress.runs) {
      movedAt = performance.now();
    }
    progress = now;
    onProgress?.(progress);
    keep(await checkNow(sql));
    if (performance.now() - invariantsAt < INVARIANTS_EVERY_MS) return;
    keep(await brokenInvariants({ owner: sql }));
    invariantsAt = performance.now();
  }

  return {
    progress: () => progress,
    stage: () => ({ completed: progress.completed, runs: progress.runs }),
    /** Until all tasks are completed and nothing is `busy` any more, or all stands still. */
    async untilDone(busy: () => boolean): Promise<void> {
      while ((busy() || progress.completed < tasks) && performance.now() - movedAt < stallMs) {
        await look().catch((error: unknown) => {
          if (!isUnavailable(error)) throw error;
        });
        await sleep(LOOK_MS, undefined, { signal });
      }
    },
  };
}

/** All that has to be true when the work is done. */
export async function checkWorld({ sql, recorder, urls: [url = ''], ready }: World): Promise<Violations> {
  const organizationIds = [...new Set(recorder.created.map((task) => task.organizationId))];
  const rows = { ...(await checkEnd(sql, recorder)), ...(await brokenInvariants({ owner: sql })) };
  try {
    await ready();
    return { ...rows, ...(await checkArtifacts(url, organizationIds)) };
  } catch (error) {
    return { ...rows, 'the API serves what was made': [String(error)] };
  }
}

/** Work and faults at the same time, until all work is done and all faults are dealt; then the checks. */
export async function runRound(world: World, options: RoundOptions): Promise<RoundReport> {
  const { tasks, deck } = options;
  const { random, recorder, urls, workers } = world;
  const startedAt = performance.now();
  const failed = new AbortController();
  const signal = AbortSignal.any([options.signal, failed.signal]);
  const watching = watch(world, { ...options, signal });
  const completed = () => watching.progress().completed;
  const owner = createOwner({ urls, random: random.fork('owner'), recorder, signal });
  const load = { owner, random: random.fork('load'), recorder, tasks, completed, signal };
  let busy = true;

  const parts = [
    createLoad({ ...load, backlog: Math.max(20, Math.ceil(tasks / 5)) }),
    dealFaults({ world, random: random.fork('faults'), deck, tasks, stage: watching.stage, signal }),
  ];
  const working = Promise.all(parts).then(() => {
    busy = false;
  });
  try {
    await Promise.race([watching.untilDone(() => busy), working.then(() => new Promise<never>(() => {}))]);
    if (busy) recorder.violation('the work never stands still', watching.progress());
  } catch (error) {
    if (!(error instanceof RefusedError)) throw error;
    recorder.violation('the owner is not refused what is right', error.message);
  } finally {
    // Whichever part failed, the others end before anybody takes the world apart.
    failed.abort();
    await Promise.allSettled(parts);
  }
  options.signal.throwIfAborted();
  const seconds = (performance.now() - startedAt) / 1000;
  await Promise.all(workers.map((worker) => worker.end()));
  const found = await checkWorld(world);
  options.signal.throwIfAborted();
  const violations = { ...Object.fromEntries(recorder.violations), ...found };
  return { violations, counts: recorder.counts, progress: watching.progress(), seconds };
}
