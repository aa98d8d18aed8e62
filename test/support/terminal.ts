// Commands as people run them: with a terminal, by the program script of the machine.
import { spawn, spawnSync } from 'node:child_process';
import type { TearDown } from './database.ts';
import { until } from './wait.ts';

/** Why a test that needs a terminal is skipped; false: it is not. */
export function noTerminal(): string | false {
  const { error } = spawnSync('script', ['-qc', 'true', '/dev/null'], { stdio: 'ignore' });
  return error ? 'needs the program script' : false;
}

export type OnTerminal = Readonly<{
  /** What is on the screen so far. */
  screen: () => string;
  /** Waits until the screen shows this. */
  shows: (what: RegExp) => Promise<RegExpExecArray>;
  type: (keys: string) => void;
  /** Types the end of the input (Ctrl-D). Without it script goes on when its command has ended. */
  endInput: () => void;
  /** Its exit status. */
  ended: Promise<number | null>;
}>;

/** Runs a line of the shell on a terminal of its own. */
export function onTerminal(t: TearDown, line: string, cwd: string, env: NodeJS.ProcessEnv): OnTerminal {
  const argv = process.platform === 'darwin' ? ['-q', '/dev/null', 'sh', '-c', line] : ['-qec', line, '/dev/null'];
  const child = spawn('script', argv, { cwd, env, stdio: ['pipe', 'pipe', 'inherit'] });
  let screen = '';
  let over = false;
  child.stdout.on('data', (chunk) => {
    screen += chunk;
  });
  const ended = new Promise<number | null>((resolve) => {
    child.once('close', (status) => {
      over = true;
      resolve(status);
    });
  });
  t.teardown(async () => {
    // The terminal goes with it, and what runs there hangs up.
    if (!over) child.kill('SIGKILL');
    await ended;
  });
  const text = () => screen.replaceAll('\r\n', '\n');
  return {
    screen: text,
    shows: (what) =>
      until(`${what}`, () => {
        const found = what.exec(text());
        if (!found && over) throw new Error(`it ended before it showed ${what}: ${text()}`);
        return found;
      }),
    type: (keys) => void child.stdin.write(keys),
    endInput: () => void child.stdin.end(),
    ended,
  };
}
