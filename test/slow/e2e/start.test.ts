import { execFile } from 'node:child_process';
import { readFile, stat } from 'node:fs/promises';
import { createServer } from 'node:net';
import path from 'node:path';
import { promisify } from 'node:util';
import t, { type Test } from 'tap';
import { identify, isAlive } from '../../../engine/process/identity.ts';
import { bareEnvironment } from '../../support/environment.ts';
import { openFolder } from '../../support/folders.ts';
import { identities, treeOf } from '../../support/processes.ts';
import { processOf, type Started, start } from '../../support/start.ts';
import { until } from '../../support/wait.ts';

t.setTimeout(240_000);
const STOP_WITHIN_MS = 10_000;
const root = path.resolve(import.meta.dirname, '../../..');
/** What a shell may hold for another database, and an embedded one must not be asked for. */
const LIBPQ = {
  ...{ PGSSLMODE: 'require', PGOPTIONS: '-c nonsense=1', PGHOST: 'nowhere.invalid', PGHOSTADDR: '192.0.2.1' },
  ...{ PGPORT: '1', PGUSER: 'nobody', PGDATABASE: 'nothing', PGPASSWORD: 'wrong', PGSERVICE: 'nothing' },
};

function kill(pids: readonly number[]): void {
  for (const pid of pids) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It ended already.
    }
  }
}

async function stop(test: Test, started: Started): Promise<void> {
  const processes = identities(await started.tree());
  test.ok(processes.length >= 5, 'start, Postgres and its guard, jobs, API');
  const at = Date.now();
  started.child.kill('SIGTERM');
  test.equal(await started.ended, 0);
  test.ok(Date.now() - at < STOP_WITHIN_MS, 'within ten seconds');
  test.same(processes.filter(isAlive), [], 'no process is left');
}

async function responds(url: string, status: number): Promise<boolean> {
  try {
    return (await fetch(url)).status === status;
  } catch {
    return false;
  }
}

t.test('it starts, refuses a second start, and whatever is killed, runs again', async (test) => {
  const dataDir = path.join(await openFolder(test), '.data');
  const settings = { DATA_DIR: dataDir, PORT: '0', ...LIBPQ };
  const first = start(settings);
  const url = await first.ready();
  test.equal((await fetch(`${url}/readyz`)).status, 200);
  const jobsUrl = /^ +Health .* (http\S+)\/readyz \(jobs\)/m.exec(first.stdout())?.[1];
  test.same(await (await fetch(`${jobsUrl}/readyz`)).json(), { status: 'ready' });
  for (const one of [url, jobsUrl]) test.equal((await fetch(`${one}/metrics`)).status, 200);

  const report = promisify(execFile)(process.execPath, ['scripts/report.ts', '--no-env-file', 'throughput'], {
    cwd: root,
    env: bareEnvironment(settings),
  });
  test.match(await report, { stderr: '' }, 'its database is reported on');

  const tokenFile = path.join(dataDir, 'agent-service-token');
  const token = (await readFile(tokenFile, 'utf8')).trim();
  test.match(token, /^[0-9a-f]{64}$/);
  const adminFile = path.join(dataDir, 'admin-token');
  for (const file of [tokenFile, adminFile, path.join(dataDir, 'database-passwords.json')]) {
    test.equal((await stat(file)).mode & 0o777, 0o600, `${path.basename(file)} is ours alone`);
  }
  test.match(first.stdout(), 'agent-service-token', 'the screen names the file');
  test.notMatch(first.stdout(), token, 'and not the token');
  const passwords = Object.values(JSON.parse(await readFile(path.join(dataDir, 'database-passwords.json'), 'utf8')));
  for (const password of passwords) test.notMatch(first.stdout(), password);
  const accepted = await fetch(`${url}/internal/run-requests/pull`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ workerId: 'test', limit: 1, waitMs: 0 }),
  });
  test.equal(accepted.status, 200, 'the API takes the token');

  const admin = (await readFile(adminFile, 'utf8')).trim();
  test.match(first.stdout(), 'admin-token');
  test.notMatch(first.stdout(), admin);
  const asked = await fetch(`${url}/internal/admin/graphql`, {
    method: 'POST',
    headers: { authorization: `Bearer ${admin}`, 'content-type': 'application/json' },
    body: JSON.stringify({ query: '{ organizations { nodes { id } } }' }),
  });
  test.same(await asked.json(), { data: { organizations: { nodes: [] } } }, 'and the administration its own');

  const refused = start(settings);
  test.equal(await refused.ended, 1);
  test.match(
    refused.stderr(),
    new RegExp(`^Business Runner already runs on ${dataDir}, as process ${first.child.pid}: .*\\n$`),
  );
  test.equal((await fetch(`${url}/readyz`)).status, 200, 'the first one does not notice');

  // Parts: the supervisor starts them again, where they were.
  kill([await processOf(first, 'api/main.ts')]);
  await until('the API to come back', () => first.stdout().includes('api is running again'));
  await until('readiness', () => responds(`${url}/readyz`, 200));
  kill([await processOf(first, `postgres -D ${dataDir}`)]);
  await until('Postgres to come back', () => first.stdout().includes('Postgres is running again'));
  await until('readiness', () => responds(`${url}/readyz`, 200));

  // Everything but Postgres, guard included: it is an orphan, with a stale lock and pid file.
  const postgres = identify(await processOf(first, `postgres -D ${dataDir}`));
  if (!postgres) throw new Error('Postgres does not run');
  const orphans = await treeOf(postgres.pid);
  // It would stop Postgres if it saw the end of the supervisor before its own.
  process.kill(await processOf(first, 'read -r'), 'SIGSTOP');
  kill((await first.tree()).filter((pid) => !orphans.includes(pid)));
  await first.ended;
  test.ok(isAlive(postgres), 'Postgres is an orphan');
  const second = start(settings);
  await second.ready();
  test.notOk(isAlive(postgres), 'the orphan has ended');

  // The supervisor alone: the others do not outlive it.
  const rest = identities(await second.tree());
  second.child.kill('SIGKILL');
  await until('all to end', () => !rest.some(isAlive));

  // Everything, Postgres included.
  const third = start(settings);
  await third.ready();
  kill(await third.tree());
  await third.ended;
  const fourth = start(settings);
  const there = await fourth.ready();

  // The reader of its screen goes, as in `npm start 2>&1 | head -40`: the restart of a part has lines to print.
  fourth.child.stdout?.destroy();
  fourth.child.stderr?.destroy();
  const before = await processOf(fourth, 'api/main.ts');
  kill([before]);
  await until('the API to come back', async () => {
    if (fourth.child.exitCode !== null) throw new Error(`npm start ended with ${fourth.child.exitCode}`);
    return (await responds(`${there}/readyz`, 200)) && (await processOf(fourth, 'api/main.ts')) !== before;
  });
  await stop(test, fourth);
});

