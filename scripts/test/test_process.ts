import { type ChildProcess, spawn } from 'node:child_process';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { hasPoint, indentedTap, readTap, type TapResult } from './tap_output.ts';

const HOST = path.resolve(import.meta.dirname, 'host.ts');
/** A file that takes longer hangs. */
const FILE_TIMEOUT_S = 600;
/** Then tap ends the test that is running; a file that blocks its process is ended from here. */
const KILL_AFTER_MS = (FILE_TIMEOUT_S + 20) * 1000;
/** How long what a file opened (connections, servers, timers) may take to close after its last test. */
const CLOSE_WITHIN_MS = 10_000;
/** How long a process may take to end once no more files come. */
const END_WITHIN_MS = 30_000;
/** How much of a crash is shown. */
const LAST_LINES = 60;

export type FileResult = Readonly<{
  file: string;
  seconds: number;
  tap: TapResult;
  /** How the file itself failed, beyond its tests; undefined when it did not. */
  crash: string | undefined;
  stderr: string;
}>;

export type TestProcess = Readonly<{
  /** Runs one file; the process takes no other one meanwhile. Undefined: the process had ended before it could begin. */
  run: (file: string) => Promise<FileResult | undefined>;
  /** Whether it may run another one: not after a file that failed, which may have left anything behind. */
  usable: () => boolean;
  /** Ends it, with all that its files left running; how it failed to end well. */
  end: () => Promise<string | undefined>;
}>;

const beginSchema = z.object({ begins: z.string() });
const reportSchema = z.object({ left: z.array(z.string()) });

/** Ends all of a process group. */
function killGroup(child: ChildProcess): void {
  try {
    if (child.pid) process.kill(-child.pid, 'SIGKILL');
  } catch {
    // Nothing is left.
  }
}

function tail(text: string): string {
  return text.trimEnd().split('\n').slice(-LAST_LINES).join('\n');
}

/** What a file said, which is a subtest of its process: its tests, and what failed outside of them. */
function readFile(output: string, file: string): TapResult & { ok: boolean } {
  const around = readTap(output);
  const inside = readTap(indentedTap(output));
  const outside = around.failures.filter((failure) => failure.name !== file);
  return { ...inside, failures: [...inside.failures, ...outside], ok: around.failures.length === 0 };
}

function crashOf(tap: TapResult & { ok: boolean }, left: readonly string[] | undefined): string | undefined {
  if (!tap.complete) return 'ended early';
  if (tap.passed + tap.skipped.length + tap.failures.length === 0) return 'has no tests';
  if (left && left.length > 0) return left.join('; ');
  return !tap.ok && tap.failures.length === 0 ? 'failed outside of its tests' : undefined;
}

/** A process that runs test files one after another, each with a root test of its own. */
export function startTestProcess(cwd: string, env: NodeJS.ProcessEnv, closeWithinMs = CLOSE_WITHIN_MS): TestProcess {
  const child = spawn(process.execPath, [HOST], {
    cwd,
    // Each file has its own limit, and the process none.
    env: { ...env, TAP_TIMEOUT: '0' },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    detached: true,
  });
  const stop = () => killGroup(child);
  process.once('exit', stop);
  let [stdout, stderr] = ['', ''];
  let [usable, anyFailed, crashed] = [true, false, false];
  child.stdout?.setEncoding('utf8').on('data', (chunk) => {
    stdout += chunk;
  });
  child.stderr?.setEncoding('utf8').on('data', (chunk) => {
    stderr += chunk;
  });
  // A process that a test left behind would hold the pipes open.
  child.once('exit', () => setTimeout(stop, 500));
  const closed = new Promise<string>((resolve) => {
    child.once('close', (code, signal) => resolve(signal ? `ended by ${signal}` : `ended with status ${code}`));
    // Of one that ends while it is sent something, the end is told as well.
    child.on('error', ({ message }) => child.pid ?? resolve(`did not start: ${message}`));
  });
  void closed.then(() => process.off('exit', stop));

  /** The next of its messages that has this shape; undefined when it ends before that. */
  async function message<T>(schema: z.ZodType<T>): Promise<T | undefined> {
    let receive = (_: unknown): void => {};
    const received = new Promise<T>((resolve) => {
      receive = (sent) => {
        // tap sends messages of its own.
        const parsed = schema.safeParse(sent);
        if (parsed.success) resolve(parsed.data);
      };
      child.on('message', receive);
    });
    const first = await Promise.race([received, closed]);
    child.off('message', receive);
    return typeof first === 'string' ? undefined : first;
  }

  /** Waits for what a file has left; undefined when its process ended with it. */
  async function waitFor(file: string, report: Promise<z.output<typeof reportSchema> | undefined>) {
    const late = setTimeout(stop, KILL_AFTER_MS);
    const reported = await report;
    clearTimeout(late);
    // The report may overtake what was written before it.
    const end = Date.now() + 5_000;
    while (reported && !hasPoint(stdout, file) && Date.now() < end) await delay(1);
    return reported?.left;
  }

  return {
    usable: () => usable,
    async run(file) {
      const startedAt = Date.now();
      [stdout, stderr] = ['', ''];
      const [begins, report] = [message(beginSchema), message(reportSchema)];
      if (child.connected) child.send({ run: { file, timeoutS: FILE_TIMEOUT_S, closeWithinMs } });
      if (!(await begins)) {
        usable = false;
        return undefined;
      }
      const left = await waitFor(file, report);
      const ended = left === undefined ? await closed : undefined;
      const tap = readFile(stdout, file);
      const crash = ended ? `${tap.complete ? '' : 'ended early: its process '}${ended}` : crashOf(tap, left);
      const failed = crash !== undefined || tap.failures.length > 0;
      if (ended) crashed = true;
      if (failed) usable = false;
      if (tap.failures.length > 0) anyFailed = true;
      return { file, seconds: (Date.now() - startedAt) / 1000, tap, crash, stderr: tail(stderr) };
    },
    async end() {
      [usable, stderr] = [false, ''];
      if (child.connected) child.send({});
      const late = setTimeout(stop, END_WITHIN_MS);
      const how = await closed;
      clearTimeout(late);
      // Where a test failed tap ends the process with status 1.
      const expected = `ended with status ${anyFailed ? 1 : 0}`;
      return how === expected || crashed ? undefined : [how, tail(stderr)].join('\n').trimEnd();
    },
  };
}
