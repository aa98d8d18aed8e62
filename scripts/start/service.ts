import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import type { LogFile } from './log_file.ts';

const READY_TIMEOUT_MS = 60_000;
const FIRST_BACKOFF_MS = 500;
const MAX_BACKOFF_MS = 30_000;
/** A process that ran this long did not fail at its start: the backoff begins anew. */
const HEALTHY_AFTER_MS = 60_000;

const readyMessage = z.object({ type: z.literal('ready'), url: z.url().optional() });
/** Its log cannot be written (`reason`), or can be again. */
const logMessage = z.object({ type: z.literal('log'), reason: z.string().nullable(), leftOut: z.int().optional() });
const anyMessage = z.discriminatedUnion('type', [readyMessage, logMessage]);
export type Ready = z.output<typeof readyMessage>;

/** The service ended before it was ready for the first time: it is not started again. */
export class ServiceError extends Error {
  override name = 'ServiceError';
}

export type ServiceOptions = Readonly<{
  name: string;
  script: string;
  /** `first`: the first ready message of this service; a later process must listen at the same address. */
  environment: (first: Ready | undefined) => NodeJS.ProcessEnv;
  log: LogFile;
  /** Prints a line for the person at the terminal. */
  print: (line: string) => void;
}>;

export type Service = Readonly<{
  /** Rejects with a ServiceError when it does not become ready. */
  ready: Promise<Ready>;
  /** Stops the process and starts another one; prints a line when that is ready. */
  restart: (graceMs: number) => Promise<void>;
  /** SIGTERM, and SIGKILL to its whole process group after `graceMs`. */
  stop: (graceMs: number) => Promise<void>;
}>;

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

function killGroup(child: ChildProcess): void {
  try {
    if (child.pid) process.kill(-child.pid, 'SIGKILL');
  } catch {
    // Nothing is left of the group.
  }
}

const logEntry = z.object({ msg: z.string() });

/** The line of a log that says why a process ended: an error with its message, else the last line. */
function reasonIn(lines: readonly string[]): string {
  const messages = lines.map((line) => {
    try {
      return logEntry.parse(JSON.parse(line)).msg;
    } catch {
      return line.trim();
    }
  });
  return messages.findLast((line) => /^\w*Error\b.*: ./.test(line)) ?? messages.findLast((line) => line !== '') ?? '';
}

/** Runs a script as a child process, and starts it again when it ends unexpectedly. */
export function startService(options: ServiceOptions): Service {
  const { name, log, print } = options;
  const first = Promise.withResolvers<Ready>();
  // `stop` may come before anybody waits for it.
  first.promise.catch(() => {});
  let known: Ready | undefined;
  /** The process that is being ended on purpose. */
  let ending: ChildProcess | undefined;
  let child: ChildProcess | undefined;
  let backoff: NodeJS.Timeout | undefined;
  let failures = 0;
  let stopped = false;

  /** It ended, or could not be started at all. */
  function over(how: string, startedAt: number): void {
    if (!known) {
      first.reject(
        new ServiceError(`${name} ${how} before it was ready: ${reasonIn(log.tail(40))} (more in ${log.path})`),
      );
      return;
    }
    failures = Date.now() - startedAt > HEALTHY_AFTER_MS ? 0 : failures + 1;
    const delay = Math.min(FIRST_BACKOFF_MS * 2 ** Math.max(0, failures - 1), MAX_BACKOFF_MS);
    print(`${name} ${how}, restarting in ${delay / 1000} s (${log.path})`);
    backoff = setTimeout(launch, delay);
  }

  function received(message: unknown, readyTimeout: NodeJS.Timeout): void {
    const { data } = anyMessage.safeParse(message);
    if (!data) return;
    if (data.type === 'log') {
      print(
        data.reason === null
          ? `${log.path} is written again${data.leftOut ? `; ${data.leftOut} lines of ${name} were left out` : ''}`
          : `${name} cannot write ${log.path}: ${data.reason}`,
      );
      return;
    }
    clearTimeout(readyTimeout);
    // One of a port that is chosen anew each time.
    if (known) print(`${name} is running again${data.url && data.url !== known.url ? ` at ${data.url}` : ''}`);
    known ??= data;
    first.resolve(known);
  }

  function launch(): void {
    const startedAt = Date.now();
    try {
      child = follow(
        // A process group of its own: Ctrl-C in the terminal must not reach it before its turn.
        fork(options.script, [], {
          env: options.environment(known),
          stdio: ['ignore', log.descriptor, log.descriptor, 'ipc'],
          detached: true,
        }),
        startedAt,
      );
    } catch (error) {
      // For instance no memory: some causes are thrown, others come as an event.
      child = undefined;
      over(`could not be started (${(error as Error).message})`, startedAt);
    }
  }

  function follow(current: ChildProcess, startedAt: number): ChildProcess {
    const readyTimeout = setTimeout(() => {
      log.write(`${name} was not ready after ${READY_TIMEOUT_MS / 1000} s`);
      killGroup(current);
    }, READY_TIMEOUT_MS);
    let isOver = false;
    const ended = (how: string) => {
      if (isOver) return;
      isOver = true;
      clearTimeout(readyTimeout);
      killGroup(current);
      if (child === current) child = undefined;
      if (ending !== current) over(how, startedAt);
    };
    current.on('message', (message) => received(message, readyTimeout));
    current.on('error', (error) => {
      log.write(String(error));
      // A process that was never there has no end, with some causes.
      if (current.pid === undefined) ended(`could not be started (${error.message})`);
    });
    current.once('close', (code, signal) => ended(signal ? `was ended by ${signal}` : `ended with status ${code}`));
    return current;
  }

  async function end(graceMs: number): Promise<void> {
    clearTimeout(backoff);
    const current = child;
    ending = current;
    if (!current || hasEnded(current)) return;
    const closed = once(current, 'close');
    current.kill('SIGTERM');
    const waiting = new AbortController();
    const inTime = await Promise.race([
      closed.then(() => true),
      sleep(graceMs, false, { signal: waiting.signal }).catch(() => true),
    ]);
    waiting.abort();
    if (inTime) return;
    print(`${name} did not stop within ${graceMs / 1000} s and is killed`);
    killGroup(current);
    await closed;
  }

  async function restart(graceMs: number): Promise<void> {
    await end(graceMs);
    if (stopped) return;
    failures = 0;
    launch();
  }

  function stop(graceMs: number): Promise<void> {
    stopped = true;
    return end(graceMs);
  }

  // This process exits without a stop when a person does not wait for it, or by a bug.
  process.once('exit', () => {
    if (child && !hasEnded(child)) killGroup(child);
  });
  launch();
  return { ready: first.promise, restart, stop };
}
