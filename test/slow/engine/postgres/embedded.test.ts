import { fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import path from 'node:path';
import t, { type Test } from 'tap';
import { isRoot, ownerOf } from '../../../../engine/postgres/account.ts';
import { type PostgresOptions, startPostgres, throwAway } from '../../../../engine/postgres/embedded.ts';
import { identify, isAlive } from '../../../../engine/process/identity.ts';
import { openFolder } from '../../../support/folders.ts';
import { query } from '../../../support/postgres.ts';
import { childrenOf } from '../../../support/processes.ts';
import { until } from '../../../support/wait.ts';

// Clusters are made on a machine that is busy with other tests.
t.setTimeout(120_000);

async function optionsIn(test: Test): Promise<PostgresOptions> {
  return { cluster: path.join(await openFolder(test), 'postgres'), password: 'first one', settings: throwAway };
}

t.test('a cluster is made, keeps its data over a stop, and only the password opens it', async (test) => {
  const options = await optionsIn(test);
  const first = await startPostgres(options);
  await query(first.url, 'create table kept as select 1 as n');
  const wrong = new URL(first.url);
  wrong.password = 'wrong';
  await test.rejects(query(wrong.href, 'select 1'), { code: '28P01' });
  await test.rejects(startPostgres(options), { name: 'LockedError', pid: process.pid }, 'nobody else may start it');
  await first.stop();
  await first.stop();
  test.notOk(existsSync(path.join(options.cluster, 'postmaster.pid')));
  const second = await startPostgres({ ...options, port: first.port });
  test.equal(second.url, first.url);
  test.same(await query(second.url, `select n, lower('ÄÖ') as l, current_setting('fsync') as fsync from kept`), [
    { n: 1, l: 'äö', fsync: 'off' },
  ]);
  await second.stop();
});

t.test('a cluster keeps its port, and takes another one where somebody else has it', async (test) => {
  const options = await optionsIn(test);
  const first = await startPostgres(options);
  await first.stop();
  const second = await startPostgres(options);
  test.equal(second.port, first.port);
  await second.stop();
  const other = createServer();
  await once(other.listen(first.port, '127.0.0.1'), 'listening');
  const third = await startPostgres(options);
  test.not(third.port, first.port);
  test.same(await query(third.url, 'select 1 as n'), [{ n: 1 }]);
  await third.stop();
  other.close();
});

t.test('a lost password is set anew', async (test) => {
  const options = await optionsIn(test);
  await (await startPostgres(options)).stop();
  const postgres = await startPostgres({ ...options, password: "it's new", resetPassword: true });
  test.same(await query(postgres.url, 'select 1 as n'), [{ n: 1 }]);
  await postgres.stop();
});

t.test('the rest of an interrupted creation does not stand in the way', async (test) => {
  const options = await optionsIn(test);
  await mkdir(`${options.cluster}.new`);
  await writeFile(path.join(`${options.cluster}.new`, 'PG_VERSION'), 'half');
  await writeFile(`${options.cluster}.password`, 'old');
  const postgres = await startPostgres(options);
  await postgres.stop();
  test.notOk(existsSync(`${options.cluster}.new`));
  test.notOk(existsSync(`${options.cluster}.password`));
});

t.test('a cluster of another major version is refused', async (test) => {
  const options = await optionsIn(test);
  await mkdir(options.cluster);
  await writeFile(path.join(options.cluster, 'PG_VERSION'), '13\n');
  await test.rejects(startPostgres(options), { message: /is of Postgres 13, and this is Postgres 18$/ });
});

t.test('after SIGKILL it starts again and has what was committed', async (test) => {
  const options = { ...(await optionsIn(test)), settings: {} };
  const first = await startPostgres(options);
  await query(first.url, 'create table kept as select 1 as n');
  process.kill(first.pid, 'SIGKILL');
  await first.ended;
  const second = await startPostgres({ ...options, port: first.port });
  test.same(await query(second.url, 'select n from kept'), [{ n: 1 }]);
  await second.stop();
});

t.test('a recycled number in the pid file neither stops the start nor the process that has it now', async (test) => {
  const options = await optionsIn(test);
  const first = await startPostgres(options);
  const pidFile = path.join(options.cluster, 'postmaster.pid');
  const text = await readFile(pidFile, 'utf8');
  await first.stop();
  // The same account, so that Postgres itself takes the process for another postmaster.
  const account = isRoot() ? { uid: ownerOf(options.cluster).uid } : {};
  const other = spawn('sleep', ['60'], account);
  await once(other, 'spawn');
  await writeFile(pidFile, text.replace(/^\d+/, String(other.pid)));
  const second = await startPostgres(options);
  test.equal(other.exitCode, null);
  test.equal(other.signalCode, null);
  await second.stop();
  other.kill();
});

/** Starts the cluster in a process of its own; tells the numbers of that process, the guard and Postgres. */
async function startElsewhere(test: Test, options: PostgresOptions) {
  const script = path.join(
    test.testdir({
      'run.ts': `
        import { startPostgres } from '${path.resolve(import.meta.dirname, '../../../../engine/postgres/embedded.ts')}';
        const postgres = await startPostgres(${JSON.stringify(options)});
        process.send(postgres.pid);`,
    }),
    'run.ts',
  );
  const child = fork(script);
  const [pid] = (await once(child, 'message')) as [number];
  const postgres = identify(pid);
  if (!postgres) throw new Error('it does not run');
  return { child, postgres };
}

t.test('a killed parent takes Postgres with it', async (test) => {
  const { child, postgres } = await startElsewhere(test, await optionsIn(test));
  child.kill('SIGKILL');
  await until('Postgres to end', () => !isAlive(postgres));
});

t.test('an orphan, left when the guard was killed too, is ended by the next start', async (test) => {
  const options = await optionsIn(test);
  const { child, postgres } = await startElsewhere(test, options);
  for (const pid of await childrenOf(child.pid ?? 0)) if (pid !== postgres.pid) process.kill(pid, 'SIGKILL');
  child.kill('SIGKILL');
  await once(child, 'exit');
  test.ok(isAlive(postgres), 'it is an orphan now');
  const next = await startPostgres(options);
  test.notOk(isAlive(postgres));
  test.same(await query(next.url, 'select 1 as n'), [{ n: 1 }]);
  await next.stop();
});
