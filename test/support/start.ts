import { type ChildProcess, spawn } from 'node:child_process';
import path from 'node:path';
import { commandLine } from '../../engine/process/identity.ts';
import { bareEnvironment } from './environment.ts';
import { treeOf } from './processes.ts';
import { until } from './wait.ts';

const ROOT = path.resolve(import.meta.dirname, '..', '..');

export type Started = Readonly<{
  child: ChildProcess;
  /** Everything that it wrote so far. */
  stdout: () => string;
  stderr: () => string;
  /** Its exit status, or the signal that ended it. */
  ended: Promise<number | NodeJS.Signals | null>;
  /** Waits for the screen; the URL of the API. */
  ready: () => Promise<string>;
  tree: () => Promise<number[]>;
}>;

/** Runs scripts/start.ts as `npm start` does, with these settings and none of ours. */
export function start(settings: Readonly<Record<string, string>>, options: readonly string[] = []): Started {
  const child = spawn(process.execPath, ['scripts/start.ts', '--no-env-file', ...options], {
    cwd: ROOT,
    env: bareEnvironment(settings),
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk) => {
    stdout += chunk;
  });
  child.stderr.on('data', (chunk) => {
    stderr += chunk;
  });
  const ended = new Promise<number | NodeJS.Signals | null>((resolve) => {
    child.once('close', (code, signal) => resolve(code ?? signal));
  });
  let over = false;
  void ended.then(() => {
    over = true;
  });
  return {
    child,
    stdout: () => stdout,
    stderr: () => stderr,
    ended,
    ready: async () => {
      await until('the screen', () => over || stdout.includes('Ctrl-C stops everything.'), 60_000);
      const url = /^ +API +(\S+)$/m.exec(stdout)?.[1];
      if (url === undefined) throw new Error(`it did not start: ${stderr}${stdout}`);
      return url;
    },
    tree: () => treeOf(child.pid ?? 0),
  };
}

/** The process with this in its command line. */
export async function processOf(started: Started, part: string): Promise<number> {
  for (const pid of await started.tree()) {
    if (commandLine(pid).join(' ').includes(part)) return pid;
  }
  throw new Error(`${part} does not run`);
}
