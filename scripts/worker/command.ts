import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { type ErrorTail, errorTail } from './error_tail.ts';

const TERM_GRACE_MS = 5_000;
const OUTPUT_GRACE_MS = 1_000;
const STARTED_AFTER_MS = 1_000;

/**
 * Starts a reader of a pipe in the process group of the command. Only the worker holds the other end: when it dies, kill -9
 * included, the pipe ends and the reader kills the group. No command outlives the lease that it runs under.
 */
const KILL_GROUP_WITH_WORKER = '( { cat <&3; kill -KILL 0; } >/dev/null 2>&1 & ); exec 3<&-; exec /bin/sh -c "$1"';

export type CommandOptions = Readonly<{
  command: string;
  cwd: string;
  environment: NodeJS.ProcessEnv;
  timeoutMs: number;
  /** Stops the whole process group: SIGTERM, five seconds later SIGKILL. */
  signal: AbortSignal;
  /** Gets each line that the command writes, for the terminal of the worker. */
  onLine: (line: string) => void;
  /** The command has run for a second: its program is there. */
  onStarted?: () => void;
  /** Gets the standard output as it comes; then `onLine` gets standard error alone. */
  onOutput?: (chunk: Buffer) => void;
}>;

export type CommandEnd = Readonly<{
  exitCode: number | null;
  signal: string | null;
  timedOut: boolean;
  elapsedMs: number;
  /** The end of its standard error. */
  errors: ErrorTail;
}>;

function killGroup(leader: number | undefined, signal: NodeJS.Signals): void {
  if (leader === undefined) return;
  try {
    process.kill(-leader, signal);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error;
  }
}

function eachLine(stream: Readable | null, onLine: (line: string) => void): void {
  if (!stream) return;
  createInterface({ input: stream, crlfDelay: Number.POSITIVE_INFINITY }).on('line', (line) =>
    onLine(line.slice(0, 2000)),
  );
}

/**
 * Runs a shell command in a process group of its own and waits for it; what it leaves running in the group is killed.
 * @throws when it cannot be started at all.
 */
export async function runCommand(options: CommandOptions): Promise<CommandEnd> {
  options.signal.throwIfAborted();
  const begun = performance.now();
  const child = spawn('/bin/sh', ['-c', KILL_GROUP_WITH_WORKER, 'sh', options.command], {
    cwd: options.cwd,
    env: options.environment,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
  });
  if (options.onOutput) child.stdout?.on('data', options.onOutput);
  else eachLine(child.stdout, options.onLine);
  eachLine(child.stderr, options.onLine);
  const errors = errorTail();
  child.stderr?.on('data', errors.add);
  const started = setTimeout(() => options.onStarted?.(), STARTED_AFTER_MS);
  // Nothing is written to this pipe; it breaks when the group is killed.
  child.stdio[3]?.on('error', () => {});
  const closed = once(child, 'close').catch(() => {});
  const timeout = AbortSignal.timeout(options.timeoutMs);
  const over = new AbortController();
  const stop = AbortSignal.any([options.signal, timeout]);
  const stopGroup = async () => {
    killGroup(child.pid, 'SIGTERM');
    await sleep(TERM_GRACE_MS, undefined, { signal: over.signal });
    killGroup(child.pid, 'SIGKILL');
  };
  const onStop = () => void stopGroup().catch(() => {});
  stop.addEventListener('abort', onStop, { once: true });
  try {
    const [exitCode, signal] = await once(child, 'exit');
    const elapsedMs = performance.now() - begun;
    return { exitCode, signal, timedOut: timeout.aborted && !options.signal.aborted, elapsedMs, errors };
  } finally {
    clearTimeout(started);
    stop.removeEventListener('abort', onStop);
    over.abort();
    killGroup(child.pid, 'SIGKILL');
    // The last lines. A process that left the group may hold the pipe open: the wait is bounded.
    await Promise.race([closed, sleep(OUTPUT_GRACE_MS, undefined, { ref: false })]);
  }
}
