import { mkdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { Logger, runOnce } from 'graphile-worker';
import pg from 'pg';
import t, { type Test } from 'tap';
import { MigrateError, migrate } from '../../../engine/db/migrate.ts';
import { roleUrl } from '../../../engine/db/pool.ts';
import { createEmptyDatabase, createTestDatabase, type EmptyDatabase } from '../../support/database.ts';
import { databaseUrl, execute, startTestServer } from '../../support/postgres.ts';

const FIRST = 'create table app.things (id int primary key);\ninsert into app.things values (1);\n';
const FUNCTION = `create or replace function app.thing_count(p_from int) returns int
  language sql stable
  as $$ select count(*)::int from app.things where id >= p_from $$;
`;
const ACCESS = { defaultOwner: 'migrating_login', owners: {}, execute: {} };

type Fixture = Readonly<{
  database: EmptyDatabase;
  sqlFolder: string;
  migrate: () => ReturnType<typeof migrate>;
  write: (file: string, text: string) => Promise<void>;
  remove: (file: string) => Promise<void>;
  functions: () => Promise<string[]>;
}>;

/** An empty database and a small sql folder of its own. */
async function prepare(test: Test): Promise<Fixture> {
  const database = await createEmptyDatabase(test);
  const sqlFolder = test.testdir({
    'roles.sql': '',
    migrations: { '000001_things.sql': FIRST },
    functions: { 'access.json': JSON.stringify(ACCESS), thing: { 'count.sql': FUNCTION } },
  });
  return {
    database,
    sqlFolder,
    migrate: () => migrate(database.url, { sqlFolder }),
    write: (file, text) => writeFile(path.join(sqlFolder, file), text),
    remove: (file) => rm(path.join(sqlFolder, file)),
    functions: async () => {
      const { rows } = await database.owner.query<{ name: string }>(
        `select oid::regprocedure::text as name from pg_proc where pronamespace = 'app'::regnamespace order by 1`,
      );
      return rows.map((row) => row.name);
    },
  };
}

async function refusal(test: Test, promise: Promise<unknown>, message: RegExp): Promise<void> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  test.ok(error instanceof MigrateError, 'refused as a MigrateError');
  test.match((error as Error).message, message);
  test.notMatch((error as Error).message, /\n/, 'in one line');
}

t.test('a second run finds nothing to do', async (test) => {
  const { migrate } = await prepare(test);
  test.same(await migrate(), { migrations: ['000001_things'], functions: true, views: false });
  test.same(await migrate(), { migrations: [], functions: false, views: false });
});

t.test('a migration that was changed after it was applied is refused', async (test) => {
  const { migrate, write } = await prepare(test);
  await migrate();
  await write('migrations/000001_things.sql', `${FIRST}-- later\n`);
  await refusal(test, migrate(), /^sql\/migrations\/000001_things\.sql was changed after it was applied/);
});

t.test('a database of a newer version is refused', async (test) => {
  const { migrate, write, remove } = await prepare(test);
  await write('migrations/000002_more.sql', 'create table app.more ();');
  await migrate();
  await remove('migrations/000002_more.sql');
  await refusal(test, migrate(), /has migration 000002_more, which this version does not know/);
});

t.test('a database from before 0.1 is told to begin anew, and is left as it is', async (test) => {
  const database = await createEmptyDatabase(test);
  await database.owner.query(`create schema app;
    create table app.schema_migrations (version int primary key, name text, sha256 text);
    insert into app.schema_migrations values (1, '000001_roles', ''), (117, '000117_statistics_of_documents', '')`);
  const before =
    /^the database was made before 0\.1 \(its first migration is 000001_roles\).*: begin anew with an empty one/;
  await refusal(test, migrate(database.url), before);
  const { rows } = await database.owner.query(
    `select relname from pg_class where relnamespace = 'app'::regnamespace and relkind = 'r'`,
  );
  test.same(rows, [{ relname: 'schema_migrations' }]);
});

t.test('a migration numbered below one that is applied is refused', async (test) => {
  const { migrate, write } = await prepare(test);
  await write('migrations/000003_third.sql', 'create table app.third ();');
  await migrate();
  await write('migrations/000002_late.sql', 'create table app.late ();');
  await refusal(test, migrate(), /000002_late\.sql is older than 000003_third/);
});

t.test('names without a number, numbers used twice and files that commit are refused', async (test) => {
  const { migrate, write, remove } = await prepare(test);
  await write('migrations/things.sql', 'select 1;');
  await refusal(test, migrate(), /the name must be NNNNNN_name\.sql/);
  await remove('migrations/things.sql');
  await write('migrations/000001_zebra.sql', 'select 1;');
  await refusal(test, migrate(), /000001_zebra\.sql: its number is that of 000001_things/);
  await remove('migrations/000001_zebra.sql');
  await write('migrations/000002_split.sql', 'create table app.half ();\ncommit;\n');
  await refusal(test, migrate(), /a file is one transaction/);
});

