import { availableParallelism } from 'node:os';
import { type FileResult, startTestProcess, type TestProcess } from './test_process.ts';

/** A file waits for a quarter of its time (timers, processes, locks): one more than there are cores keeps these busy. */
const AT_ONCE = Math.min(availableParallelism(), 5) + 1;
/** What they import is loaded once for all of them; what they leave in memory goes with the process. */
const FILES_A_PROCESS = 40;

export type Schedule = Readonly<{
  /** In the order in which they begin. */
  files: readonly string[];
  /** Needs a process that has run no other file. */
  alone: (file: string) => boolean;
  cwd: string;
  env: NodeJS.ProcessEnv;
  /** How long what a file opened may take to close after its last test. */
  closeWithinMs?: number;
  /** Is told of each file as it ends. */
  onResult: (result: FileResult) => void;
}>;

/** A result for a process that did not end as it should, after files that all passed. */
function badEnd(files: readonly string[], how: string): FileResult {
  const tap = { passed: 0, skipped: [], failures: [], complete: true };
  return { file: `the process of ${files.join(', ')}`, seconds: 0, tap, crash: how, stderr: '' };
}

/** Takes files from the queue until it is empty, a process after the other. */
async function work(waiting: string[], { alone, cwd, env, closeWithinMs, onResult }: Schedule): Promise<void> {
  let current: TestProcess | undefined;
  let ran: string[] = [];
  async function endProcess(): Promise<void> {
    const how = await current?.end();
    if (how !== undefined) onResult(badEnd(ran, how));
    [current, ran] = [undefined, []];
  }
  for (let file = waiting.shift(); file !== undefined; file = waiting.shift()) {
    if (alone(file)) await endProcess();
    current ??= startTestProcess(cwd, env, closeWithinMs);
    const result = await current.run(file);
    if (result) {
      onResult(result);
      ran.push(file);
    } else if (ran.length > 0) {
      // What the files before it left has ended the process: this one runs in the next.
      waiting.unshift(file);
    } else {
      onResult({ ...badEnd([file], 'does not start'), file });
    }
    if (!current.usable() || alone(file) || ran.length >= FILES_A_PROCESS) await endProcess();
  }
  await endProcess();
}

/** Runs all files; when a process dies, those that it would have run next run in another one. */
export async function runFiles(schedule: Schedule): Promise<void> {
  const waiting = [...schedule.files];
  await Promise.all(Array.from({ length: AT_ONCE }, () => work(waiting, schedule)));
}
