import { spawn } from 'node:child_process';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import t from 'tap';

t.setTimeout(300_000);
const root = path.resolve(import.meta.dirname, '../../..');

async function shell(line: string): Promise<{ err: string; status: string }> {
  const child = spawn('bash', ['-c', line], { cwd: root, stdio: ['ignore', 'ignore', 'pipe', 'pipe'] });
  const stream = (descriptor: 2 | 3) => text(child.stdio[descriptor] as NodeJS.ReadableStream);
  const [err, status] = await Promise.all([stream(2), stream(3)]);
  return { err, status };
}

const COMMANDS = [
  'api/main.ts',
  'jobs/main.ts',
  ...['api', 'jobs', 'migrate'].map((part) => `scripts/run.mjs ${part}`),
  ...[
    'analyst',
    'bench/main',
    'catalog',
    'chaos',
    'command/main',
    'demo/main',
    'dev',
    'docs',
    'generate',
    'keys',
    'reset',
  ].map((name) => `scripts/${name}.ts`),
  ...['lint_sql', 'migrate', 'psql', 'report', 'seed/main', 'start', 'test', 'worker/main'].map(
    (name) => `scripts/${name}.ts`,
  ),
];

t.test(
  'a reader who goes first, standard output that is closed or a full disk end no command with a stack',
  async (test) => {
    for (const command of COMMANDS) {
      const ends = ['| true', '>&-', '>/dev/full'].map((end) =>
        shell(`(${process.execPath} ${command} --help; echo "status $?" >&3) ${end}`),
      );
      for (const said of await Promise.all(ends)) test.same(said, { err: '', status: 'status 0\n' }, command);
    }
  },
);
