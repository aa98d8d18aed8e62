import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import t from 'tap';
import { analystName, ask, loginUrl, openReporting } from '../../support/analysts.ts';
import { bareEnvironment } from '../../support/environment.ts';
import { createTestOrganization } from '../../support/fixtures.ts';
import { transition } from '../../support/transitions.ts';

t.setTimeout(180_000);
const root = path.resolve(import.meta.dirname, '../../..');
const sql = await openReporting(t);
const folder = await mkdtemp(path.join(tmpdir(), 'analyst-test-'));
t.teardown(() => rm(folder, { recursive: true, force: true }));
const { organizationId } = await createTestOrganization(sql);
const other = await createTestOrganization(sql);

async function run(argv: readonly string[], env: NodeJS.ProcessEnv = { DATABASE_URL: sql.url }) {
  const child = spawn(process.execPath, ['scripts/analyst.ts', '--no-env-file', ...argv], {
    cwd: root,
    env: bareEnvironment(env),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [out, err, [status]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')]);
  return { status, out, err };
}

t.test('a login is made, listed, given more and removed by the command', async (test) => {
  const name = analystName();
  test.match(await run(['list']), { status: 0, out: 'there are no analysts\n' });
  const added = await run(['add', name, '--organization', organizationId]);
  test.match(added, { status: 0, err: '' });
  const password = /^password, shown this once: ([\w-]{43})$/m.exec(added.out)?.[1] ?? '';
  test.match(added.out, new RegExp(`^${name} reads ${organizationId}\n`));
  test.match(added.out, new RegExp(`^psql "host=127.0.0.1 port=\\d+ dbname=test_\\w+ user=${name}"$`, 'm'));
  const url = loginUrl(sql.url, name, password);
  test.equal((await ask(url, 'select organization_id from organizations')).out.trim(), organizationId);

  const { rows } = await sql.owner.query('select slug from app.organizations where id = $1', [other.organizationId]);
  const more = await run(['add', name, '--organization', rows[0].slug, '--organization', organizationId]);
  test.match(more, { status: 0, out: /the login was there already and keeps its password/ });
  test.notMatch(more.out, /password, shown/);
  test.equal((await ask(url, 'select count(*) from organizations')).out.trim(), '2');
  test.match(await run(['list']), { status: 0, out: new RegExp(`^${name} +o-\\S+, o-\\S+\n$`) });
  test.match(await run(['add', name, '--all']), { status: 0, out: `${name} reads every organization\n` });
  test.match(await run(['list']), { status: 0, out: /every organization\n$/ });

  test.match(await run(['remove', name]), { status: 0, out: `removed ${name}\n` });
  test.match(await run(['remove', name]), { status: 1, err: `there is no analyst ${name}\n` });
});

t.test('what an earlier login of the name was given is taken, and the one that has it now stays', async (test) => {
  const name = analystName();
  await transition(sql.owner, 'analyst_grant', { login: name, organizationIds: [], all: true, fresh: true });
  await sql.owner.query(`create role ${name} login in role runner_analyst`);
  test.match(await run(['list']), { status: 0, out: new RegExp(`^${name} .*\\(its login is gone: `) });
  const taken = await run(['remove', name]);
  test.match(taken, {
    status: 0,
    err: '',
    out: /^took from \w+ what an earlier login of the name was given; .* stays\n$/,
  });
  test.match(await run(['list']), { status: 0, out: 'there are no analysts\n' });
  test.match(await run(['remove', name]), { status: 0, out: `removed ${name}\n` });
});

t.test('the password goes into a file of its own, for nobody else to read', async (test) => {
  const name = analystName();
  const file = path.join(folder, 'password');
  const added = await run(['add', name, '--all', '--password-file', file]);
  test.match(added, { status: 0, out: `the password is in ${file}` });
  const password = (await readFile(file, 'utf8')).trim();
  test.equal((await stat(file)).mode & 0o777, 0o600);
  test.notMatch(added.out, password);
  test.equal((await ask(loginUrl(sql.url, name, password), 'select 1')).out.trim(), '1');
  const again = await run(['add', analystName(), '--all', '--password-file', file]);
  test.match(again, { status: 1, err: `${file} exists already\n` });
  await run(['remove', name]);
  const failed = path.join(folder, 'failed');
  const unknown = ['--organization', '00000000-0000-4000-8000-000000000000', '--password-file', failed];
  test.match(await run(['add', analystName(), ...unknown]), { status: 1, err: /^There is no organization 00000000-/ });
  await test.rejects(stat(failed), { code: 'ENOENT' });
  const nowhere = await run(['add', name, '--all', '--password-file', path.join(failed, 'password')]);
  test.match(nowhere, { status: 1, err: /^the password cannot be written: ENOENT.*\n$/ });
  test.match(await run(['list']), { out: 'there are no analysts\n' });
});

t.test('what is no command, and what cannot be, is said in a line', async (test) => {
  const usage = { status: 64, out: /npm run analyst -- COMMAND/ };
  for (const argv of [[], ['add', 'a'], ['add', 'a', '--all', '--organization', organizationId], ['list', '--all']]) {
    test.match(await run(argv), usage, argv.join(' '));
  }
  const both = await run(['add', 'a', '--all', '--organization', organizationId]);
  test.equal(both.err, '--all is every organization: leave --organization out, or --all\n');
  test.match(await run(['add', 'a']), { err: /^which organizations a is to read is said by .*\n$/ });
  test.match(await run(['--help']), { status: 0, out: usage.out });
  test.match(await run(['list', '--nonsense']), { status: 64 });
  test.match(await run(['add', 'runner_x', '--all']), { status: 1, err: /^"runner_x" is no name for an analyst.*\n$/ });
  test.match(await run(['add', 'a', '--organization', 'acme']), {
    status: 1,
    err: 'there is no organization acme\n',
  });
  test.match(await run(['list'], { DATA_DIR: folder }), { status: 1, err: /no Business Runner runs on / });
  const api = new URL(sql.url);
  api.pathname = '/nowhere';
  test.match(await run(['list'], { DATABASE_URL: api.href }), {
    status: 1,
    err: /^the database does not respond: .*\n$/,
  });
});

t.test('the dictionary that is printed is the one that is kept', async (test) => {
  const { status, out } = await run(['dictionary']);
  test.equal(status, 0);
  test.equal(out, await readFile(path.join(root, 'sql/reporting/README.md'), 'utf8'));
});
