import { type ChildProcess, spawn } from 'node:child_process';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { environmentOfPrograms } from '../config.ts';

/** There is no `git` on this machine, or none that runs: whoever runs the service has to install it. */
export class GitMissingError extends Error {
  override name = 'GitMissingError';
}

/** In git's words, and those of the C library. */
const NO_ROOM =
  /No space left on device|Disk quota exceeded|Cannot allocate memory|out of memory|^error: \S+ died of signal/i;
/** What a server said. */
const QUOTED = /^(?:remote:|(?:fatal|error): remote )/;

/** The program ended with a failure. What it wrote is for us alone: it may quote what a server said. */
export class GitFailedError extends Error {
  override name = 'GitFailedError';
  readonly stderr: string;
  readonly stdout: string;
  /** Null: it was ended by a signal. */
  readonly exitCode: number | null;
  constructor(command: string, exitCode: number | null, output: Readonly<{ stdout: string; stderr: string }>) {
    super(`git ${command} ended with ${exitCode ?? 'a signal'}`);
    this.exitCode = exitCode;
    this.stdout = output.stdout;
    this.stderr = output.stderr;
  }

  /** It found no room here, or was ended by a signal: that says nothing of what it was given, nor of a server. */
  get isOurs(): boolean {
    const lines = this.stderr.split('\n').filter((line) => !QUOTED.test(line));
    return this.exitCode === null || lines.some((line) => NO_ROOM.test(line));
  }
}

export type GitCall = Readonly<{
  /** The folder that it works in: a repository of ours, or where one is about to be. */
  folder: string;
  args: readonly string[];
  /** Settings that are handed over by the environment, where no list of processes shows them. */
  secrets?: ReadonlyMap<string, string>;
  input?: Readable | string;
  signal: AbortSignal;
  /** Of its standard output, in bytes (default 16 MiB); more is a failure. */
  maxOutput?: number;
}>;

/**
 * Runs git beside a reader of a pipe whose other end is ours alone: when this process dies, kill -9 included, the pipe ends and the
 * reader kills the group. No push outlives the lease that it runs under. The shell stays, so that it waits for the reader too.
 */
const KILL_GROUP_WITH_US =
  '{ read -r _ <&3; kill -KILL 0; } >/dev/null 2>&1 & git "$@" 3<&-; code=$?; exec 2>/dev/null; kill -KILL $!; wait $!; exit $code';
/** How a shell says that it cannot run a program. */
const NOT_RUN: readonly (number | null)[] = [126, 127];
/** A shell adds the signal's number to 128; git itself ends with 129 at most. */
const LAST_OF_GIT = 129;

const MAX_OUTPUT = 16 * 1024 * 1024;
const MAX_STDERR = 64 * 1024;

/** Nothing of the machine's or an account's own configuration counts, nothing asks, and no hook or helper of anybody runs. */
const SETTINGS = [
  ['core.hooksPath', '/dev/null'],
  ['core.fsmonitor', 'false'],
  ['core.bigFileThreshold', '16m'],
  ['credential.helper', ''],
  ['fetch.unpackLimit', '1'],
  ['gc.auto', '0'],
  ['http.followRedirects', 'false'],
  ['maintenance.auto', 'false'],
  ['pack.threads', '2'],
  ['protocol.version', '2'],
  ['push.recurseSubmodules', 'no'],
] as const;

function environment(folder: string, secrets: ReadonlyMap<string, string>): NodeJS.ProcessEnv {
  const settings = [...SETTINGS, ...secrets];
  return {
    ...environmentOfPrograms(),
    LC_ALL: 'C',
    TZ: 'UTC',
    HOME: folder,
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_ATTR_NOSYSTEM: '1',
    GIT_TERMINAL_PROMPT: '0',
    GIT_ASKPASS: '/bin/false',
    GIT_ALLOW_PROTOCOL: 'http:https',
    GIT_NO_REPLACE_OBJECTS: '1',
    GIT_OPTIONAL_LOCKS: '0',
    GIT_CEILING_DIRECTORIES: folder,
    GIT_CONFIG_COUNT: String(settings.length),
    ...Object.fromEntries(
      settings.flatMap(([key, value], index) => [
        [`GIT_CONFIG_KEY_${index}`, key],
        [`GIT_CONFIG_VALUE_${index}`, value],
      ]),
    ),
  };
}

