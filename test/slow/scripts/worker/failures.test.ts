import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import t, { type Test } from 'tap';
import { workerApi } from '../../../../scripts/worker/api.ts';
import { CommandNotFoundError } from '../../../../scripts/worker/command_gate.ts';
import { errorTail } from '../../../../scripts/worker/error_tail.ts';
import { readOptions } from '../../../../scripts/worker/options.ts';
import { missingProgram } from '../../../../scripts/worker/program.ts';
import { pullLoop } from '../../../../scripts/worker/pull_loop.ts';
import { ORGANIZATION, type Script, standIn } from '../../../scripts/worker/stand_in.ts';
import { bareEnvironment } from '../../../support/environment.ts';
import { openFolder } from '../../../support/folders.ts';
import { until } from '../../../support/wait.ts';

// Processes are started, and a machine that is busy takes its time.
t.setTimeout(180_000);

const NOT_THERE = 'worker: --exec: there is no program no-such-program in PATH';
const API_KEY = 'a-key-of-a-provider-0123456789';

async function setUp(t: Test, script: Script, command: string, ...argv: string[]) {
  const server = await standIn(t, script);
  const given = ['--exec', command, '--url', server.url, '--token', 'service', '--scratch', await openFolder(t)];
  const options = readOptions([...given, ...argv], { PATH: process.env['PATH'], PROVIDER_API_KEY: API_KEY });
  if (!options) throw new Error('no options');
  const printed: string[] = [];
  const drain = new AbortController();
  const work = () =>
    pullLoop({
      api: workerApi(options),
      options,
      print: (line) => printed.push(line),
      drain: drain.signal,
      stop: drain.signal,
    });
  return { ...server, printed, drain, work };
}

