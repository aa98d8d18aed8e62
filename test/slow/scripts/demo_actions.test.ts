import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import t from 'tap';
import { DEMO_ORGANIZATION_ID } from '../../../scripts/demo/organization.ts';
import { bareEnvironment } from '../../support/environment.ts';
import { openFolder } from '../../support/folders.ts';
import { start } from '../../support/start.ts';

// Actions are executed by jobs: a whole npm start.
t.setTimeout(300_000);
const root = path.resolve(import.meta.dirname, '../../..');

t.test(
  'an agent proposes, the action is approved and done, and its receipt is valid; then nothing is left',
  async (t) => {
    const folder = await openFolder(t);
    const settings = { DATA_DIR: folder, PORT: '0', ALLOW_PRIVATE_ADDRESSES: '1' };
    const started = start(settings);
    t.teardown(async () => {
      started.child.kill('SIGTERM');
      await started.ended;
    });
    const url = await started.ready();
    const owner = (await readFile(path.join(folder, 'owner-token'), 'utf8')).trim();

    async function demo(environment: NodeJS.ProcessEnv) {
      const argv = ['actions', '--no-env-file', '--url', url, '--token-file', path.join(folder, 'agent-service-token')];
      const child = spawn(process.execPath, ['scripts/demo/main.ts', ...argv], {
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
    const [, approve = ''] = /runs: npx business-runner (actions approve [0-9a-f]{8} --org \S+)\n/.exec(out) ?? [];
    t.match(approve, DEMO_ORGANIZATION_ID);
    for (const line of [
      'T-1  waits for its actions',
      'you approve it',
      'the action is succeeded',
      'T-1  is completed',
    ]) {
      t.ok(out.includes(line), line);
    }
    t.match(out, /without a network:\nvalid\n {2}key /);
    t.match(out, /\n {2}decision {2}approved by /);
    t.match(out, / Read \d+ orders: \S+ has \d+ of /);
    t.match(out, /T-1 {2}is completed: Booked the return of 2 of .+ \(order \S+\)\n/);
    t.match(out, /deleted demo-returns/);
    const response = await fetch(`${url}/organizations/${DEMO_ORGANIZATION_ID}/integrations`);
    t.same(((await response.json()) as { data: unknown[] }).data, []);
  },
);