/** With all that it has started: `git fetch` and `git push` work through children. */
function kill(child: ChildProcess): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    // It has ended.
  }
}

/**
 * Runs the real git in one of our folders, and returns what it writes to its standard output.
 * @throws GitMissingError, GitFailedError, the signal's reason, or the error of the input
 */
export async function runGit(call: GitCall): Promise<Buffer> {
  const { folder, args, secrets = new Map(), input, signal, maxOutput = MAX_OUTPUT } = call;
  signal.throwIfAborted();
  const child = spawn('/bin/sh', ['-c', KILL_GROUP_WITH_US, 'sh', ...args], {
    cwd: folder,
    env: environment(folder, secrets),
    stdio: ['pipe', 'pipe', 'pipe', 'pipe'],
    // A group of its own, so that what it starts ends with it.
    detached: true,
  });
  const end = () => kill(child);
  signal.addEventListener('abort', end, { once: true });

  const chunks: Buffer[] = [];
  let size = 0;
  let stderr = '';
  child.stdout?.on('data', (chunk: Buffer) => {
    size += chunk.length;
    if (size > maxOutput) end();
    else chunks.push(chunk);
  });
  child.stderr?.on('data', (chunk: Buffer) => {
    stderr = `${stderr}${chunk.toString('utf8')}`.slice(-MAX_STDERR);
  });
  // One that ends before it has read everything says by its status why.
  child.stdin?.on('error', () => {});
  // Nothing is written to this pipe; it breaks when the group ends.
  child.stdio[3]?.on('error', () => {});
  const { promise: closed, resolve, reject } = Promise.withResolvers<number | null>();
  child.once('error', (error: NodeJS.ErrnoException) => {
    reject(error.code === 'ENOENT' || error.code === 'EACCES' ? missing(error) : error);
  });
  child.once('close', (code) => resolve(size > maxOutput || (code ?? 0) > LAST_OF_GIT ? null : code));

  let broken: unknown;
  const fed = feed(child, input).catch((error: unknown) => {
    if (isPipeError(error)) return;
    broken = error;
    end();
  });
  try {
    const exitCode = await closed;
    await fed;
    signal.throwIfAborted();
    if (broken !== undefined) throw broken;
    const stdout = Buffer.concat(chunks);
    if (exitCode === 0) return stdout;
    if (NOT_RUN.includes(exitCode)) throw missing(new Error(stderr));
    throw new GitFailedError(args[0] ?? '', exitCode, { stdout: stdout.toString('utf8'), stderr });
  } finally {
    signal.removeEventListener('abort', end);
  }
}

function missing(cause: Error): GitMissingError {
  return new GitMissingError('There is no program git on this machine: install git 2.36 or newer.', { cause });
}

const isPipeError = (error: unknown) =>
  error instanceof Error &&
  'code' in error &&
  (error.code === 'EPIPE' || error.code === 'ECONNRESET' || error.code === 'ERR_STREAM_PREMATURE_CLOSE') &&
  !('syscall' in error && error.syscall === 'read');

async function feed({ stdin }: ChildProcess, input: GitCall['input']): Promise<void> {
  if (!stdin) return;
  if (input === undefined || typeof input === 'string') stdin.end(input ?? '');
  else await pipeline(input, stdin);
}

/** As `runGit`, as text. */
export async function gitText(call: GitCall): Promise<string> {
  return (await runGit(call)).toString('utf8');
}