t.test('a failing migration leaves nothing half-made and names its line', async (test) => {
  const { database, migrate, write } = await prepare(test);
  await write('migrations/000002_broken.sql', 'create table app.half (id int);\n\ncreate table app.half (id int);\n');
  await refusal(test, migrate(), /^sql\/migrations\/000002_broken\.sql.*relation "half" already exists/);
  const { rows } = await database.owner.query(
    `select to_regclass('app.half') as half, array_agg(name) as applied from app.schema_migrations`,
  );
  test.same(rows, [{ half: null, applied: ['000001_things'] }], 'what was applied before it stays');
  await write('migrations/000002_broken.sql', 'create table app.half (id int);\nselect nothing;\n');
  await refusal(test, migrate(), /^sql\/migrations\/000002_broken\.sql:2: column "nothing" does not exist/);
  await write('migrations/000002_broken.sql', 'create table app.half (id int);\n');
  test.same((await migrate()).migrations, ['000002_broken'], 'once mended it is applied');
});

const SCHEMA = `create schema reporting;
grant usage on schema app, reporting to runner_report;
grant select on app.things to runner_report;
`;
const VIEW = 'create view reporting.things with (security_barrier) as select id from app.things;\n';

async function views(database: EmptyDatabase): Promise<unknown[]> {
  const { rows } = await database.owner.query(
    `select c.relname as name, c.relowner::regrole::text as owner,
       has_table_privilege('runner_analyst', c.oid, 'select') as read,
       (select string_agg(a.attname, ', ' order by a.attnum) from pg_attribute a where a.attrelid = c.oid) as columns
     from pg_class c where c.relnamespace = 'reporting'::regnamespace and c.relkind = 'v' order by 1`,
  );
  return rows;
}

t.test('reporting views are applied anew when one changed, and dropped when their file is gone', async (test) => {
  const { database, sqlFolder, migrate, write, remove } = await prepare(test);
  await mkdir(path.join(sqlFolder, 'reporting'));
  await write('migrations/000002_reporting.sql', SCHEMA);
  await write('reporting/things.sql', VIEW);
  test.match(await migrate(), { views: true });
  const things = { name: 'things', owner: 'runner_report', read: true, columns: 'id' };
  test.same(await views(database), [things]);
  test.match(await migrate(), { views: false });

  await write('reporting/things.sql', VIEW.replace('select id', 'select id + 0.5 as half, id'));
  await write('reporting/more.sql', VIEW.replace('reporting.things', 'reporting.more'));
  test.match(await migrate(), { views: true });
  test.same(await views(database), [
    { ...things, name: 'more' },
    { ...things, columns: 'half, id' },
  ]);

  await remove('reporting/things.sql');
  test.match(await migrate(), { views: true });
  test.same(await views(database), [{ ...things, name: 'more' }]);

  await database.owner.query('drop view reporting.more');
  test.match(await migrate(), { views: true }, 'one that a migration had to drop comes back');
  test.same(await views(database), [{ ...things, name: 'more' }]);
});

t.test(
  'a reporting view reads what its owner may read, or is refused with its line and leaves all as it was',
  async (test) => {
    const { database, sqlFolder, migrate, write } = await prepare(test);
    await mkdir(path.join(sqlFolder, 'reporting'));
    await write('migrations/000002_reporting.sql', `${SCHEMA}create table app.secrets ();\n`);
    await write('reporting/things.sql', VIEW);
    await migrate();
    await write('reporting/broken.sql', 'create view reporting.broken as\nselect nothing;\n');
    await refusal(test, migrate(), /^sql\/reporting\/broken\.sql:2: column "nothing" does not exist/);
    await write(
      'reporting/broken.sql',
      'create table reporting.broken ();\nalter table app.secrets add column id int;\n',
    );
    await refusal(test, migrate(), /^sql\/reporting\/broken\.sql.* must be owner of table secrets/);
    test.same((await views(database)).length, 1);
  },
);

t.test('a changed argument list leaves no overload behind', async (test) => {
  const { migrate, write, functions } = await prepare(test);
  await migrate();
  test.same(await functions(), ['app.thing_count(integer)']);
  const changed = FUNCTION.replace('p_from int', 'p_from int, p_to int default 9');
  await write('functions/thing/count.sql', changed);
  test.same(await migrate(), { migrations: [], functions: true, views: false });
  test.same(await functions(), ['app.thing_count(integer,integer)']);
  await write('functions/thing/count.sql', FUNCTION);
  await migrate();
  test.same(await functions(), ['app.thing_count(integer)']);
});

