import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import t from 'tap';
import { begin, setUp, startWithCatalog } from '../../../scripts/command/set_up.ts';
import { OWNER_TOKEN, startTestApp } from '../../../support/app.ts';
import { createEmptyDatabase } from '../../../support/database.ts';
import { bareEnvironment } from '../../../support/environment.ts';
import { openFolder } from '../../../support/folders.ts';
import { startProxy } from '../../../support/proxy.ts';
import { until } from '../../../support/wait.ts';

t.setTimeout(180_000);
const root = path.resolve(import.meta.dirname, '../../../..');
const app = await startWithCatalog(t);
const locked = await startTestApp(t, { config: { ownerAuth: { mode: 'token', tokens: [OWNER_TOKEN] } } });

t.test('a wrong command line is told in one line', async (test) => {
  for (const [argv, message] of [
    [[], 'name a command, such as task create or ask (business-runner --help)\n'],
    [['tasks'], 'there is no command "tasks": did you mean task? (business-runner --help)\n'],
    [['nonsense'], 'there is no command "nonsense": task, org, ask, inbox, actions, receipt'],
    [['task'], 'task takes one of create, list, show, wait, logs, cancel, retry'],
    [['task', 'shwo', 'x'], 'task takes one of create, list, show, wait, logs, cancel, retry: did you mean show?'],
    [['inbox', 'answer', 'T-1', 'x'], 'inbox takes nothing, or one of respond, acknowledge'],
    [['inbox', 'repsond', 'T-1'], 'inbox takes nothing, or one of respond, acknowledge: did you mean respond?'],
    [['task', 'create'], 'task create: TITLE is missing'],
    [['task', 'create', ' '], 'task create: TITLE is empty'],
    [['task', 'create', 'Write', 'a', 'haiku'], 'task create: "a" is too much'],
    [['inbox', 'respond', 'T-1'], 'inbox respond: TEXT is missing'],
    [['task', 'list', '--wait'], 'task list takes no --wait'],
    [
      ['actions', 'aprove', 'x'],
      'actions takes nothing, or one of list, show, approve, reject, reconcile, receipt: did',
    ],
    [['actions', 'reject', 'x'], 'actions reject: REASON is missing'],
    [['actions', 'list', '--yes'], 'actions list takes no --yes'],
    [['receipt', 'check', 'x'], 'receipt takes one of verify (business-runner receipt --help)\n'],
    [['task', 'list', '--nonsense'], "Unknown option '--nonsense' (business-runner task --help)\n"],
    [['--org', 'task', '--nonsense', 'call'], "Unknown option '--nonsense' (business-runner call --help)\n"],
    [['--nonsense'], "Unknown option '--nonsense' (business-runner --help)\n"],
    [['call'], 'call: KEY is missing (business-runner call --help)\n'],
    [['task', 'create', 'x', '--expects', 'y'], "Unknown option '--expects': did you mean --expect?"],
    [['task', 'list', '--limit', '0'], '--limit takes a whole number from 1 to 10000'],
    [['task', 'show', 'T-1', '--timeout', '5'], 'task show takes no --timeout'],
    [['ask', 'Hello', '--timeout', '1.5'], '--timeout takes a whole number'],
    [['task', 'create', 'x', '--expect', 'a.json total gt 0'], '--expect takes a file'],
    [['task', 'create', 'x', '--expect', 'a.json /total above 0'], '--expect takes a file'],
    [['task', 'create', 'x', '--spec', 'none.json'], '--spec: none.json cannot be read (ENOENT)'],
    [['task', 'create', 'x', '--spec', 'package-lock.json', '--priority', 'high'], '--priority takes a whole number'],
    [['task', 'list', '--url', 'ftp://x'], '--url takes an http:// or https:// URL'],
    [['task', 'list', '--token', 'two words'], 'the token has characters that no token has'],
    [['task', 'list', '--token-file', 'none'], '--token-file:'],
  ] as const) {
    const { status, out, err } = await begin(
      { BUSINESS_RUNNER_URL: app.url, BUSINESS_RUNNER_ORGANIZATION: crypto.randomUUID() },
      ...argv,
    ).ended;
    test.equal(status, 64, argv.join(' '));
    test.equal(out, '');
    test.ok(err.startsWith(`business-runner: ${message}`), err);
    test.match(err, /^[^\n]+\n$/);
  }
});

t.test('a server that does not run, is not ours, or wants a token', async (test) => {
  const ended = (url: string, settings: object = {}) =>
    begin({ BUSINESS_RUNNER_URL: url, ...settings }, 'org', 'list').ended;
  const { url: database } = await createEmptyDatabase(test);
  const proxy = await startProxy(test, database.replace(/^postgres/, 'http'));
  proxy.cut();
  test.match(await ended(new URL(proxy.url).origin), {
    status: 69,
    err: /^business-runner: no Business Runner responds at http:\S+ \(.+\): run npm start, or give --url\n$/,
  });
  const other = createServer((_, res) => res.writeHead(404).end('Nothing here')).listen(0, '127.0.0.1');
  test.teardown(() => void other.close());
  await once(other, 'listening');
  const { port } = other.address() as AddressInfo;
  test.match(await ended(`http://127.0.0.1:${port}`), { status: 1, err: /:\d+ is not Business Runner: HTTP 404\n$/ });
  test.match(await ended(locked.url), {
    status: 77,
    err: / wants an owner’s token: give --token-file or set BUSINESS_RUNNER_OWNER_TOKEN\n$/,
  });
  const wrong = { BUSINESS_RUNNER_OWNER_TOKEN: OWNER_TOKEN.replace('owner', 'other') };
  test.match(await ended(locked.url, wrong), { status: 77, err: / does not take this token: / });
  test.match(await ended(locked.url, { BUSINESS_RUNNER_OWNER_TOKEN: OWNER_TOKEN }), { status: 0 });
});

