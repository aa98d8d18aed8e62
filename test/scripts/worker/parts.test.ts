import { execFileSync } from 'node:child_process';
import { appendFile, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import t, { type Test } from 'tap';
import { ApiError, isRetryable, type LogEntry } from '../../../scripts/worker/api.ts';
import { outputFiles } from '../../../scripts/worker/output_files.ts';
import { followLines, logShipper, parseProgressLine } from '../../../scripts/worker/progress.ts';
import { ResultError, readResult, readUsage } from '../../../scripts/worker/result_files.ts';
import { backoffMs, retry } from '../../../scripts/worker/retry.ts';
import { makeFolders, pathBelow, workspaceAt } from '../../../scripts/worker/workspace.ts';
import { until } from '../../support/wait.ts';

// Processes are started, and a machine that is busy takes its time.
t.setTimeout(180_000);

async function folder(t: Test): Promise<string> {
  const made = await mkdtemp(path.join(tmpdir(), 'worker-test-'));
  t.teardown(() => rm(made, { recursive: true, force: true }));
  return made;
}

t.test('paths from the network stay below the folder of the run', async (t) => {
  t.equal(pathBelow('/scratch/run', 'a/b c.txt'), '/scratch/run/a/b c.txt');
  for (const bad of [
    '',
    '/etc/passwd',
    '..',
    '../x',
    'a/../../x',
    'a/..',
    './a',
    'a//b',
    'a/',
    'a\\b',
    'a\0',
    'a\nb',
  ]) {
    t.throws(() => pathBelow('/scratch/run', bad), { name: 'WorkspaceError' }, JSON.stringify(bad));
  }
});

t.test('outputs are the regular files, and links lead nowhere', async (t) => {
  const workspace = workspaceAt(await folder(t), 'run');
  await makeFolders(workspace);
  await t.rejects(makeFolders(workspace), { code: 'EEXIST' }, 'the folder of another run is never taken');
  const elsewhere = path.join(path.dirname(workspace.root), 'link');
  await symlink('/tmp', elsewhere);
  await t.rejects(
    makeFolders(workspaceAt(elsewhere, 'run')),
    { name: 'WorkspaceError' },
    'nor is a linked scratch folder',
  );
  await mkdir(path.join(workspace.outputs, 'b', 'c'), { recursive: true });
  await mkdir(path.join(workspace.outputs, 'empty'));
  await writeFile(path.join(workspace.outputs, 'b', 'c', 'deep.txt'), 'deep');
  await writeFile(path.join(workspace.outputs, 'a.txt'), '');
  await mkdir(path.join(workspace.outputs, 'b', '.git', 'objects'), { recursive: true });
  await writeFile(path.join(workspace.outputs, 'b', '.git', 'config'), '');
  await symlink('/etc/passwd', path.join(workspace.outputs, 'link'));
  await symlink('/etc', path.join(workspace.outputs, 'folder-link'));
  execFileSync('mkfifo', [path.join(workspace.outputs, 'b', 'pipe')]);
  const latin1 = (name: string) => Buffer.concat([Buffer.from(`${workspace.outputs}/`), Buffer.from(name, 'latin1')]);
  await writeFile(latin1('Größe.txt'), '');
  await mkdir(latin1('Größen'));
  await writeFile(latin1('Größen/good.txt'), '');
  const { files, leftOut } = await outputFiles(workspace);
  t.same(
    files.map(({ path, size }) => [path, size]),
    [
      ['a.txt', 0],
      ['b/c/deep.txt', 4],
    ],
  );
  t.same(
    leftOut.map(({ path, why }) => `${path}: ${why}`),
    [
      'Gr\\xf6\\xdfe.txt: its name is not UTF-8',
      'Gr\\xf6\\xdfen: its name is not UTF-8',
      'b/.git: the folder of a repository',
      'b/pipe: a named pipe',
      'folder-link: a symbolic link',
      'link: a symbolic link',
    ],
  );
  await rm(workspace.outputs, { recursive: true });
  t.same(await outputFiles(workspace), { files: [], leftOut: [{ path: 'OUTPUT_DIR', why: 'the command removed it' }] });
  await symlink('/etc', workspace.outputs);
  await t.rejects(outputFiles(workspace), { name: 'WorkspaceError' });
});

t.test('progress lines are text or JSON', async (t) => {
  t.same(parseProgressLine('Reading sales.csv '), { label: 'Reading sales.csv' });
  t.match(parseProgressLine('{"label":"Checked","detail":"3 rows","category":"verification","status":"completed"}'), {
    label: 'Checked',
    detail: '3 rows',
    category: 'verification',
    status: 'completed',
  });
  t.same(parseProgressLine('{not json'), { label: '{not json' });
  t.equal(parseProgressLine('  '), null);
  t.equal(parseProgressLine('{"detail":"no label"}'), null);
});

t.test('lines are followed while they are appended, cut anywhere', async (t) => {
  const file = path.join(await folder(t), 'progress.log');
  await writeFile(file, 'first\nsec');
  const lines: string[] = [];
  const over = new AbortController();
  const onLine = (line: string) => void lines.push(line);
  const followed = followLines(file, { onLine, onPoll: () => {}, pollIntervalMs: 5, signal: over.signal });
  await until('one line', () => lines.length === 1);
  const word = Buffer.from('ond\nGröße\n');
  await appendFile(file, word.subarray(0, 7));
  await until('another line', () => lines.length === 2);
  await appendFile(file, word.subarray(7));
  await appendFile(file, `${'x'.repeat(100_000)}\nlast`);
  over.abort();
  await followed;
  t.same(lines.slice(0, 3), ['first', 'second', 'Größe']);
  t.equal(lines[3]?.length, 4096, 'a line without end is cut');
  t.equal(lines.at(-1), 'last');
});

t.test('log entries are clean, numbered, and sent in batches', async (t) => {
  const batches: (readonly LogEntry[])[] = [];
  const shipper = logShipper({ send: async (entries) => batches.push(entries), print: () => {} });
  for (let index = 0; index < 150; index += 1) shipper.note({ label: `step ${index}` });
  shipper.note({ label: ' a\u0007b\nc ', detail: 'd'.repeat(3000), category: 'nonsense', status: 'nonsense' });
  shipper.note({ label: ' \n ' });
  await shipper.flush();
  t.same(
    batches.map((batch) => batch.length),
    [100, 51],
  );
  t.same(
    batches.flat().map((entry) => entry.sequence),
    Array.from({ length: 151 }, (_, index) => index + 1),
  );
  t.match(batches.flat().at(-1), { label: 'a b c', category: 'execution', status: 'running' });
  t.equal(batches.flat().at(-1)?.detail.length, 2000);
  t.equal(shipper.logState(), 'complete');
});

t.test('of a refused batch only the entry that is to blame is left out', async (t) => {
  const sent: string[] = [];
  const printed: string[] = [];
  const shipper = logShipper({
    print: (line) => printed.push(line),
    async send(entries) {
      if (entries.some((entry) => entry.label === 'Bearer abc'))
        throw new ApiError(400, 'validation_failed', '', 'credential');
      sent.push(...entries.map((entry) => entry.label));
    },
  });
  for (const label of ['one', 'Bearer abc', 'three']) shipper.note({ label });
  await shipper.flush();
  t.same(sent, ['one', 'three']);
  t.match(printed, [/left out: credential/]);
});

t.test('a log that cannot be sent or grows too long is truncated, and nothing else', async (t) => {
  const lost = logShipper({
    send: async () => Promise.reject(new ApiError(409, 'run_lease_expired', '', '')),
    print: () => {},
  });
  lost.note({ label: 'x' });
  await lost.flush();
  t.equal(lost.logState(), 'truncated');
  let sent = 0;
  const long = logShipper({
    send: async (entries) => {
      sent += entries.length;
    },
    print: () => {},
  });
  for (let index = 0; index < 10_001; index += 1) long.note({ label: 'x' });
  await long.flush();
  t.equal(sent, 10_000);
  t.equal(long.logState(), 'truncated');
});

t.test('the command may say how its run ends', async (t) => {
  const file = path.join(await folder(t), 'result.json');
  t.same(await readResult(file), { kind: 'completed' });
  for (const [text, expected] of [
    ['{"summary":"12 rows"}', { kind: 'completed', summary: '12 rows' }],
    ['{"kind":"waiting","until":"2030-01-01T00:00:00Z","reason":"rates"}', { kind: 'waiting', reason: 'rates' }],
    ['{"kind":"needs_input","question":"Which?","options":["a"]}', { kind: 'needs_input', options: ['a'] }],
    ['{"kind":"failed","code":"no_data","message":"m","retryable":false}', { kind: 'failed', retryable: false }],
  ] as const) {
    await writeFile(file, text);
    t.match(await readResult(file), expected);
  }
  for (const text of [
    '{',
    '[]',
    '"x"',
    '{"kind":"other"}',
    '{"kind":"waiting"}',
    '{"extra":1}',
    `"${'x'.repeat(300_000)}"`,
  ]) {
    await writeFile(file, text);
    await t.rejects(readResult(file), ResultError, text.slice(0, 20));
  }
  await writeFile(file, '{"inputTokens": 5, "costMinorUnits": 0}');
  t.same(await readUsage(file), { inputTokens: 5, outputTokens: 0, toolCalls: 0, costMinorUnits: 0 });
  t.same(await readUsage(`${file}-none`), { inputTokens: 0, outputTokens: 0, toolCalls: 0 });
  await writeFile(file, '{"inputTokens": -1}');
  await t.rejects(readUsage(file), ResultError);
});

t.test('a call is repeated while a repeat can succeed and there is time', async (t) => {
  const signal = new AbortController().signal;
  let calls = 0;
  const third = async () => {
    calls += 1;
    if (calls < 3) throw new ApiError(503, 'service_unavailable', '', '');
    return 'done';
  };
  const far = () => performance.now() + 60_000;
  t.equal(await retry(third, { isRetryable, deadline: far, signal }), 'done');
  calls = 0;
  await t.rejects(retry(third, { isRetryable, deadline: () => performance.now(), signal }), {
    name: 'ApiError',
  });
  t.equal(calls, 1, 'no time is left for another try');
  const refused = async () => Promise.reject(new ApiError(409, 'run_lease_expired', '', ''));
  await t.rejects(retry(refused, { isRetryable, deadline: far, signal }), { name: 'ApiError' });
  await t.rejects(
    retry(third, { isRetryable: () => true, deadline: far, signal: AbortSignal.abort(new Error('over')) }),
    {
      message: 'over',
    },
  );
  t.ok(isRetryable(new TypeError('fetch failed')));
  t.notOk(isRetryable(new TypeError('x is not a function')));
  t.notOk(isRetryable(Object.assign(new Error('no space'), { code: 'ENOSPC' })));
  for (let failures = 0; failures < 50; failures += 1) t.ok(backoffMs(failures) <= 5_000 && backoffMs(failures) >= 75);
});
