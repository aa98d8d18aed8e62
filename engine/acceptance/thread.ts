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

async function judgeInThread(bytes: Uint8Array, checks: readonly JsonPointerCheck[]): Promise<Judgement> {
  const copy = Uint8Array.from(bytes);
  const thread = new Worker(new URL('./json_thread.ts', import.meta.url), {
    workerData: { bytes: copy, checks },
    transferList: [copy.buffer],
    env: {},
    resourceLimits: { maxOldGenerationSizeMb: THREAD_MEMORY_MB },
  });
  try {
    const [judgement] = await once(thread, 'message', { signal: AbortSignal.timeout(THREAD_TIMEOUT_MS) });
    return judgement as Judgement;
  } catch (error) {
    const name = error instanceof Error && 'code' in error ? error.code : '';
    if (name === 'ABORT_ERR') return { problem: `it took longer than ${THREAD_TIMEOUT_MS / 1000} s to evaluate` };
    if (name === 'ERR_WORKER_OUT_OF_MEMORY') return { problem: 'it takes too much memory to evaluate' };
    throw error;
  } finally {
    await thread.terminate();
  }
}

export type JudgeJson = (bytes: Uint8Array, checks: readonly JsonPointerCheck[]) => Promise<Judgement>;

/**
 * `judgeJson` that never holds up the process: what a large document or many checks cost in time and memory is spent in
 * a thread with limits, at most `threads` of them at once.
 */
export function jsonJudge(threads: number): JudgeJson {
  const limited = limiter(threads);
  return async (bytes, checks) =>
    bytes.byteLength * checks.length <= INLINE_WORK
      ? judgeJson(bytes, checks)
      : limited(() => judgeInThread(bytes, checks));
}
