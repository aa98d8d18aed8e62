import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { JsonPointerCheck } from './criteria.ts';
import { type Judgement, judgeJson } from './judge.ts';

/**
 * Bytes times checks, since each check walks the document: up to here the event loop is held for some milliseconds at
 * most; beyond it a thread pays.
 */
const INLINE_WORK = 64 * 1024;
const THREAD_MEMORY_MB = 512;
const THREAD_TIMEOUT_MS = 20_000;
/** Of threads, for all criteria of one evaluation. */
const BUDGET_MS = 40_000;

/** What one evaluation may still spend. */
export type JudgeBudget = { owner: string; leftMs: number };

export function judgeBudget(owner: string): JudgeBudget {
  return { owner, leftMs: BUDGET_MS };
}

/** Lets `size` calls run at once; the others wait in order. */
function limiter(size: number) {
  const waiting: (() => void)[] = [];
  let running = 0;
  return async function limited<T>(work: () => Promise<T>): Promise<T> {
    if (running >= size) await new Promise<void>((resolve) => waiting.push(resolve));
    else running += 1;
    try {
      return await work();
    } finally {
      // The place goes straight to the next in line.
      const next = waiting.shift();
      if (next) next();
      else running -= 1;
    }
  };
}

/** One call at a time for each owner: what one makes wait are its own. */
function turns() {
  const tails = new Map<string, Promise<unknown>>();
  return async function inTurn<T>(owner: string, work: () => Promise<T>): Promise<T> {
    const before = tails.get(owner) ?? Promise.resolve();
    const mine = before.then(work, work);
    tails.set(owner, mine);
    try {
      return await mine;
    } finally {
      if (tails.get(owner) === mine) tails.delete(owner);
    }
  };
}

async function judgeInThread(
  bytes: Uint8Array,
  checks: readonly JsonPointerCheck[],
  budget: JudgeBudget,
): Promise<Judgement> {
  if (budget.leftMs <= 0) return { problem: `the criteria took longer than ${BUDGET_MS / 1000} s to evaluate` };
  const limitMs = Math.min(THREAD_TIMEOUT_MS, budget.leftMs);
  const startedAt = performance.now();
  const copy = Uint8Array.from(bytes);
  const thread = new Worker(new URL('./json_thread.ts', import.meta.url), {
    workerData: { bytes: copy, checks },
    transferList: [copy.buffer],
    env: {},
    resourceLimits: { maxOldGenerationSizeMb: THREAD_MEMORY_MB },
  });
  try {
    const [judgement] = await once(thread, 'message', { signal: AbortSignal.timeout(Math.ceil(limitMs)) });
    return judgement as Judgement;
  } catch (error) {
    const name = error instanceof Error && 'code' in error ? error.code : '';
    if (name === 'ABORT_ERR') return { problem: `it took longer than ${Math.ceil(limitMs / 1000)} s to evaluate` };
    if (name === 'ERR_WORKER_OUT_OF_MEMORY') return { problem: 'it takes too much memory to evaluate' };
    throw error;
  } finally {
    budget.leftMs -= performance.now() - startedAt;
    await thread.terminate();
  }
}

export type JudgeJson = (
  bytes: Uint8Array,
  checks: readonly JsonPointerCheck[],
  budget: JudgeBudget,
) => Promise<Judgement>;

/**
 * `judgeJson` that never holds up the process: what a large document or many checks cost in time and memory is spent in
 * a thread with limits, at most `threads` of them at once, and one at a time for each owner of a budget.
 */
export function jsonJudge(threads: number): JudgeJson {
  const limited = limiter(threads);
  const inTurn = turns();
  return async (bytes, checks, budget) =>
    bytes.byteLength * checks.length <= INLINE_WORK
      ? judgeJson(bytes, checks)
      : inTurn(budget.owner, () => limited(() => judgeInThread(bytes, checks, budget)));
}