t.test('a changed return type or parameter name replaces the function', async (test) => {
  const { database, migrate, write, functions } = await prepare(test);
  await migrate();
  await write('functions/thing/count.sql', FUNCTION.replace('returns int', 'returns bigint'));
  await migrate();
  test.same((await database.owner.query('select pg_typeof(app.thing_count(0))::text as type')).rows, [
    { type: 'bigint' },
  ]);
  await write('functions/thing/count.sql', FUNCTION.replaceAll('p_from', 'p_first'));
  await migrate();
  test.same((await database.owner.query('select app.thing_count(p_first => 1) as count')).rows, [{ count: 1 }]);
  test.same(await functions(), ['app.thing_count(integer)']);
});

t.test('the function of a removed file is dropped, that of a migration stays', async (test) => {
  const { migrate, write, remove, functions } = await prepare(test);
  await write('migrations/000002_kept.sql', "create function app.kept() returns int language sql as 'select 1';");
  await write('functions/other.sql', FUNCTION.replaceAll('thing_count', 'thing_other'));
  await migrate();
  test.same(await functions(), ['app.kept()', 'app.thing_count(integer)', 'app.thing_other(integer)']);
  await remove('functions/other.sql');
  await migrate();
  test.same(await functions(), ['app.kept()', 'app.thing_count(integer)']);
});

t.test(
  'the function of a trigger is there before the migration that names it, and changes after the migrations',
  async (test) => {
    const { database, sqlFolder, migrate, write, remove, functions } = await prepare(test);
    const keep = (body: string) => `create or replace function app.things_keep() returns trigger language plpgsql
    as $$ begin ${body} end $$;\n`;
    const trigger = `create trigger things_keep before insert on app.things
    for each row execute function app.things_keep();\n`;
    await mkdir(path.join(sqlFolder, 'triggers', 'thing'), { recursive: true });
    await write('triggers/access.json', JSON.stringify({ ...ACCESS, defaultOwner: 'runner_scoped' }));
    await write('triggers/thing/things_keep.sql', keep('return new;'));
    await write('migrations/000002_keep.sql', trigger);
    test.match(await migrate(), { migrations: ['000001_things', '000002_keep'], functions: true });
    const insert = (id: number) => database.owner.query('insert into app.things values ($1)', [id]);
    await insert(2);
    // What its text is now says of a column that this migration makes.
    await write(
      'migrations/000003_kind.sql',
      `alter table app.things add kind text; insert into app.things values (3);\n`,
    );
    await write('triggers/thing/things_keep.sql', keep(`new.kind := 'kept'; return new;`));
    test.match(await migrate(), { migrations: ['000003_kind'], functions: true });
    await insert(4);
    const { rows } = await database.owner.query('select * from app.things order by id');
    test.same(
      rows.map((row) => row.kind),
      [null, null, null, 'kept'],
    );
    await write('migrations/000004_free.sql', 'drop trigger things_keep on app.things;');
    await remove('triggers/thing/things_keep.sql');
    await remove('triggers/access.json');
    test.match(await migrate(), { migrations: ['000004_free'], functions: true });
    test.same(await functions(), ['app.thing_count(integer)']);
  },
);

t.test('a failing function file leaves all functions as they were', async (test) => {
  const { database, migrate, write } = await prepare(test);
  await migrate();
  await write('functions/a.sql', FUNCTION.replaceAll('thing_count', 'thing_new'));
  await write('functions/thing/count.sql', 'create or replace function app.thing_count() returns nonsense as 1;');
  await refusal(test, migrate(), /^sql\/functions\/thing\/count\.sql:1: /);
  const { rows } = await database.owner.query(
    `select app.thing_count(0) as count, to_regproc('app.thing_new') as fresh`,
  );
  test.same(rows, [{ count: 1, fresh: null }]);
});

