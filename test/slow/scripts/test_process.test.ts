import path from 'node:path';
import t, { type Test } from 'tap';
import { describe, skips, totals } from '../../../scripts/test/report.ts';
import { runFiles } from '../../../scripts/test/schedule.ts';
import type { FileResult } from '../../../scripts/test/test_process.ts';

// Dozens of processes, on a machine that may have other work.
t.setTimeout(600_000);

/** Runs files of these texts as the suite does, at most two at once, in the order given. */
async function runAll(test: Test, texts: Readonly<Record<string, string>>): Promise<FileResult[]> {
  const files = Object.fromEntries(Object.entries(texts).map(([name, text]) => [`${name}.test.ts`, text]));
  const results: FileResult[] = [];
  await runFiles({
    files: Object.keys(files),
    alone: (file) => file.startsWith('alone'),
    cwd: path.resolve(test.testdir(files)),
    env: process.env,
    // What these leave open stays so.
    closeWithinMs: 1_000,
    onResult: (result) => results.push(result),
  });
  return results;
}

async function run(test: Test, text: string): Promise<FileResult> {
  const [result, ...more] = await runAll(test, { some: text });
  if (!result) throw new Error('there is no result');
  test.same(more, [], 'its process ends well');
  return result;
}

const PASSES = `import t from 'tap'; t.test('passes', async (t) => { t.ok(true); });`;

t.test('passed, failed and skipped tests are counted by name', async (test) => {
  const result = await run(
    test,
    `import t from 'tap';
     t.test('fine', async (t) => { t.ok(true); t.ok(true); });
     t.test('wrong', async (t) => { t.ok(true); t.equal(1 + 1, 3, 'adds up'); });
     t.test('deep', async (t) => { await t.test('inner', async (t) => { t.same({ a: 1 }, { a: 2 }); }); });
     t.test('throws', async () => { throw new Error('boom'); });
     t.test('not now', { skip: 'why' }, async () => {});`,
  );
  test.same(
    [result.tap.passed, result.tap.skipped.length, result.tap.failures.map((failure) => failure.name), result.crash],
    [1, 1, ['wrong', 'deep', 'throws'], undefined],
  );
  test.same(totals([result], 2), { passed: 1, failed: 5 }, 'failed checks count too');
  const text = describe(result, '');
  test.match(text, /not ok 2 - adds up/, 'the failed check is shown');
  test.match(text, /boom/);
  test.notMatch(text, /^ *ok /m, 'what is well is not');
});

t.test('what was skipped is named and counted, subtests included, with its reason', async (test) => {
  const results = await runAll(test, {
    some: `import t from 'tap';
      t.test('fine', async (t) => { t.ok(true); await t.test('below', { skip: 'nothing can be mounted: EPERM' }, async () => {}); });
      t.test('not #1 here', { skip: 'needs #2' }, async () => {});
      t.test('some day', { todo: true }, async () => {});`,
    none: PASSES,
  });
  test.equal(
    skips(results),
    [
      '3 skipped:',
      '  some.test.ts: below (nothing can be mounted: EPERM)',
      '  some.test.ts: not #1 here (needs #2)',
      '  some.test.ts: some day (no reason given)',
    ].join('\n'),
  );
  test.same(totals(results, 0), { passed: 2, failed: 0 }, 'and counts as neither');
  test.equal(skips(results.filter(({ file }) => file.startsWith('none'))), '');
});

const CRASHES: Readonly<Record<string, string>> = {
  syntax: 'const = 1;',
  'throws at once': `import 'tap'; throw new Error('at once');`,
  'ends early': `import t from 'tap'; t.test('a', async () => {}); t.test('b', async () => { process.exit(0); });`,
  empty: `import 'tap';`,
  'no tap at all': 'console.log("fine");',
  'sets a status': `import t from 'tap'; t.test('a', async () => { process.exitCode = 3; });`,
  // By itself: a file that is killed after it would take its end along.
  'alone, and fails at the exit': `import t from 'tap'; t.test('a', async () => {}); process.on('exit', () => { process.exitCode = 3; });`,
  killed: `import t from 'tap'; t.test('a', async () => { process.kill(process.pid, 'SIGKILL'); });`,
  'fails in its teardown': `import t from 'tap'; t.teardown(() => { throw new Error('late'); }); t.test('a', async () => {});`,
  'rejects unseen': `import t from 'tap'; t.test('a', async () => { void Promise.reject(new Error('unseen')); });`,
  'rejects after its tests': `import t from 'tap'; t.test('a', async () => {}); setTimeout(() => Promise.reject(new Error('late')), 50);`,
  'leaves a timer': `import t from 'tap'; t.test('a', async () => { setInterval(() => {}, 1000); });`,
  'leaves a server': `import net from 'node:net'; import t from 'tap'; t.test('a', async () => { net.createServer().listen(0); });`,
  'changes the environment': `import t from 'tap'; t.test('a', async () => { process.env['LEFT'] = '1'; });`,
};

t.test(
  'a file that crashes, leaves something or tests nothing has failed, and the others run all the same',
  async (test) => {
    const names = Object.keys(CRASHES);
    // Beside each other and after each other, in processes that the failures end.
    const files = Object.fromEntries(
      names.flatMap((name) => [
        [name, CRASHES[name] ?? ''],
        [`after ${name}`, PASSES],
      ]),
    );
    const results = await runAll(test, files);
    for (const name of names) {
      const failed = results.filter(({ file }) => file.includes(`${name}.test.ts`) && !file.startsWith('after'));
      test.ok(totals(failed, 0).failed > 0, name);
      test.match(results.find(({ file }) => file === `after ${name}.test.ts`)?.tap, { passed: 1 }, `after ${name}`);
    }
    const fine = results.filter(({ file }) => file.startsWith('after'));
    test.same(totals(fine, 0), { passed: names.length, failed: 0 }, 'and no failure is another file’s');
  },
);

t.test('files share what they import, save those that run alone', async (test) => {
  const count = (name: string) => `import t from 'tap'; 
    t.test('${name}', async (t) => { console.error('n =', globalThis.runs = (globalThis.runs ?? 0) + 1); t.ok(true); });`;
  // One more than ever run at a time: some process gets two of them.
  const others = Array.from('bcdefgh', (name) => [name, count(name)]);
  const results = await runAll(test, {
    alone: count('a'),
    ...Object.fromEntries(others),
    alone2: count('i'),
  });
  const seen = Object.fromEntries(results.map(({ file, stderr }) => [file, stderr]));
  test.match(seen, { 'alone.test.ts': /n = 1/, 'alone2.test.ts': /n = 1/ });
  test.match(Object.values(seen).join(), /n = 2/);
});

t.test('what a test file leaves running is ended', async (test) => {
  const result = await run(
    test,
    `import { spawn } from 'node:child_process';
     import t from 'tap';
     t.test('leaves a process', async () => { spawn('sleep', ['600'], { stdio: 'inherit' }).unref(); });`,
  );
  test.same(totals([result], 0), { passed: 1, failed: 0 });
  test.ok(result.seconds < 60);
});
