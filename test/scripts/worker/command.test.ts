import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import t, { type Test } from 'tap';
import { runCommand } from '../../../scripts/worker/command.ts';
import { until } from '../../support/wait.ts';

// Processes are started, and a machine that is busy takes its time.
t.setTimeout(180_000);

async function folder(t: Test): Promise<string> {
  const made = await mkdtemp(path.join(tmpdir(), 'worker-test-'));
  t.teardown(() => rm(made, { recursive: true, force: true }));
  return made;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

t.test('a command runs in its folder, with its environment, and its lines and status come back', async (t) => {
  const cwd = await folder(t);
  const lines: string[] = [];
  const end = await runCommand({
    command: 'pwd; echo "to stderr $GREETING" >&2; printf "no newline"; exit 7',
    cwd,
    environment: { PATH: process.env['PATH'], GREETING: 'hello' },
    timeoutMs: 10_000,
    signal: new AbortController().signal,
    onLine: (line) => lines.push(line),
  });
  t.match(end, { exitCode: 7, signal: null, timedOut: false });
  t.same(lines.sort(), [cwd, 'no newline', 'to stderr hello'].sort());
});

t.test(
  'an abort ends the whole process group, also what ignores SIGTERM and what went to the background',
  async (t) => {
    const cwd = await folder(t);
    const abort = new AbortController();
    const pids: number[] = [];
    const running = runCommand({
      command: `sleep 300 & echo $!; sh -c 'trap "" TERM; echo $$; while :; do sleep 300; done' & wait`,
      cwd,
      environment: process.env,
      timeoutMs: 60_000,
      signal: abort.signal,
      onLine: (line) => {
        pids.push(Number(line));
        if (pids.length === 2) abort.abort();
      },
    });
    const end = await running;
    t.equal(end.timedOut, false);
    t.equal(pids.length, 2);
    await until('nothing of it is left', () => !pids.some(isAlive));
  },
);

t.test('what a finished command left in the background ends too', async (t) => {
  const pids: number[] = [];
  const end = await runCommand({
    command: 'sleep 300 & echo $!',
    cwd: await folder(t),
    environment: process.env,
    timeoutMs: 10_000,
    signal: new AbortController().signal,
    onLine: (line) => pids.push(Number(line)),
  });
  t.match(end, { exitCode: 0 });
  await until('it has begun and ended', () => pids.length === 1 && !pids.some(isAlive));
});

t.test('a command that takes too long is stopped', async (t) => {
  const end = await runCommand({
    command: 'sleep 300',
    cwd: await folder(t),
    environment: process.env,
    timeoutMs: 50,
    signal: new AbortController().signal,
    onLine: () => {},
  });
  t.match(end, { timedOut: true, signal: 'SIGTERM' });
});

t.test('no command outlives a worker that was killed', async (t) => {
  const module = path.resolve(import.meta.dirname, '../../../scripts/worker/command.ts');
  const worker = spawn(
    process.execPath,
    [
      '--input-type=module',
      '--eval',
      `import { runCommand } from ${JSON.stringify(module)};
       await runCommand({ command: 'echo $$; sleep 300', cwd: '/', environment: process.env, timeoutMs: 60000,
         signal: new AbortController().signal, onLine: console.log });`,
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  const [line] = await once(createInterface({ input: worker.stdout }), 'line');
  const pid = Number(line);
  t.ok(isAlive(pid));
  worker.kill('SIGKILL');
  await until('the leash ended it', () => !isAlive(pid));
});
