import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import t, { type Test } from 'tap';
import { shellWord } from '../../../scripts/command/output.ts';
import { DEMO_ORGANIZATION_ID } from '../../../scripts/demo/organization.ts';
import { bareEnvironment } from '../../support/environment.ts';
import { openFolder } from '../../support/folders.ts';
import { start } from '../../support/start.ts';
import { noTerminal, onTerminal } from '../../support/terminal.ts';

// Actions are executed by jobs: a whole npm start.
t.setTimeout(300_000);
const root = path.resolve(import.meta.dirname, '../../..');

async function startAll(t: Test) {
  const folder = await openFolder(t);
  const started = start({ DATA_DIR: folder, PORT: '0', ALLOW_PRIVATE_ADDRESSES: '1' });
  async function stop() {
    started.child.kill('SIGTERM');
    await started.ended;
  }
  t.teardown(stop);
  const url = await started.ready();
  const owner = (await readFile(path.join(folder, 'owner-token'), 'utf8')).trim();
  const argv = ['actions', '--no-env-file', '--url', url, '--token-file', path.join(folder, 'agent-service-token')];
  return { folder, stop, url, owner, argv: ['scripts/demo/main.ts', ...argv] };
}

t.test('whoever decides runs what the demo prints; its receipt is valid when nothing runs any more', async (t) => {
  const { folder, stop, url, owner, argv } = await startAll(t);
  async function demo(environment: NodeJS.ProcessEnv) {
    const child = spawn(process.execPath, argv, {
      cwd: root,
      env: bareEnvironment(environment),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    t.teardown(() => child.kill('SIGKILL'));
    const [out, err, [status]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
    return { status, out, err };
  }

  t.match(await demo({}), {
    status: 1,
    err: /^demo: whoever approves needs a token: set BUSINESS_RUNNER_OWNER_TOKEN\.\n$/,
  });
  const { status, out, err } = await demo({ BUSINESS_RUNNER_OWNER_TOKEN: owner });
  t.equal(status, 0, err + out);
  t.match(out, /T-1 {2}proposes: Call the tool returns\.create of 127\.0\.0\.1:\d+ with /);
  for (const line of ['T-1  waits for its actions', 'you approve it', 'the action is succeeded', 'T-1  is completed']) {
    t.ok(out.includes(line), line);
  }
  t.match(out, /without a network:\nvalid\n {2}key /);
  t.match(out, /created the integration demo-returns [^\n]*\n[^\n]*agents may read its orders/);
  t.match(out, /\n {2}decision {2}approved by whoever holds an owner’s token,/);
  t.match(out, / Read \d+ orders: \S+ has \d+ of /);
  t.match(out, /T-1 {2}is completed: Booked the return of 2 of .+ \(order \S+\)\n/);
  t.match(out, /deleted demo-returns/);
  const response = await fetch(`${url}/organizations/${DEMO_ORGANIZATION_ID}/integrations`);
  t.same(((await response.json()) as { data: unknown[] }).data, []);

  await t.test('on a terminal it waits', { skip: noTerminal() }, async (t) => {
    const settings = { NO_COLOR: '1', npm_config_progress: 'false' };
    const env = bareEnvironment({ ...settings, BUSINESS_RUNNER_OWNER_TOKEN: owner });
    const line = [process.execPath, ...argv].map(shellWord).join(' ');
    const waiting = onTerminal(t, line, root, env);
    const [, approve = '', id = ''] = await waiting.shows(
      / runs: (npx business-runner actions approve ([0-9a-f]{8}) --org \S+ --url \S+)\n/,
    );
    await waiting.shows(/press Enter to approve it here, or approve it in another terminal\n/);
    // The end of its input is no approval.
    waiting.endInput();

    const deciding = onTerminal(t, approve, root, env);
    await deciding.shows(/\n {2}does {6}Call the tool returns\.create [\s\S]*Approve this\? Type yes: /);
    t.notMatch(waiting.screen(), /you approve it/);
    deciding.type('yes\n');
    deciding.endInput();
    t.equal(await deciding.ended, 0, deciding.screen());
    t.match(deciding.screen(), /\napproved: Call the tool returns\.create /);

    t.equal(await waiting.ended, 0, waiting.screen());
    t.notMatch(waiting.screen(), /you approve it/);
    t.match(waiting.screen(), / {2}is completed: Booked the return of 2 of .+ \(order \S+\)\n/);
    t.match(waiting.screen(), /without a network:\nvalid\n {2}key /);

    async function run(command: string) {
      const running = onTerminal(t, command, root, env);
      running.endInput();
      t.equal(await running.ended, 0, running.screen());
      return running.screen();
    }
    const place = approve.slice(approve.indexOf(' --org'));
    const [receipt, keys] = [path.join(folder, 'receipt.json'), path.join(folder, 'keys.json')];
    await run(`npx business-runner actions receipt ${id}${place} > ${shellWord(receipt)}`);
    const set = await fetch(`${url}/.well-known/business-runner-keys.json`);
    await writeFile(keys, await set.text());
    await stop();
    await t.rejects(fetch(url), 'nothing responds any more');
    const verified = await run(`npx business-runner receipt verify ${shellWord(receipt)} --keys ${shellWord(keys)}`);
    t.match(verified, new RegExp(`valid\n[\\s\\S]* {2}action {4}[0-9a-f-]+${id} of the organization\\s`));
    t.match(verified, /\n {2}result {4}succeeded, /);
  });
});
