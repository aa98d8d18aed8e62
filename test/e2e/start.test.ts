import path from 'node:path';
import t from 'tap';
import { isAlive } from '../../engine/process/identity.ts';
import { createEmptyDatabase } from '../support/database.ts';
import { openFolder } from '../support/folders.ts';
import { identities } from '../support/processes.ts';
import { processOf, start } from '../support/start.ts';
import { until } from '../support/wait.ts';

// What happens to its parts when some are killed: test/slow/e2e/start.test.ts.
t.setTimeout(240_000);

t.test('with DATABASE_URL it brings no Postgres, and a second Ctrl-C does not wait', async (test) => {
  const { url: databaseUrl } = await createEmptyDatabase(test);
  const started = start({
    DATA_DIR: path.join(await openFolder(test), '.data'),
    PORT: '0',
    DATABASE_URL: databaseUrl,
  });
  const url = await started.ready();
  test.equal((await fetch(`${url}/readyz`)).status, 200);
  test.match(started.stdout(), new RegExp(`^ +Database +${new URL(databaseUrl).host}/\\w+ \\(DATABASE_URL\\)$`, 'm'));
  test.match(
    started.stdout(),
    /^Bringing the database up to date …\nStarting the API and the jobs …\n\nBusiness Runner is ready\.\n/,
  );
  const processes = await started.tree();
  test.equal(processes.length, 3, 'start, jobs, API');
  const rest = identities(processes);

  // Jobs that cannot end now: a stop would wait for them.
  process.kill(await processOf(started, 'jobs/main.ts'), 'SIGSTOP');
  started.child.kill('SIGINT');
  await until('the API to end', async () => (await started.tree()).length < 3);
  await until('the second Ctrl-C to be another one', () => {
    started.child.kill('SIGINT');
    return started.child.exitCode !== null;
  });
  test.equal(await started.ended, 130);
  await until('all to end', () => !rest.some(isAlive));
});
