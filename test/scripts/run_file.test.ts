import path from 'node:path';
import t, { type Test } from 'tap';
import { describe, totals } from '../../scripts/test/report.ts';
import { runFile } from '../../scripts/test/run_file.ts';

function run(test: Test, text: string) {
  const folder = test.testdir({ 'some.test.ts': text });
  return runFile('some.test.ts', path.resolve(folder), process.env);
}

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
    [result.tap.passed, result.tap.skipped, result.tap.failures.map((failure) => failure.name), result.crash],
    [1, 1, ['wrong', 'deep', 'throws'], undefined],
  );
  test.same(totals([result], 2), { passed: 1, failed: 5 }, 'failed checks count too');
  const text = describe(result, '');
  test.match(text, /not ok 2 - adds up/, 'the failed check is shown');
  test.match(text, /boom/);
  test.notMatch(text, /^ *ok /m, 'what is well is not');
});

t.test('a file that crashes, ends early or tests nothing has failed', async (test) => {
  const cases = {
    syntax: 'const = 1;',
    'throws at once': `import 'tap'; throw new Error('at once');`,
    'ends early': `import t from 'tap'; t.test('a', async () => {}); t.test('b', async () => { process.exit(0); });`,
    empty: `import 'tap';`,
    'no tap at all': 'console.log("fine");',
    'fails after its tests': `import t from 'tap'; t.test('a', async () => {}); process.on('exit', () => { process.exitCode = 3; });`,
    killed: `import t from 'tap'; t.test('a', async () => { process.kill(process.pid, 'SIGKILL'); });`,
  };
  for (const [name, text] of Object.entries(cases)) {
    const result = await run(test, text);
    test.ok(totals([result], 0).failed > 0, name);
  }
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
