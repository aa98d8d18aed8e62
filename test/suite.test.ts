import { existsSync, globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import t from 'tap';

const FOLDER = import.meta.dirname;

t.test('no test file waits at its top level after its first test: the suite may have ended by then', (test) => {
  const files = globSync('**/*.test.ts', { cwd: FOLDER });
  test.ok(files.length > 50);
  for (const file of files) {
    const lines = readFileSync(path.join(FOLDER, file), 'utf8').split('\n');
    const first = lines.findIndex((line) => line.startsWith('t.test('));
    const late = lines.filter((line, index) => first >= 0 && index > first && /^\S.*\bawait\b/.test(line));
    // A test that is written on one line waits inside of it.
    const waits = late.filter((line) => !/^(await )?t\.test\(/.test(line));
    test.same(waits, [], file);
  }
  test.end();
});

t.test('test/README.md says of each slow file why it is slow, and names no other file', (test) => {
  const page = readFileSync(path.join(FOLDER, 'README.md'), 'utf8');
  const named = [...page.matchAll(/^\| `([^`*]+\.test\.ts)` \| \S/gm)].map(([, file = '']) => file);
  const slow = globSync('**/*.test.ts', { cwd: path.join(FOLDER, 'slow') });
  test.same(named.sort(), slow.sort());
  for (const [, file = ''] of page.matchAll(/`(test\/[^`*<]+\.ts)`/g)) {
    test.ok(existsSync(path.join(FOLDER, '..', file)), file);
  }
  test.end();
});
