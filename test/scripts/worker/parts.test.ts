import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { appendFile, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import t, { type Test } from 'tap';
import { ApiError, isRetryable, type LogEntry } from '../../../scripts/worker/api.ts';
import { OptionsError, readOptions } from '../../../scripts/worker/options.ts';
import { outputFiles } from '../../../scripts/worker/output_files.ts';
import { followLines, logShipper, parseProgressLine } from '../../../scripts/worker/progress.ts';
import { ResultError, readResult, readUsage } from '../../../scripts/worker/result_files.ts';
import { backoffMs, retry } from '../../../scripts/worker/retry.ts';
import { taskText } from '../../../scripts/worker/task_text.ts';
import { makeFolders, pathBelow, workspaceAt } from '../../../scripts/worker/workspace.ts';
import { until } from '../../support/wait.ts';

// Processes are started, and a machine that is busy takes its time.
t.setTimeout(180_000);

async function folder(t: Test): Promise<string> {
  const made = await mkdtemp(path.join(tmpdir(), 'worker-test-'));
  t.teardown(() => rm(made, { recursive: true, force: true }));
  return made;
}

t.test('the command line is read, and what is wrong with it is said in one line', async (t) => {
  const directory = await folder(t);
  const file = path.join(directory, 'token');
  await writeFile(file, 'from-file\n');
  const env = { BUSINESS_RUNNER_SERVICE_TOKEN: 'from-env', OWNER_TOKENS: 'secret', DATABASE_URL: 'secret', HOME: '/h' };
  const options = readOptions(['--exec', 'true'], env);
  t.match(options, { command: 'true', url: 'http://127.0.0.1:3000', token: 'from-env', concurrency: 1, once: false });
  t.same(
    options?.environment,
    { HOME: '/h', WORKER_DIR: process.cwd() },
    'commands do not see the secrets of the worker',
  );
  const called = { ...env, INIT_CWD: "/home/ann's" };
  const commandOf = (command: string) => readOptions(['--exec', command], called)?.command;
  t.equal(commandOf('./agent.sh --fast ./x'), String.raw`'/home/ann'\''s/agent.sh' --fast ./x`);
  t.equal(commandOf('../agent.sh'), "'/home/agent.sh'");
  t.equal(commandOf('node ./agent.mjs'), 'node ./agent.mjs');
  t.equal(readOptions(['--exec', 'x'], called)?.environment['WORKER_DIR'], "/home/ann's");
  t.equal(readOptions(['--exec', 'true', '--token', 'given'], env)?.token, 'given');
  t.equal(readOptions(['--exec', 'true', '--token-file', file], env)?.token, 'from-file');
  await mkdir(path.join(directory, 'data'));
  await writeFile(path.join(directory, 'data', 'agent-service-token'), 'made-by-start');
  const dataDir = { DATA_DIR: path.join(directory, 'data') };
  t.equal(readOptions(['--exec', 'true'], dataDir)?.token, 'made-by-start');
  const [first, second] = [randomUUID(), randomUUID()];
  t.match(readOptions(['--exec', 'x', '--organization', first, '--org', second, '--profile', 'p'], env), {
    organizationIds: [first, second],
    profileKeys: ['p'],
  });
  t.throws(() => readOptions(['--exec', 'x', '--org', 'acme'], env), /takes ids, and "acme" is none/);
  t.equal(readOptions(['--exec', 'x', '--url', 'https://host/base/'], env)?.url, 'https://host/base');
  t.equal(readOptions(['--exec', 'x', '--once', '--concurrency', '9'], env)?.concurrency, 1);
  t.match(options, { kinds: ['task', 'chat'], chats: 4, llm: undefined });
  t.same(readOptions(['--exec', 'x', '--kind', 'chat'], env)?.kinds, ['chat']);
  const model = ['--llm', 'http://model/v1/', '--model', 'small'];
  const llmEnv = { ...env, BUSINESS_RUNNER_LLM_KEY: 'secret' };
  const llm = { url: 'http://model/v1', model: 'small', key: 'secret', silenceMs: 120_000, timeoutMs: 3_600_000 };
  t.match(readOptions(model, llmEnv), { command: '', kinds: ['chat'], model: 'small', llm });
  t.notOk(readOptions(model, llmEnv)?.environment['BUSINESS_RUNNER_LLM_KEY'], 'nor the key of the model');
  t.same(readOptions([...model, '--exec', 'x'], env)?.kinds, ['task', 'chat']);
  t.equal(readOptions([...model, '--instructions', file], env)?.llm?.instructions, 'from-file');
  t.same(
    [model, [...model, '--images']].map((argv) => readOptions(argv, env)?.llm?.images),
    [false, true],
  );
  t.equal(readOptions(['--help'], {}), null);
  for (const [argv, message] of [
    [[], /--exec/],
    [['--exec', ' '], /--exec/],
    [['--exec', 'x', '--url', 'ftp://x'], /--url/],
    [['--exec', 'x', '--concurrency', '0'], /--concurrency/],
    [['--exec', 'x', '--timeout', '1.5'], /--timeout/],
    [['--exec', 'x', '--nonsense'], /nonsense/],
    [['--llm', 'http://model'], /--model/],
    [['--llm', 'model', '--model', 'x'], /--llm/],
    [[...model, '--exec', ''], /--exec/],
    [[...model, '--kind', 'task'], /--kind task: needs --exec/],
    [[...model, '--instructions', path.join(directory, 'none')], /--instructions.*ENOENT/],
    [['--exec', 'x', '--kind', 'other'], /--kind/],
    [['--exec', 'x', '--silence', '5'], /needs --llm/],
    [['--exec', 'x', '--images'], /needs --llm/],
    [['--exec', 'x', '--token-file', path.join(directory, 'none')], /no service token.*ENOENT/],
    [['--exec', 'x', '--token', 'two words'], /no service token.*characters/],
  ] as const) {
    t.throws(() => readOptions(argv, env), OptionsError);
    t.throws(() => readOptions(argv, env), { message });
  }
});

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

t.test('TASK.md holds all that counts: an answer that stood in task.json alone was asked for again', async (t) => {
  const claim = {
    organizationId: 'o',
    runRequestId: 'r',
    leaseToken: 'l',
    attempt: 2,
    mode: 'execute',
    leaseExpiresAt: '2030-01-01T00:00:00Z',
    claimMs: 1,
    agentProfile: { key: 'growth', name: 'Growth' },
    task: {
      id: 'i',
      identifier: 'T-3',
      title: 'Sales report',
      consumedAgentRunCount: 4,
      spec: {
        objective: 'Add up the sales.',
        acceptanceCriteria: [
          {
            kind: 'output_file',
            path: 'report.json',
            checks: [
              { kind: 'media_type', anyOf: ['application/json'] },
              { kind: 'json_pointer', pointer: '/total', operator: 'eq', value: 12 },
              { kind: 'json_pointer', pointer: '/rows', operator: 'exists' },
            ],
          },
          { kind: 'taste', text: 'short' },
        ],
        budget: { maxAttemptsPerPhase: 3, maxAgentRuns: 10, maxReplans: 2, maxTokens: 500 },
      },
      state: {
        contract: { failures: 1, checks: [{ summary: 'expected /total to be 12' }] },
        answers: [{ title: 'Question about: Sales', question: 'With returns?', response: 'Yes', note: 'Since\nMay' }],
        failures: [
          {
            mode: 'execute',
            status: 'failed',
            error: { code: 'command_failed', message: 'exit status 3:\nno such column' },
          },
          { mode: 'plan', status: 'expired', error: { code: 'run_lease_expired', message: 'The worker is gone' } },
        ],
        children: [
          { identifier: 'T-4', title: 'Read', status: 'completed', summary: 'Read.', artifacts: [{ path: 'a.md' }] },
        ],
        spend: { costMinorUnits: 7, tokens: 120 },
      },
    },
  };
  const input = { path: 'sales.csv', mediaType: 'text/csv', sizeBytes: 9, available: true };
  const textOf = (mode: string) =>
    taskText({ ...claim, mode }, [input, { ...input, path: 'late.csv', available: false }], 60_000);
  const lines = textOf('execute').split('\n');
  const ends = lines.indexOf('## How to end');
  t.same(
    lines.slice(0, ends).filter((line) => line !== ''),
    [
      '# T-3: Sales report',
      'For Growth (growth), to execute; attempt 2.',
      '## Objective',
      'Add up the sales.',
      '## Input files',
      '- `inputs/sales.csv` (text/csv, 9 bytes)',
      '- `inputs/late.csv` (text/csv, 9 bytes, not available)',
      '## It is done when',
      '- `report.json` is uploaded; media type application/json; /total eq 12; /rows exists',
      '- taste: {"text":"short"}',
      '## What people answered',
      '- With returns?',
      '  Answer: Yes',
      '  Note: Since',
      '  May',
      '## The last result was refused because',
      '- expected /total to be 12',
      '## What failed before',
      '- A run (execute) failed: command_failed: exit status 3:',
      '  no such column',
      '- A run (plan) lost its lease: run_lease_expired: The worker is gone',
      '## Subtasks so far',
      '- T-4 Read: completed, Read.',
      '  Files: `a.md`',
    ],
  );
  const rest = lines.slice(ends).join('\n');
  for (const means of ['"summary"', '"needs_input"', '"waiting"', '"failed"', '`progress.log`', '`usage.json`']) {
    t.ok(rest.includes(means), means);
  }
  t.same(
    lines.slice(lines.indexOf('## What is left')).filter((line) => line.startsWith('- ')),
    [
      '- attempts after this one: 1 of 3',
      '- runs after this one, of the task and all below it: 5 of 10',
      '- tokens: 380 of 500',
      '- time for this run: 60 s',
    ],
  );
  t.match(textOf('plan'), /"operations".*`plan\.json`/);
  t.match(textOf('verify'), /"verdict".*`verdict\.json`/);
  t.notMatch(textOf('verify'), 'needs_input', 'a verifier decides');
});
