import { homedir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import t from 'tap';
import { ConfigError, readConfig } from '../../engine/config.ts';
import { MigrateError, migrate } from '../../engine/db/migrate.ts';
import { roleUrl } from '../../engine/db/pool.ts';
import { connectionProblem, withoutLibpq } from '../../engine/libpq.ts';
import { createTestDatabase } from '../support/database.ts';

const database = await createTestDatabase(t);
const URL_ = 'postgres://me@host.example/d';

const read = (environment: NodeJS.ProcessEnv, url = URL_) => readConfig({ DATABASE_URL: url, ...environment });
const urlOf = (environment: NodeJS.ProcessEnv, url = URL_) => read(environment, url).databaseUrl ?? '';

t.test('libpq’s environment counts where DATABASE_URL does not say it', async (test) => {
  test.equal(urlOf({}), URL_);
  test.equal(urlOf({ PGSSLMODE: 'require' }), `${URL_}?sslmode=require&uselibpqcompat=true`);
  for (const mode of ['disable', 'allow', 'prefer']) {
    test.equal(urlOf({ PGSSLMODE: mode }), `${URL_}?sslmode=disable`, 'it promises nothing');
  }
  const said = `${URL_}?sslmode=verify-full`;
  test.equal(urlOf({ PGSSLMODE: 'disable' }, said), said);
  const file = path.join(test.testdir({ 'root.crt': 'x' }), 'root.crt');
  test.equal(new URL(urlOf({ PGSSLMODE: 'verify-ca', PGSSLROOTCERT: file })).searchParams.get('sslrootcert'), file);
  test.notMatch(urlOf({ PGSSLMODE: 'verify-full', PGSSLROOTCERT: 'system' }), 'sslrootcert');
  const config = readConfig({
    ...{ DATABASE_URL: URL_, LISTEN_DATABASE_URL: 'postgres://l/d', ADMIN_DATABASE_URL: 'postgres://a/d' },
    PGSSLMODE: 'require',
  });
  for (const url of [config.databaseUrl, config.listenDatabaseUrl, config.adminDatabaseUrl]) {
    test.match(url, 'sslmode=require');
  }
});

t.test('TLS means what it means to libpq', async (test) => {
  const tlsOf = (environment: NodeJS.ProcessEnv) => {
    const { ssl } = new pg.Client({ connectionString: urlOf(environment) }) as unknown as { ssl: unknown };
    return ssl;
  };
  test.same(tlsOf({ PGSSLMODE: 'require' }), { rejectUnauthorized: false });
  test.same(tlsOf({ PGSSLMODE: 'verify-full' }), {});
  test.equal(tlsOf({ PGSSLMODE: 'prefer' }), false);
});

t.test('options of the environment and ours count both', async (test) => {
  const url = urlOf({ PGOPTIONS: '-c work_mem=5MB -c statement_timeout=1' }, database.url);
  const client = new pg.Client({ connectionString: roleUrl(url, { role: 'runner_api' }) });
  await client.connect();
  test.teardown(() => client.end());
  const { rows } = await client.query(`select current_setting('work_mem') as w, current_user as u,
    current_setting('statement_timeout') as t`);
  test.same(rows, [{ w: '5MB', u: 'runner_api', t: '30s' }]);
});

t.test('what cannot be followed is refused, and named', async (test) => {
  for (const [environment, message] of [
    [{ PGSSLMODE: 'on' }, /^PGSSLMODE: must be disable, /],
    [{ PGSSLMODE: 'verify-ca' }, /^PGSSLROOTCERT: a file is required by PGSSLMODE=verify-ca$/],
    [{ PGSSLMODE: 'require', PGSSLCERT: '/nowhere' }, /^PGSSLCERT: \/nowhere cannot be read: ENOENT/],
    [{ PGPORT: 'many' }, /^PGPORT: must be a port$/],
    [{ PGSERVICE: 'x' }, /^PGSERVICE: is not known here/],
    [{ PGHOSTADDR: '10.0.0.1' }, /^PGHOSTADDR: /],
    [{ PGCHANNELBINDING: 'require' }, /^PGCHANNELBINDING: /],
  ] as const) {
    test.throws(() => read(environment), { name: ConfigError.name, message });
  }
  test.doesNotThrow(() => read({ PGCHANNELBINDING: 'prefer', PGPORT: '', PGUSER: 'x', PGDATABASE: 'y' }));
});

t.test('what the database refuses names the setting', async (test) => {
  for (const [environment, message] of [
    [{ PGSSLMODE: 'require' }, /does not support SSL connections \(by sslmode in DATABASE_URL, or PGSSLMODE\)$/],
    [{ PGOPTIONS: '-c nonsense=1' }, /parameter "nonsense" \(by options in DATABASE_URL, or PGOPTIONS\)$/],
    [{ PGOPTIONS: '-z' }, /\(by options in DATABASE_URL, or PGOPTIONS\)$/],
  ] as const) {
    await test.rejects(migrate(urlOf(environment, database.url)), { name: MigrateError.name, message });
  }
  test.match(
    connectionProblem(new Error('no pg_hba.conf entry for host "::1", no encryption')),
    /PGSSLMODE, may ask for TLS/,
  );
  test.equal(connectionProblem(new AggregateError([new Error('connect ECONNREFUSED')])), 'connect ECONNREFUSED');
});

t.test('an embedded database has nothing of it', async (test) => {
  const kept = { PATH: 'x', PSQLRC: 'y', DATABASE_URL: 'z' };
  test.same(withoutLibpq({ ...kept, PGHOST: 'a', PGSSLMODE: 'require', PGOPTIONS: 'b', PGTZ: 'c' }), kept);
});

t.test('~ in DATA_DIR is the home folder, as a shell reads it', async (test) => {
  test.equal(readConfig({ DATA_DIR: '~/data' }).dataDir, path.join(homedir(), 'data'));
  test.equal(readConfig({ DATA_DIR: '~' }).dataDir, homedir());
  test.equal(readConfig({ DATA_DIR: 'a~/b' }).dataDir, path.resolve('a~/b'));
  test.throws(() => readConfig({ DATA_DIR: '~someone/data' }), {
    message: /^DATA_DIR: the home folder of another user/,
  });
});
