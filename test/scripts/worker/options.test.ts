import { randomUUID } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import t from 'tap';
import { OptionsError, readOptions } from '../../../scripts/worker/options.ts';
import { missingProgram } from '../../../scripts/worker/program.ts';
import { startText } from '../../../scripts/worker/pull_loop.ts';

t.test('the command line is read, and what is wrong with it is said in one line', async (t) => {
  const directory = await mkdtemp(path.join(tmpdir(), 'worker-test-'));
  t.teardown(() => rm(directory, { recursive: true, force: true }));
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
  t.equal(commandOf('node ./agent.mjs'), 'node ./agent.mjs', 'there is no such file');
  await mkdir(path.join(directory, 'agents'));
  for (const name of ['agent.mjs', 'agents/agent.py', '-c']) await writeFile(path.join(directory, name), '');
  const inFolder = (command: string) => readOptions(['--exec', command], { ...env, INIT_CWD: directory })?.command;
  t.equal(inFolder('node agent.mjs --fast'), `node '${directory}/agent.mjs' --fast`);
  t.equal(inFolder('python3 ./agents/agent.py'), `python3 '${directory}/agents/agent.py'`);
  for (const kept of ['sh -c agent.mjs', 'echo agent.mjs', 'node $X/agent.mjs', 'bash', 'sh agents']) {
    t.equal(inFolder(kept), kept);
  }
  const isMissing = (command: string) => missingProgram(command, { PATH: process.env['PATH'], WORKER_DIR: directory });
  t.equal(isMissing('node agnet.mjs'), `there is no ${directory}/agnet.mjs`);
  t.equal(isMissing('agent.mjs'), 'there is no program agent.mjs in PATH: write ./agent.mjs');
  t.equal(isMissing('agnet.mjs'), 'there is no program agnet.mjs in PATH');
  t.equal(isMissing('node /none/agent.mjs'), 'there is no /none/agent.mjs');
  for (const kept of ['node inputs/agent.mjs', "node 'agent.mjs'", 'node --version', 'sh agents']) {
    t.equal(isMissing(kept), undefined);
  }
  t.throws(() => readOptions([], { ...env, npm_config_exec: 'true' }), /npm run worker -- --exec/);
  t.throws(() => readOptions(['node x'], { ...env, npm_config_exec: 'true' }), /'node x'.*npm run worker -- --exec/);
  t.throws(() => readOptions([], env), /is missing: what runs for each task\?$/);
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
  const begins = (...argv: string[]) => {
    const read = readOptions(['--exec', 'x', '--worker-id', 'w', ...argv], env);
    return read && startText(read);
  };
  t.equal(begins(), 'worker w pulls from http://127.0.0.1:3000: tasks and chats');
  t.equal(
    begins('--org', first, '--profile', 'p', '--kind', 'task'),
    `worker w pulls from http://127.0.0.1:3000: tasks of organization ${first}, profile p`,
  );
  t.throws(() => readOptions(['--exec', 'x', '--org', 'acme'], env), /takes ids, not "acme"/);
  t.equal(readOptions(['--exec', 'x', '--url', 'https://host/base/'], env)?.url, 'https://host/base');
  const urlOf = (settings: NodeJS.ProcessEnv) => readOptions(['--exec', 'x'], { ...env, ...settings })?.url;
  t.equal(urlOf({ PORT: '4100' }), 'http://127.0.0.1:4100', 'the port of .env, which npm start reads too');
  t.equal(urlOf({ HOST: '::', PORT: '0' }), 'http://127.0.0.1:3000');
  t.equal(urlOf({ HOST: '::1' }), 'http://[::1]:3000');
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
