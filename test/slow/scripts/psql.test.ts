import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import t from 'tap';
import { bareEnvironment } from '../../support/environment.ts';
import { createTestOrganization } from '../../support/fixtures.ts';
import { openSql } from '../../support/transitions.ts';

t.setTimeout(180_000);
const root = path.resolve(import.meta.dirname, '../../..');
const skip = spawnSync('psql', ['--version']).status === 0 ? false : 'psql is not installed';
const sql = await openSql(t);
const first = await createTestOrganization(sql);
await createTestOrganization(sql);

async function psql(argv: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const child = spawn(process.execPath, ['scripts/psql.ts', '--no-env-file', ...argv], {
    cwd: root,
    env: bareEnvironment({ DATABASE_URL: sql.url, ...env }),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [out, err, [status]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')]);
  return { status, out, err };
}

const COUNT = ['--', '-Atc', 'select current_user, count(*) from organizations'];

t.test('psql is a session of the administration, which reads every organization', { skip }, async (test) => {
  test.same(await psql(COUNT), { status: 0, out: 'runner_admin|2\n', err: '' });
  const written = await psql(['--', '-Atc', `delete from tasks`]);
  test.match(written, { status: 1, err: /permission denied/ });
});

t.test('psql with the role of the API sees one tenant, and a superuser everything', { skip }, async (test) => {
  const tenant = await psql(['--role', 'api', '--organization', first.organizationId, ...COUNT]);
  test.same(tenant, { status: 0, out: 'runner_api|1\n', err: '' });
  const superuser = await psql(['--role', 'superuser', '--', '-Atc', 'select count(*) from organizations']);
  test.same(superuser, { status: 0, out: '2\n', err: '' });
});

t.test('a password is never on the command line of psql', { skip }, async (test) => {
  const inQuery = new URL(sql.url);
  inQuery.searchParams.set('password', decodeURIComponent(inQuery.password));
  inQuery.password = 'wrong';
  for (const url of [sql.url, inQuery.href]) {
    const { status, out, err } = await psql(['--', '-Atc', 'select 1', '-c', '\\! ps -ww -o args= -p $PPID'], {
      DATABASE_URL: url,
    });
    test.equal(status, 0, err);
    test.match(out, /^1\n.*psql --dbname postgres:/);
    test.notMatch(out, /password|:\w+@/);
  }
});

t.test('where no psql is installed, it says how to install it and how to connect without it', async (test) => {
  const missing = await psql([], { PATH: '' });
  test.equal(missing.status, 127);
  test.match(
    missing.err,
    /^psql is not installed\. .*\n.*\n {2}postgres:\/\/\w+:PASSWORD@127\.0\.0\.1:\d+\/test_\w+\n/,
  );
  test.notMatch(missing.err, `:${new URL(sql.url).password}@`);
});

t.test('a wrong command line is one line', async (test) => {
  test.match(await psql(['--role', 'root']), { status: 64, err: /^--role must be admin, .*--help\n$/ });
  test.match(await psql(['--organization', "x'"]), { status: 64, err: /^--organization must be a UUID/ });
  test.match(await psql(['--rule']), { status: 64, err: /--rule.*\n$/ });
  test.match(await psql(['--help']), { status: 0, out: /^npm run psql/ });
});
