import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import t from 'tap';
import { setUp, startWithCatalog } from '../../../scripts/command/set_up.ts';
import { SERVICE_TOKEN } from '../../../support/app.ts';
import { bareEnvironment } from '../../../support/environment.ts';
import { openFolder } from '../../../support/folders.ts';
import { until } from '../../../support/wait.ts';

// Processes are started, and a machine that is busy takes its time.
t.setTimeout(240_000);
const root = path.resolve(import.meta.dirname, '../../../..');
const app = await startWithCatalog(t);

/** As the head of each file says. */
const AGENTS = {
  'agent.sh': './examples/agents/agent.sh',
  'agent.py': './examples/agents/agent.py',
  'agent.ts': 'node examples/agents/agent.ts',
};

for (const [name, exec] of Object.entries(AGENTS)) {
  t.test(`${name} asks, hears the answer, hands in its file and a summary, and replies`, async (test) => {
    const { call, begin, organizationId } = await setUp(test, app);
    const folder = await openFolder(test);
    const argv = ['--url', app.url, '--organization', organizationId, '--scratch', path.join(folder, 'runs')];
    const child = spawn(process.execPath, ['scripts/worker/main.ts', '--no-env-file', '--exec', exec, ...argv], {
      cwd: root,
      env: bareEnvironment({
        PATH: `${path.dirname(process.execPath)}:${process.env['PATH']}`,
        BUSINESS_RUNNER_SERVICE_TOKEN: SERVICE_TOKEN,
      }),
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    test.teardown(async () => {
      child.kill('SIGKILL');
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    });
    const input = path.join(root, 'examples/sales.csv');
    const waiting = begin('task', 'create', 'Write a letter', '--expect', 'out/letter.md', '--input', input, '--wait');
    await until('it asks', () => waiting.err().includes("npx business-runner inbox respond T-1 'the team'"));
    test.match(
      await call('inbox', 'respond', 'T-1', 'the customers,\nand\\n their friends', '--note', 'Soon\nplease'),
      { status: 0 },
    );
    const { status, out, err } = await waiting.ended;
    test.equal(status, 0, err);
    test.match(err, /^ {2}Writing out\/letter\.md$/m);
    test.match(out, / {2}summary {3}out\/letter\.md is written\.\n/);
    test.match(
      out,
      /\n {4}# Write a letter\n {4}\n {4}For the customers,\n {4}and\\n their friends\.\n {4}- read sales\.csv\n$/,
    );
    const named = await call('task', 'create', 'Write a haiku for the team', '--wait');
    test.match(named, {
      status: 0,
      out: /\nresult\.md:\n {4}# Write a haiku for the team\n {4}\n {4}For the team\.\n$/,
    });
    test.match(await call('ask', 'Hello'), { status: 0, out: 'You wrote: Hello\n' });
    const planned = await call('task', 'create', 'Plan', '--initiative', '--wait');
    test.match(planned, { status: 2, out: /why {7}This agent does not plan/ });
  });
}
