import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import t, { type Test } from 'tap';
import { type LogTrouble, openLogOutput } from '../../engine/log_output.ts';
import { openFolder } from '../support/folders.ts';
import { mountSmallDisk, noSmallDisks } from '../support/small_disk.ts';
import { until } from '../support/wait.ts';

const root = path.resolve(import.meta.dirname, '../..');
const skip = await noSmallDisks();

function open(test: Test, file: string) {
  const descriptor = openSync(file, 'a');
  test.teardown(() => closeSync(descriptor));
  const told: LogTrouble[] = [];
  const output = openLogOutput(descriptor, { onTrouble: (trouble) => told.push(trouble), maxKept: 300, retryMs: 10 });
  return { output, told };
}

t.test(
  'on a full disk lines are kept, the newest left out and counted, and all is told once',
  { skip },
  async (test) => {
    const disk = mountSmallDisk(test, path.join(await openFolder(test), 'logs'), 1);
    const file = path.join(disk.folder, 'api.log');
    const { output, told } = open(test, file);
    output.write('first\n');
    await until('it is written', () => readFileSync(file, 'utf8') === 'first\n');
    // What is left of a page that the file has already is taken by a full disk too.
    output.write(`${'-'.repeat(4089)}\n`);
    await until('it is written', () => readFileSync(file, 'utf8').length === 4096);
    disk.fill();
    const say = (line: number) => output.write(`line ${String(line).padStart(4)}\n`);
    // The file may show a write that the process has not heard of: what comes then would wait with all that follows.
    say(1);
    await until('it is told', () => told.length > 0);
    for (let line = 2; line <= 100; line += 1) say(line);
    test.match(told, [{ reason: /ENOSPC/ }]);
    test.doesNotThrow(() => output.flushSync());
    disk.empty();
    await until('it goes on', () => told.length > 1);
    const lines = readFileSync(file, 'utf8').split('\n').slice(2, -1);
    test.same(
      lines,
      Array.from({ length: lines.length }, (_, index) => `line ${String(index + 1).padStart(4)}`),
      'whole lines, none of them twice',
    );
    test.match(told, [{ reason: /ENOSPC/ }, { reason: null, leftOut: 100 - lines.length }]);
    test.equal(lines.length, 31, 'that which was being written, and 300 characters');
    output.write('last\n');
    await until('it is written', () => readFileSync(file, 'utf8').endsWith('\nlast\n'));
    test.equal(told.length, 2);
  },
);

t.test('a process whose output takes nothing works, and ends', async (test) => {
  const code = `
    import { createLogger } from '${path.join(root, 'engine/log.ts')}';
    const log = createLogger('info', 'test', { onTrouble: ({ reason }) => process.stderr.write(reason + '\\n') });
    log.info('a line');
    setTimeout(() => { log.fatal('another'); process.exit(3); }, 100);`;
  for (const [redirection, told] of [
    ['>/dev/full', /^ENOSPC: .*\n$/],
    ['| true', /^$/],
    ['>&-', /^$/],
  ] as const) {
    const child = spawn(
      'bash',
      ['-c', `set -o pipefail; "$0" --input-type=module -e "$1" ${redirection}`, process.execPath, code],
      {
        stdio: ['ignore', 'ignore', 'pipe'],
      },
    );
    const [err, [status]] = await Promise.all([text(child.stderr), once(child, 'close')]);
    test.match(err, told, redirection);
    test.equal(status, 3, redirection);
  }
});