t.test('what a failed command said last is in the error and the log of its run, without its secrets', async (t) => {
  const executionToken = 'e1'.repeat(32);
  const command = [
    'echo hidden; echo first >&2',
    'for n in $(seq 1000); do echo "line $n of many" >&2; done',
    'echo "token $BUSINESS_RUNNER_TOKEN key $PROVIDER_API_KEY" >&2',
    'printf "\\033[31mno such column: lamps\\033[0m\\n" >&2; exit 3',
  ].join('\n');
  const { work, bodies, printed } = await setUp(t, { executionToken }, command, '--once');
  t.equal(await work(), false);
  const [{ error }] = bodies('fail');
  t.match(error, { code: 'command_failed', retryable: true });
  t.ok(error.message.startsWith('The command ended with exit status 3:\n'));
  t.ok(
    error.message.endsWith('\nline 1000 of many\ntoken [redacted] key [redacted]\nno such column: lamps'),
    error.message,
  );
  const said = error.message.slice(error.message.indexOf('\n') + 1);
  t.ok(said.length > 1_900 && said.length <= 2_000, `${said.length} characters`);
  t.notMatch(error.message, /first|hidden/);
  const entries = bodies('logs').flatMap((body) => body.entries);
  const [logged] = entries.filter(({ label }) => label === 'Standard error');
  t.match(logged, { category: 'execution', status: 'failed', detail: / \| no such column: lamps$/ });
  t.match(printed.at(-1), /T-1 {2}failed: The command ended with exit status 3 \(/, 'the screen has the rest already');
});

t.test('a chat command says it too', async (t) => {
  const { work, bodies } = await setUp(t, { chats: [{}] }, 'echo "out of memory" >&2; exit 1', '--once');
  t.equal(await work(), false);
  t.match(bodies('fail'), [{ error: { message: 'The command ended with exit status 1:\nout of memory' } }]);
});

t.test('credentials and private keys are left out line by line', async (t) => {
  const tail = errorTail();
  const secret = 'MIIEvQIBADANBgkqhkiG9w0BAQEFAASC';
  const key = ['-----BEGIN PRIVATE KEY-----', secret, '-----END PRIVATE KEY-----'];
  tail.add(Buffer.from(['before', ...key, 'password=hunter2hunter2', 'after'].join('\n')));
  t.equal(tail.text([]), ['before', '[redacted]', '[redacted]', '[redacted]', '[redacted]', 'after'].join('\n'));
  const cut = errorTail();
  cut.add(Buffer.from([secret, '-----END PRIVATE KEY-----', 'after'].join('\n')));
  t.equal(cut.text([]), '[redacted]\n[redacted]\nafter', 'also of one whose beginning is gone');
  const long = errorTail();
  long.add(Buffer.from(`${'s3cret-'.repeat(10_000)}\nend`));
  t.ok(long.text([]).length <= 2_000);
});

t.test('a command that cannot be started costs one attempt of one run, and the worker ends', async (t) => {
  const tasks: Script = { tasks: [{}, { identifier: 'T-2' }, { identifier: 'T-3' }] };
  const chats: Script = { chats: [{}, {}, {}] };
  for (const script of [tasks, chats]) {
    for (const [command, status] of [
      ['no-such-program --fast', 127],
      ['/', 126],
    ] as const) {
      const { work, of, bodies } = await setUp(t, structuredClone(script), command, '--concurrency', '3');
      await t.rejects(work(), CommandNotFoundError);
      t.equal(of('start').length, 1);
      t.match(bodies('fail'), [{ error: { code: 'command_not_found', retryable: true } }]);
      t.match(bodies('fail')[0].error.message, new RegExp(`exit status ${status}`));
    }
  }
});

t.test('a worker whose program is not there says so in one line, and pulls nothing', async (t) => {
  const { url, received } = await standIn(t, {});
  const argv = ['--exec', 'no-such-program', '--url', url, '--token', 'service', '--scratch', await openFolder(t)];
  const main = path.resolve(import.meta.dirname, '../../../../scripts/worker/main.ts');
  const child = spawn(process.execPath, [main, '--no-env-file', ...argv], {
    env: bareEnvironment(),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [out, err, [status]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  t.same({ status, out, err }, { status: 127, out: '', err: `${NOT_THERE}\n` });
  t.same(received, []);
});

t.test('a command that once ran may end with 127, and others follow it', async (t) => {
  const folder = await openFolder(t);
  const mark = path.join(folder, 'ran');
  const command = `[ -e '${mark}' ] || { touch '${mark}'; exit 0; }; exit 127`;
  const script = { tasks: [{}, { identifier: 'T-2' }, { identifier: 'T-3' }] };
  const { work, bodies, drain } = await setUp(t, { ...script, respond: stopAfter(2) }, command);
  function stopAfter(failures: number) {
    return (verb: string, nth: number) => {
      if (verb === 'fail' && nth === failures) drain.abort();
      return null;
    };
  }
  t.equal(await work(), true);
  t.equal(bodies('complete').length, 1);
  t.match(bodies('fail'), [{ error: { code: 'command_failed' } }, { error: { code: 'command_failed' } }]);
});

t.test('what can be told of the program before the first pull', async (t) => {
  const folder = await openFolder(t);
  const script = path.join(folder, "ann's agent.sh");
  writeFileSync(script, '#!/bin/sh\n');
  mkdirSync(path.join(folder, 'sub'));
  const quoted = `'${script.replaceAll("'", `'\\''`)}'`;
  const environment = { PATH: process.env['PATH'] };
  const found = (command: string) => missingProgram(command, environment);
  t.match(found(quoted), /may not be executed \(chmod \+x\)$/);
  chmodSync(script, 0o755);
  t.equal(found(quoted), undefined);
  t.match(found(`${folder}/none.sh --fast`), /^there is no .*none\.sh$/);
  t.match(found(`${folder}/sub`), /is no file$/);
  t.match(found('no-such-program; true'), 'there is no program no-such-program in PATH');
  t.match(found('MODE=fast no-such-program'), 'there is no program no-such-program in PATH');
  t.match(found('bin/agent.sh'), 'bin/agent.sh is looked for in the folder of the run: write ./bin/agent.sh');
  for (const fine of [
    'true',
    'if true; then true; fi',
    'cd /',
    'inputs/run.sh',
    '"$AGENT" x',
    '( x )',
    '$(x)',
    'cd inputs && node a.mjs',
  ]) {
    t.equal(found(fine), undefined, fine);
  }
});

t.test('the screen says that the agent asks or waits, and which check failed', async (t) => {
  const question = '{"kind":"needs_input","question":"Who is it for?","options":["the team","us"]}';
  const asked = await setUp(t, {}, `echo '${question}' > $RESULT_FILE`, '--once');
  t.equal(await asked.work(), true);
  t.ok(asked.printed.includes('T-1  asks a person: Who is it for? (the team, us)'));
  t.ok(
    asked.printed.includes(
      `T-1  waits for the response: npx business-runner inbox respond T-1 TEXT --org ${ORGANIZATION}`,
    ),
  );
  t.match(asked.printed.at(-1), /^T-1 {2}the run ended, and the task waits \(/);
  const wait = '{"kind":"waiting","until":"2030-01-01T00:00:00Z","reason":"rates"}';
  const waits = await setUp(t, {}, `echo '${wait}' > $RESULT_FILE`, '--once');
  t.equal(await waits.work(), true);
  t.ok(waits.printed.includes('T-1  waits until 2030-01-01T00:00:00Z: rates'));
  const summary = 'report.json: expected /lamps to be 1, found 0';
  const refused = await setUp(t, { refused: [{ summary }] }, 'true', '--once');
  t.equal(await refused.work(), false);
  t.match(refused.printed.at(-1), /T-1 {2}failed: .*criteria; report\.json: expected \/lamps to be 1, found 0 \(/);
});

t.test('after a failure the screen says whether the task is tried again', async (t) => {
  const retry = `npx business-runner task retry T-1 --org ${ORGANIZATION}`;
  const backoff = (until: number) => ({ kind: 'backoff', message: '', until: new Date(until).toISOString() });
  const budget = { budget: { maxAttemptsPerPhase: 3 } };
  const cause = { kind: 'failed', message: '' };
  const after = async (status: string, causes: readonly object[], script: Script = {}, command = 'exit 3') => {
    const tasks = [{ spec: budget }];
    const { work, printed } = await setUp(t, { tasks, explained: { status, causes }, ...script }, command, '--once');
    t.equal(await work(), false);
    return printed.at(-1);
  };
  t.match(
    await after('pending', [backoff(Date.now() + 3_600_000)]),
    /^T-1 {2}attempt 1 of 3, tried again in 36\d\d s$/,
  );
  t.match(await after('pending', [backoff(1)]), 'T-1  attempt 1 of 3, tried again by the next worker');
  t.equal(await after('failed', [cause]), `T-1  attempt 1 of 3, not tried again: ${retry}`);
  t.equal(await after('failed', [cause], { tasks: [{}] }), `T-1  attempt 1, not tried again: ${retry}`);
  const refused = { refused: [{ summary: 'nothing' }] };
  t.equal(await after('pending', [], refused, 'true'), 'T-1  tried again by the next worker');
  const asks = [{ kind: 'human', message: '' }];
  t.equal(
    await after('blocked', asks, refused, 'true'),
    `T-1  waits for a person: npx business-runner inbox --org ${ORGANIZATION}`,
  );
  t.equal(await after('blocked', [{ kind: 'profile', message: 'T-1 belongs to X' }]), 'T-1  T-1 belongs to X');
});

t.test('a result file that is not valid is refused in the words of the API', async (t) => {
  for (const [result, message] of [
    ['{"kind":"needs_input"}', 'RESULT_FILE: question is required'],
    ['{"sumary":"x"}', 'RESULT_FILE: sumary is not a known field'],
    ['{"kind":"asks"}', 'RESULT_FILE: kind must be one of completed, waiting, needs_input, failed'],
    ['[]', 'RESULT_FILE: it must be an object'],
    ['{"kind":"waiting","reason":"rates"}', 'RESULT_FILE: it needs exactly one of until and actionIds'],
    [
      '{"kind":"waiting","reason":"rates","until":"2030-01-01T00:00:00Z","actionIds":[]}',
      'RESULT_FILE: it needs exactly one of until and actionIds',
    ],
  ]) {
    const { work, bodies } = await setUp(t, {}, `echo '${result}' > $RESULT_FILE`, '--once');
    t.equal(await work(), false);
    t.match(bodies('fail'), [{ error: { code: 'result_invalid', message } }]);
  }
});

t.test('a worker that finds nothing to do says so once', async (t) => {
  let pulls = 0;
  const { work, printed, drain } = await setUp(
    t,
    {
      tasks: [],
      respond: (verb) => {
        if (verb === 'pull' && ++pulls > 6) drain.abort();
        return null;
      },
    },
    'true',
  );
  t.equal(await work(), true);
  t.same(
    printed.filter((line) => line.startsWith('nothing to do')),
    ['nothing to do yet: waiting for tasks or chats'],
  );
});

t.test('one Ctrl-C below npm, which passes it on, lets the running command finish', async (t) => {
  const folder = await openFolder(t);
  const { url, bodies } = await standIn(t, {});
  const command = `echo begun; until [ -e '${folder}/go' ]; do sleep 0.1; done`;
  const main = path.resolve(import.meta.dirname, '../../../../scripts/worker/main.ts');
  const given = ['--once', '--url', url, '--token', 'service', '--scratch', folder, '--exec', command];
  const child = spawn(process.execPath, [main, '--no-env-file', ...given], { stdio: ['ignore', 'pipe', 'inherit'] });
  let printed = '';
  child.stdout.on('data', (chunk) => {
    printed += chunk;
  });
  const ended = once(child, 'close');
  await until('the command to run', () => printed.includes('| begun'));
  // Two of a kind may arrive as one.
  child.kill('SIGINT');
  child.kill('SIGTERM');
  await until('the drain', () => printed.includes('draining'));
  writeFileSync(path.join(folder, 'go'), '');
  t.same(await ended, [0, null], printed);
  t.equal(bodies('complete').length, 1);
});
