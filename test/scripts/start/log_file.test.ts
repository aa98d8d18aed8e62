import { appendFileSync, mkdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import t, { type Test } from 'tap';
import { openLogFile } from '../../../scripts/start/log_file.ts';
import { openFolder } from '../../support/folders.ts';
import { mountSmallDisk, noSmallDisks } from '../../support/small_disk.ts';
import { until } from '../../support/wait.ts';

const skip = await noSmallDisks();

function open(test: Test, dataDir: string) {
  const printed: string[] = [];
  const log = openLogFile(dataDir, 'api', { print: (line) => printed.push(line), maxBytes: 1000, checkMs: 5 });
  test.teardown(log.close);
  return { log, printed, text: () => readFileSync(log.path, 'utf8') };
}

t.test('a log that cannot be copied grows, is told of once, and is emptied when it can be', async (test) => {
  const { log, printed, text } = open(test, await openFolder(test));
  const inTheWay = `${log.path}.1`;
  mkdirSync(inTheWay);
  log.write('x'.repeat(1000));
  await until('it is told', () => printed.length > 0);
  log.write('y'.repeat(1000));
  test.match(printed, [/^\/.*api\.log cannot be copied to .*api\.log\.1 and grows: /]);
  test.equal(text().length, 2002);
  rmdirSync(inTheWay);
  await until('it is emptied', () => text() === '');
  test.equal(readFileSync(inTheWay, 'utf8').length, 2002);
  test.equal(printed.length, 1);
});

t.test('a log that was removed has no last lines, and takes more', async (test) => {
  const { log } = open(test, await openFolder(test));
  log.write('a line');
  test.same(log.tail(2), ['a line']);
  rmSync(log.path);
  test.same(log.tail(2), []);
  log.write('another');
});

t.test('lines for which a full disk has no room are left out and counted', { skip }, async (test) => {
  const dataDir = await openFolder(test);
  const disk = mountSmallDisk(test, path.join(dataDir, 'logs'), 1);
  // It fills the last page of the file but for a part of a line.
  writeFileSync(path.join(disk.folder, 'api.log'), '');
  const printed: string[] = [];
  const log = openLogFile(dataDir, 'api', { print: (line) => printed.push(line) });
  test.teardown(log.close);
  appendFileSync(log.path, `${'-'.repeat(4085)}\n`);
  disk.fill();
  for (let line = 1; line <= 5; line += 1) log.write(`a line ${line} that is long`);
  test.match(printed, [/^\/.*api\.log cannot be written, its lines are left out: /]);
  disk.empty();
  log.write('there is room');
  log.write('again');
  test.same(readFileSync(log.path, 'utf8').split('\n').slice(1), [
    'a line 1 t',
    '5 lines were left out',
    'there is room',
    'again',
    '',
  ]);
  test.match(printed, [/cannot be written/, /^\/.*api\.log is written again$/]);
});
