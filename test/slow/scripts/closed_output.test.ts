import { spawn } from 'node:child_process';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import t from 'tap';

const root = path.resolve(import.meta.dirname, '../../..');

async function shell(line: string): Promise<{ err: string; status: string }> {
  const child = spawn('bash', ['-c', line], { cwd: root, stdio: ['ignore', 'ignore', 'pipe', 'pipe'] });
  const stream = (descriptor: 2 | 3) => text(child.stdio[descriptor] as NodeJS.ReadableStream);
  const [err, status] = await Promise.all([stream(2), stream(3)]);
  return { err, status };
}

const HELP = [
  'worker/main.ts',
  'start.ts',
  'demo/main.ts',
  'catalog.ts',
  'dev.ts',
  'psql.ts',
  'seed/main.ts',
  'db_reset.ts',
];

t.test('a reader who goes first, or standard output that is closed, ends no command with a stack', async (test) => {
  for (const end of ['| true', '>&-']) {
    for (const command of HELP) {
      const { err, status } = await shell(
        `(${process.execPath} scripts/${command} --help; echo "status $?" >&3) ${end}`,
      );
      test.equal(err, '', `${command} ${end}`);
      test.equal(status, 'status 0\n', `${command} ${end}`);
    }
  }
  // Work goes on where its output cannot be kept.
  const { err, status } = await shell(`${process.execPath} scripts/worker/main.ts --help >/dev/full; echo $? >&3`);
  test.same([err, status], ['', '0\n']);
});
