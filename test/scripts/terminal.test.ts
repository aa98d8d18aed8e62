import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import t from 'tap';
import { askYes, plain, plainText } from '../../scripts/terminal.ts';

const root = path.resolve(import.meta.dirname, '../..');
const HOSTILE = 'a\u001b[2J\u009b31m\u0007\r\nb\tc\u202ed\u2066\u200f\u2028e\u007f';

t.test(
  'nothing that a terminal obeys is left of a text, and of several lines only their ends and tabs',
  async (test) => {
    test.equal(plain(HOSTILE), 'a\\u001b[2J\\u009b31m\\u0007\\r\\nb\\tc\\u202ed\\u2066\\u200f\\u2028e\\u007f');
    test.equal(plainText(HOSTILE), 'a\\u001b[2J\\u009b31m\\u0007\\r\nb\tc\\u202ed\\u2066\\u200f\\u2028e\\u007f');
    test.equal(plainText('x\ud800y ä 日本 👩‍👩‍👧 e\u0301'), 'x\ufffdy ä 日本 👩‍👩‍👧 e\u0301');
  },
);

/** Runs an expression over the functions that print, and returns what it wrote. */
async function printed(expression: string): Promise<{ out: string; err: string }> {
  const code = `import * as terminal from './scripts/terminal.ts'; const text = ${JSON.stringify(HOSTILE)}; ${expression}`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', code], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')]);
  return { out, err };
}

t.test('a question is answered by yes alone, and the end of input is a no', async (test) => {
  const ask = async (text: string) => {
    const input = new PassThrough();
    input.end(text);
    return askYes('', input);
  };
  test.equal(await ask('yes\n'), true);
  test.equal(await ask('yes'), true);
  for (const text of ['', 'no\n', '\n', 'yes please\n', '\nyes\n']) test.equal(await ask(text), false, text);
});

t.test('whatever is printed is escaped', async (test) => {
  test.same(await printed('terminal.printLine(text); terminal.printError(text)'), {
    out: `${plain(HOSTILE)}\n`,
    err: `${plain(HOSTILE)}\n`,
  });
  test.same(await printed('terminal.printText(text); terminal.printErrorText(text)'), {
    out: plainText(HOSTILE),
    err: plainText(HOSTILE),
  });
  const { out } = await printed('terminal.printTimed(text)');
  test.match(out, /^\d\d:\d\d:\d\d {2}a/);
  test.ok(out.endsWith(`${plain(HOSTILE)}\n`));
});

/** They print what is ours alone, run before any package is there, or write a report that escapes its cells. */
const OTHERS = [
  'scripts/bench/',
  'scripts/bootstrap.mjs',
  'scripts/command/business-runner.mjs',
  // Its streams are written to by output.ts and command.ts, which escape.
  'scripts/command/main.ts',
  'scripts/report.ts',
  'scripts/run.mjs',
  'scripts/terminal.ts',
  'scripts/test.ts',
  'scripts/test/',
];

/** What prints by another way. */
const PRINTING =
  /\bconsole\.|\bprocess\.std(?:out|err)\b|\bstd(?:out|err)\b[^}]*\} = process;|\bwriteOutput\b|'node:(?:process|console|tty)'/;

t.test('all scripts print through these functions', async (test) => {
  const files = globSync('scripts/**/*.{ts,mjs}', { cwd: root }).filter(
    (file) => !OTHERS.some((other) => file.startsWith(other)),
  );
  test.ok(files.length > 80);
  for (const file of files) {
    test.notMatch(readFileSync(path.join(root, file), 'utf8'), PRINTING, file);
  }
});