t.test('the local service is found by its settings, and no other address gets its tokens', async (test) => {
  const { port } = new URL(locked.url);
  const settings = {
    PORT: port,
    HOST: '0.0.0.0',
    OWNER_TOKENS: `${OWNER_TOKEN},another-token-of-this-machine-0123456789`,
  };
  test.match(await begin(settings, 'org', 'list').ended, { status: 0 });
  test.match(await begin(settings, 'org', 'list', '--url', locked.url).ended, { status: 77 });
  const kept = { PORT: port, DATA_DIR: test.testdir({ 'owner-token': `${OWNER_TOKEN}\n` }) };
  test.match(await begin(kept, 'org', 'list').ended, { status: 0 }, 'the token that npm start keeps');
  test.match(await begin(kept, 'org', 'list', '--url', locked.url).ended, { status: 77 });
});

t.test('organizations and tasks that are not there, and too many to choose from', async (test) => {
  const { call, environment } = await setUp(test, app);
  await setUp(test, app);
  test.match(await call('task', 'show', 'T-9'), { status: 66, err: /^business-runner: There is no task [^\n]+\n$/ });
  test.match(await call('task', 'list', '--org', 'nobody'), { status: 66, err: /there is no organization "nobody"/ });
  test.match(await call('task', 'list', '--org', crypto.randomUUID()), { status: 66 });
  test.match(await call('org', 'create', 'Lamp', '--slug', environment['BUSINESS_RUNNER_ORGANIZATION'] ?? ''), {
    status: 1,
    err: /slug/,
  });
  test.match(await call('org', 'create', '☃'), { status: 64, err: /no letters for a slug/ });
  const several = begin({ BUSINESS_RUNNER_URL: app.url }, 'task', 'list');
  test.match(await several.ended, { status: 64, err: /there are several organizations: give --org, one of o-/ });
  test.match(await call('task', 'cancel', 'T-1'), { status: 66 });
  test.match(await call('ask', 'Hello', '--chat', 'abcd1234'), { status: 66, err: /there is no chat "abcd1234"/ });
});

t.test('the only organization needs no name', async (test) => {
  const alone = await startWithCatalog(test);
  const environment = { BUSINESS_RUNNER_URL: alone.url };
  test.match(await begin(environment, 'task', 'list').ended, {
    status: 66,
    err: /there is no organization yet: business-runner org create NAME\n$/,
  });
  const created = await begin(environment, 'org', 'create', 'Lämpchen & Söhne').ended;
  test.match(created, {
    status: 0,
    out: /^laempchen-soehne is active: Lämpchen & Söhne\n {2}id {8}\S+\n {2}agents {4}.*operator/,
    err: 'give it work: npx business-runner task create TITLE --org laempchen-soehne\n',
  });
  test.match(await begin(environment, 'task', 'create', 'Shine').ended, { status: 0, out: 'T-1\n' });
});

t.test('an API that goes away while a task is waited for is waited for too', async (test) => {
  const proxy = await startProxy(test, app.url);
  const { begin, call, worker } = await setUp(test, app, proxy.url);
  const gate = path.join(await openFolder(test), 'open');
  worker(`until [ -e '${gate}' ]; do sleep 0.05; done`);
  const waiting = begin('task', 'create', 'Patience', '--wait');
  await until('it runs', () => waiting.err().includes('T-1 is running'));
  proxy.cut();
  await until('it is told', () => waiting.err().includes('no Business Runner responds'));
  writeFileSync(gate, '');
  proxy.restore();
  test.match(await waiting.ended, { status: 0, err: /it responds again/ });
  test.match(JSON.parse((await call('task', 'list', '--json')).out), [{ identifier: 'T-1' }], 'and made once');
});

t.test('as a process: help, its statuses, and Ctrl-C', async (test) => {
  const { environment, call } = await setUp(test, app);
  const bin = path.join(root, 'scripts/command/business-runner.mjs');
  const env = bareEnvironment(environment);
  const run = (...argv: string[]) => {
    const child = spawn(process.execPath, [bin, '--no-env-file', ...argv], { env, stdio: ['ignore', 'pipe', 'pipe'] });
    const ended = Promise.all([once(child, 'close'), text(child.stdout)]);
    return { child, ended };
  };
  const help = spawnSync(process.execPath, [bin, '--help'], { env, encoding: 'utf8' });
  test.equal(help.status, 0);
  test.ok(help.stdout.split('\n').every((line) => line.length <= 80));
  for (const status of [0, 1, 2, 64, 66, 69, 75, 77, 130]) test.match(help.stdout, new RegExp(`\\b${status}\\b`));
  const [[missing]] = await run('task', 'show', 'T-1').ended;
  test.equal(missing, 66);
  const { child, ended } = run('task', 'create', 'Wait', '--wait');
  let err = '';
  child.stderr.on('data', (chunk) => {
    err += chunk;
  });
  await until('it waits', () => err.includes('T-1 is pending'));
  child.kill('SIGINT');
  const [[status]] = await ended;
  test.equal(status, 130);
  test.match(err, /\nbusiness-runner: T-1 continues: npx business-runner task wait T-1\n$/);
  test.match(JSON.parse((await call('task', 'show', 'T-1', '--json')).out), { status: 'pending' });
});
