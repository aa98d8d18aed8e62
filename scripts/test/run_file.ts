import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readTap, type TapResult } from './tap_output.ts';

/** A file that takes longer hangs. */
const FILE_TIMEOUT_S = 600;
const KILL_AFTER_MS = (FILE_TIMEOUT_S + 20) * 1000;
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

/** Ends what a test left running: all of its process group. */
function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // Nothing is left.
  }
}

function crashOf(tap: TapResult, code: number | null, signal: NodeJS.Signals | null): string | undefined {
  if (signal) return `ended by ${signal}`;
  if (!tap.complete) return `ended early, with status ${code}`;
  if (tap.passed + tap.skipped + tap.failures.length === 0) return 'has no tests';
  // A file with failed tests ends with a status of its own accord.
  return code !== 0 && tap.failures.length === 0 ? `ended with status ${code}` : undefined;
}

/** Runs one test file in a process of its own. */
export async function runFile(file: string, cwd: string, env: NodeJS.ProcessEnv): Promise<FileResult> {
  const startedAt = Date.now();
  const child = spawn(process.execPath, [file], {
    cwd,
    env: { ...env, TAP_TIMEOUT: String(FILE_TIMEOUT_S) },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  const pid = child.pid;
  const stop = () => pid && killGroup(pid);
  process.once('exit', stop);
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (chunk) => {
    stdout += chunk;
  });
  child.stderr.setEncoding('utf8').on('data', (chunk) => {
    stderr += chunk;
  });
  const late = setTimeout(() => pid && killGroup(pid), KILL_AFTER_MS);
  // A process that the test left behind would hold the pipes open.
  child.once('exit', () => setTimeout(() => pid && killGroup(pid), 500));
  const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null];
  clearTimeout(late);
  process.off('exit', stop);
  const tap = readTap(stdout);
  return {
    file,
    seconds: (Date.now() - startedAt) / 1000,
    tap,
    crash: crashOf(tap, code, signal),
    stderr: stderr.trimEnd().split('\n').slice(-LAST_LINES).join('\n'),
  };
}
