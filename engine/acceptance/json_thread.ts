import { parentPort, workerData } from 'node:worker_threads';
import type { JsonPointerCheck } from './criteria.ts';
import { judgeJson } from './judge.ts';

/** The body of the thread that `thread.ts` starts: one file in, one judgement out. */
const { bytes, checks } = workerData as { bytes: Uint8Array; checks: readonly JsonPointerCheck[] };
parentPort?.postMessage(judgeJson(bytes, checks));