t.test('a wrong setting ends the start with one line that names it', async (test) => {
  const dataDir = path.join(await openFolder(test), '.data');
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const taken = typeof address === 'object' && address !== null ? String(address.port) : '';
  const wrong = [
    [{ PORT: 'many' }, /^PORT: must be a whole number\n$/],
    [{ HOST: '0.0.0.0' }, /^OWNER_AUTH: open is only allowed while HOST is a loopback address.*\n$/],
    [{ AGENT_SERVICE_TOKENS: 'short' }, /^AGENT_SERVICE_TOKENS: each token needs at least 32 characters\n$/],
    [{ PORT: taken }, new RegExp(`^PORT: another program listens on 127\\.0\\.0\\.1:${taken}; .*\\n$`)],
    [{ DATA_DIR: '/proc/nowhere' }, /^DATA_DIR: \/proc\/nowhere cannot be used: .*\n$/],
  ] as const;
  await Promise.all(
    wrong.map(async ([settings, message], index) => {
      const started = start({ DATA_DIR: `${dataDir}${index}`, PORT: '0', ...settings });
      test.equal(await started.ended, 78, Object.keys(settings).join());
      test.match(started.stderr(), message);
      test.equal(started.stdout(), '');
    }),
  );
  const misspelt = start({ DATA_DIR: dataDir }, ['--prot']);
  test.equal(await misspelt.ended, 64);
  test.equal(misspelt.stderr(), 'npm start: unknown option --prot; see npm start -- --help\n');
  await new Promise((resolve) => server.close(resolve));
  const unreachable = start({
    DATA_DIR: dataDir,
    PORT: '0',
    DATABASE_URL: `postgres://me:secret@127.0.0.1:${taken}/x`,
  });
  test.equal(await unreachable.ended, 1);
  test.match(unreachable.stderr(), /^cannot connect to Postgres at 127\.0\.0\.1:\d+\/x as me: .*\n$/);
  test.notMatch(unreachable.stderr(), 'secret');
});