t.test('functions have the owner, the search path and the rights that are declared, and no others', async (test) => {
  const { database, migrate, write } = await prepare(test);
  const declare = async (access: unknown) => {
    await write('functions/access.json', JSON.stringify(access));
    return migrate();
  };
  const catalog = async () => {
    const { rows } = await database.owner.query(
      `select p.proowner::regrole::text as owner, p.proconfig as config,
         array(select case a.grantee when 0 then 'public' else a.grantee::regrole::text end
           from aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a order by 1) as executes
       from pg_proc p where p.oid = 'app.thing_count(int)'::regprocedure`,
    );
    return rows[0];
  };
  const config = ['search_path=pg_catalog, pg_temp'];
  await migrate();
  test.same(await catalog(), { owner: 'postgres', config, executes: ['postgres'] }, 'the migrating login keeps it');
  const grants = { runner_api: { thing: ['thing_count'] }, runner_jobs: { thing: ['thing_count'] } };
  test.match(await declare({ ...ACCESS, defaultOwner: 'runner_scoped', execute: grants }), { functions: true });
  test.same(await catalog(), {
    owner: 'runner_scoped',
    config,
    executes: ['runner_api', 'runner_jobs', 'runner_scoped'],
  });
  await database.owner.query('grant execute on function app.thing_count to runner_admin, public');
  const owners = { runner_global: ['thing_count'] };
  await declare({ defaultOwner: 'runner_scoped', owners, execute: { runner_jobs: grants.runner_jobs } });
  test.same(await catalog(), { owner: 'runner_global', config, executes: ['runner_global', 'runner_jobs'] });
  await declare({ ...ACCESS, defaultOwner: 'runner_scoped', noSearchPath: ['thing_count'] });
  test.same(await catalog(), { owner: 'runner_scoped', config: null, executes: ['runner_scoped'] });
  test.match(await migrate(), { functions: false });

  await refusal(
    test,
    declare({ ...ACCESS, owners: { runner_api: ['thing'] } }),
    /access\.json names thing, which no file/,
  );
  await refusal(test, declare({ ...ACCESS, defaultOwner: 'nobody_here' }), /access\.json: role "nobody_here" does not/);
  await refusal(test, declare({ ...ACCESS, owner: 'x' }), /^sql\/functions\/access\.json: .*owner/);
  await refusal(test, declare({ ...ACCESS, defaultOwner: 'x; drop' }), /^sql\/functions\/access\.json: .*defaultOwner/);
});

t.test('a login that is no superuser but owns the database and has CREATEROLE can migrate', async (test) => {
  // As on a managed server: a cluster of its own, on which this login makes the roles itself.
  const server = await startTestServer();
  test.teardown(server.stop);
  await execute(server.url, `create role migrator login createrole password 'm'`);
  await execute(server.url, 'create database managed owner migrator');
  const url = new URL(databaseUrl(server.url, 'managed'));
  url.username = 'migrator';
  url.password = 'm';
  test.match(await migrate(url.href), { functions: true });
  // Text that differs: every function is replaced by a login that does not own it.
  await execute(url.href, `update app.schema_files set sha256 = 'other'`);
  test.same(await migrate(url.href), { migrations: [], functions: true, views: true });
  for (const role of ['runner_api', 'runner_jobs'] as const) {
    const client = new pg.Client({ connectionString: roleUrl(url.href, { role }) });
    await client.connect();
    test.same((await client.query('select current_role::text as role')).rows, [{ role }], `it may become ${role}`);
    await client.end();
  }
});

t.test('the roles that own functions may create them during a migration alone', async (test) => {
  const { owner } = await createTestDatabase(test);
  const { rows } = await owner.query(
    `select rolname as role, has_schema_privilege(rolname, 'app', 'create') as creates
     from pg_roles where rolname in ('runner_api', 'runner_global', 'runner_report', 'runner_scoped') order by 1`,
  );
  test.same(rows, [
    { role: 'runner_api', creates: false },
    { role: 'runner_global', creates: false },
    { role: 'runner_report', creates: false },
    { role: 'runner_scoped', creates: false },
  ]);
});

t.test('the job role works the queue, the API role does not see it', async (test) => {
  const { url } = await createTestDatabase(test);
  const pgPool = new pg.Pool({ connectionString: roleUrl(url, { role: 'runner_jobs' }), max: 3 });
  // The queue warns about a pool that leaves errors of its connections to nobody.
  pgPool.on('error', () => {});
  pgPool.on('connect', (client) => client.on('error', () => {}));
  await pgPool.query(`select graphile_worker.add_job('note', '{"n": 7}')`);
  const seen: unknown[] = [];
  await runOnce({
    pgPool,
    noHandleSignals: true,
    logger: new Logger(() => () => {}),
    taskList: { note: (payload) => void seen.push(payload) },
  });
  test.same(seen, [{ n: 7 }]);
  test.same((await pgPool.query('select count(*)::int as n from graphile_worker.jobs')).rows, [{ n: 0 }]);
  await pgPool.end();
  const client = new pg.Client({ connectionString: roleUrl(url, { role: 'runner_api' }) });
  await client.connect();
  await test.rejects(client.query('select from graphile_worker.jobs'), { code: '42501' });
  await client.end();
});
