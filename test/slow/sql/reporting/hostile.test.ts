import t, { type Test } from 'tap';
import { functionText } from '../../../../engine/db/function_text.ts';
import { CLOSE_OTHER_DATABASES } from '../../../../engine/db/schema/close.ts';
import { ask, askEach, connected, createAnalyst, openReporting, PSQL } from '../../../support/analysts.ts';
import { databaseUrl } from '../../../support/postgres.ts';
import { createTenant } from '../../../support/tenant.ts';

// What an analyst may try. The statements go through the real psql where the machine has one, else through the driver.
t.comment(PSQL === undefined ? 'there is no psql here: the driver asks' : `asked by ${PSQL}`);

const sql = await openReporting(t);
const own = await createTenant(sql);
const other = await createTenant(sql);
// What must never be seen, in every text that a view shows.
const SECRET = 'sesame';
for (const [table, columns] of Object.entries({
  organizations: ['name', 'slug'],
  agent_profiles: ['name', 'key'],
  tasks: ['title'],
  schedules: ['title', 'key'],
  integrations: ['name', 'key'],
  audit_entries: ['subject_id'],
})) {
  const key = table === 'organizations' ? 'id' : 'organization_id';
  for (const column of columns) {
    const value = column === 'key' ? `'${SECRET}-' || right(id::text, 12)` : `'${SECRET}'`;
    // The audit log lets nobody change it, its owner included.
    await sql.owner.query(`set session_replication_role = replica; update app.${table} set ${column} = ${value}
      where ${key} = '${other.organizationId}'; set session_replication_role = origin`);
  }
}
await sql.owner.query('analyze');
await connected(databaseUrl(sql.url, 'postgres'), async (client) => {
  for (const statement of CLOSE_OTHER_DATABASES) await client.query(statement);
});
const analyst = await createAnalyst(t, sql, { organizationIds: [own.organizationId] });
/** The views that have no row of the other tenant: nothing to hide. */
const NOT_OF_EVERY_TENANT = ['contract_failures', 'cost_by_initiative'];
const VIEWS = (
  await sql.owner.query<{ name: string }>(
    `select relname as name from pg_class where relnamespace = 'reporting'::regnamespace order by 1`,
  )
).rows.map(({ name }) => name);

const foreign = new RegExp(`${SECRET}|${other.organizationId}|${other.profileId}`);

/** That sessions begin read-only holds up nobody who is hostile. */
const writing = new URL(analyst.url);
writing.searchParams.set('options', '-c default_transaction_read_only=off');

/** What each returns, or the SQLSTATE: nothing of the other tenant, neither in rows nor in messages. */
async function seen(test: Test, statements: readonly string[]): Promise<string[]> {
  const results = await askEach(writing.href, statements);
  return results.map(({ code, out, said }, index) => {
    test.notMatch(`${out}\n${said}`, foreign, statements[index] ?? '');
    return code ?? out;
  });
}

async function see(test: Test, statements: string): Promise<string> {
  return (await seen(test, [statements]))[0] ?? '';
}

/** Permission is denied (42501), or one of the codes that are named with the statement. */
async function refused(test: Test, ...statements: (string | readonly string[])[]): Promise<void> {
  const list = statements.map((one) => [one].flat());
  const results = await seen(
    test,
    list.map(([text = '']) => text),
  );
  for (const [index, [text, ...codes]] of list.entries()) {
    test.ok(['42501', ...codes].includes(results[index] ?? ''), `${text}: ${results[index]}`);
  }
}

t.test('every view shows rows of the own tenant, and of no other', async (test) => {
  for (const view of VIEWS) {
    const { rows } = await sql.owner.query(
      `select count(*)::int as n from reporting.${view} where organization_id = '${other.organizationId}'`,
    );
    test.ok(NOT_OF_EVERY_TENANT.includes(view) || rows[0].n > 0, `${view} has rows to hide`);
  }
  const shown = VIEWS.map((view) => `select count(*) from ${view} where organization_id <> '${own.organizationId}'`);
  for (const count of await seen(test, shown)) test.equal(count, '0');
  for (const all of await seen(
    test,
    VIEWS.map((view) => `select * from ${view}`),
  ))
    test.notMatch(all, /^[0-9A-Z]{5}$/);
});

t.test('nothing lies behind the views', async (test) => {
  const { rows } = await sql.owner.query<{ name: string }>(
    `select c.oid::regclass::text as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where n.nspname in ('app', 'graphile_worker') and c.relkind in ('r', 'p', 'v', 'S')`,
  );
  test.ok(rows.length > 30);
  await refused(test, ...rows.map(({ name }) => `select * from ${name}`));
  await refused(
    test,
    ...VIEWS.flatMap((view) => [
      [`delete from ${view}`, '55000'],
      [`update ${view} set organization_id = null`, '55000'],
      [`begin; lock table ${view} in exclusive mode`],
    ]),
    ['insert into tasks (title) values (1)', '55000'],
    'select * from tasks for update',
    'truncate app.tasks',
    ['copy tasks from stdin;\n\\.', '42809'],
  );
});

t.test('no function with effects can be called', async (test) => {
  const { rows } = await sql.owner.query(
    `select p.oid::regproc::text as name from pg_proc p
     where p.pronamespace::regnamespace::text in ('app', 'graphile_worker')
       and has_function_privilege($1, p.oid, 'execute') and has_schema_privilege($1, p.pronamespace, 'usage')`,
    [analyst.name],
  );
  test.same(rows, []);
  await refused(
    test,
    `select ${functionText('work_dispatch_set', { organizationId: `'${other.organizationId}'`, stopped: 'true', actor: `'{}'` })}`,
    `select app.timezone_or_utc('UTC')`,
    `select graphile_worker.add_job('x')`,
  );
});

t.test('it becomes nobody else', async (test) => {
  const roles = [
    ...['owner', 'report', 'global', 'scoped', 'api', 'jobs', 'admin'].map((role) => `runner_${role}`),
    'postgres',
  ];
  await refused(
    test,
    ...roles.flatMap((role) => [
      `set role ${role}`,
      `set session authorization ${role}`,
      `grant ${role} to ${analyst.name}`,
    ]),
    `alter role ${analyst.name} superuser`,
    `alter role ${analyst.name} connection limit 1000`,
    `alter role ${analyst.name} bypassrls`,
    'create role mine',
  );
  test.equal(
    await see(test, 'set role runner_analyst; select count(*) from organizations'),
    '1',
    'as its group neither',
  );
});

t.test('row security stays on, and the tenant of the API means nothing here', async (test) => {
  await refused(
    test,
    'set row_security = off; select * from tasks',
    'alter view tasks set (security_barrier = false)',
    'alter policy report_read on app.tasks using (true)',
    'set session_replication_role = replica',
  );
  const counts = VIEWS.map((view) => `select count(*) from ${view}`);
  const before = await seen(test, counts);
  for (const id of [own.organizationId, other.organizationId]) {
    const tried = counts.map((count) => `select set_config('app.organization_id', '${id}', false) = ''; ${count}`);
    test.same(
      (await seen(test, tried)).map((result) => result.split('\n').at(-1)),
      before,
    );
  }
});

t.test('conditions that tell what they are asked about are asked of own rows alone', async (test) => {
  const columns = await sql.owner.query<{ view: string; column: string }>(
    `select c.relname as view, a.attname as column from pg_class c join pg_attribute a on a.attrelid = c.oid
     where c.relnamespace = 'reporting'::regnamespace and a.attnum > 0 and a.atttypid = 'text'::regtype`,
  );
  test.ok(columns.rows.length > 50);
  // The error names the value that it stumbles over.
  await seen(
    test,
    columns.rows.map(({ view, column }) => `select count(*) from ${view} where ${column}::integer > 0`),
  );
  const trap = `case when organization_id = '${own.organizationId}' then 1 else 0 end`;
  const divided = VIEWS.flatMap((view) => [
    `select count(*) from ${view} where 1 / (${trap}) = 1`,
    `select sum(1 / (${trap})) from ${view}`,
  ]);
  for (const result of await seen(test, divided)) test.not(result, '22012', 'nothing was divided by zero');
  await seen(test, [
    `do $$ declare r record; begin for r in select * from tasks loop raise notice '%', r; end loop; end $$`,
    `select query_to_xml('select * from tasks', true, false, '')`,
    `select schema_to_xml('reporting', true, false, '')`,
    `select * from tasks where position('${SECRET.slice(0, 3)}' in title) > 0`,
  ]);
});

t.test('nothing can be made: no function, no table, not even for the time of the session', async (test) => {
  const leak = `(text) returns boolean language plpgsql cost 0.0001 as 'begin raise notice ''%'', $1; return true; end'`;
  await refused(
    test,
    ...['pg_temp', 'public', 'reporting', 'app'].flatMap((schema) => [
      `create function ${schema}.leak${leak}`,
      `create table ${schema}.mine ()`,
      `create view ${schema}.mine as select 1`,
      `create operator ${schema}.### (leftarg = text, rightarg = text, function = texteq)`,
      `create sequence ${schema}.mine`,
    ]),
    'create temp table mine as select generate_series(1, 10)',
    'select * into temp mine from tasks',
    'create schema mine',
    ['create extension dblink', '0A000', '58P01'],
    ['create language plperlu', '0A000', '58P01', '42704'],
    ['create server mine foreign data wrapper postgres_fdw', '42704'],
    'create publication mine for all tables',
    ['create event trigger mine on ddl_command_start execute function pg_notify()', '42883', '42P17'],
    ['load $$dblink$$', '42601'],
    [`load 'dblink'`, '58P01'],
    `alter system set log_statement = 'all'`,
    'vacuum full app.tasks',
    `comment on view tasks is 'mine'`,
  );
});

t.test('it reaches no file, no program and no other server', async (test) => {
  await refused(
    test,
    `copy (select 1) to program 'id'`,
    `copy (select 1) to '/tmp/analyst'`,
    `select pg_read_file('/etc/passwd')`,
    `select pg_read_binary_file('/etc/passwd')`,
    `select pg_ls_dir('/')`,
    `select pg_ls_logdir()`,
    `select pg_stat_file('/etc/passwd')`,
    `select lo_import('/etc/passwd')`,
    [`select dblink('x', 'x')`, '42883'],
    `select pg_reload_conf()`,
    `select pg_rotate_logfile()`,
    `select pg_switch_wal()`,
    `select pg_create_restore_point('x')`,
    `select pg_create_physical_replication_slot('x')`,
    `select pg_stat_reset()`,
  );
});

t.test('large objects and the write-ahead log are no way to fill the disk', async (test) => {
  await refused(
    test,
    `select lo_creat(-1)`,
    `select lo_create(0)`,
    `select lo_from_bytea(0, 'x')`,
    `select lo_put(1, 0, 'x')`,
    `select lo_open(1, 131072)`,
    `select lo_unlink(1)`,
    `select lowrite(1, 'x')`,
    `select lo_truncate(1, 1)`,
    `select lo_truncate64(1, 1)`,
    `select pg_logical_emit_message(false, 'x', 'x'::text)`,
    `select pg_logical_emit_message(false, 'x', 'x'::bytea)`,
  );
});

t.test('advisory locks are no way to use up the memory for locks', async (test) => {
  const { rows } = await sql.owner.query<{ call: string }>(
    `select format('select %s(%s)', proname, repeat('1, ', pronargs - 1) || '1') as call from pg_proc
     where pronamespace = 'pg_catalog'::regnamespace and proname ~ 'advisory.*lock' and proname !~ 'unlock'`,
  );
  test.equal(rows.length, 16);
  await refused(test, ...rows.map(({ call }) => call));
});

t.test('the catalog tells nothing of other tenants’ values', async (test) => {
  const hidden = [
    `select count(*) from pg_stats where schemaname in ('app', 'graphile_worker', 'reporting')`,
    'select count(*) from pg_stats_ext',
    'select count(*) from pg_stats_ext_exprs',
  ];
  for (const count of await seen(test, hidden)) test.equal(count, '0');
  const closed = ['pg_statistic', 'pg_statistic_ext_data', 'pg_authid', 'pg_largeobject', 'pg_user_mapping'];
  const server = [
    'pg_hba_file_rules',
    'pg_file_settings',
    'pg_config',
    'pg_subscription',
    'pg_backend_memory_contexts',
  ];
  await refused(test, ...[...closed, ...server].map((table) => `select * from ${table}`));
  const open = [
    'pg_stat_activity',
    'pg_stats',
    'pg_prepared_statements',
    'pg_cursors',
    'pg_roles',
    'pg_db_role_setting',
  ];
  await seen(
    test,
    [...open, 'pg_description', 'pg_statistic_ext', 'pg_locks'].map((table) => `select * from ${table}`),
  );
});

t.test('what others ask is not shown, and their sessions are theirs', async (test) => {
  await connected(sql.url, async (client) => {
    const { rows } = await client.query(`select pg_backend_pid() as pid, '${SECRET}'`);
    const shown = await see(test, `select query from pg_stat_activity where pid = ${rows[0].pid}`);
    test.match(shown, 'insufficient privilege');
    await refused(test, `select pg_terminate_backend(${rows[0].pid})`, `select pg_cancel_backend(${rows[0].pid})`);
  });
});

t.test('estimates come from samples of all tenants, but of no text', async (test) => {
  const texts = [
    ['tasks', 'title'],
    ['organizations', 'name'],
    ['organizations', 'slug'],
    ['agent_profiles', 'key'],
    ['schedules', 'title'],
    ['integrations', 'name'],
    ['audit', 'subject_id'],
  ];
  for (const [view, column] of texts) {
    // Equal to, and between: a value of the other tenant, and one that is nobody's.
    const probes = [`= '${SECRET}'`, `= 'bungle'`, `< '${SECRET}~'`, `< '${SECRET.slice(0, -1)}'`];
    const results = await askEach(
      writing.href,
      probes.map((probe) => `explain select from ${view} where ${column} ${probe}`),
    );
    const [equal, none, below, less] = results.map(({ out }) => out.replaceAll(/'\w+~?'/g, ''));
    test.match(equal, /rows=/);
    test.equal(equal, none, `${view}.${column}`);
    test.equal(below, less, `${view}.${column}`);
  }
});

t.test('prepared statements and cursors ask again who asks', async (test) => {
  const prepared = 'prepare p as select count(*) from tasks where organization_id = $1;';
  const execute = `execute p('${other.organizationId}')`;
  test.same(
    await seen(test, [
      `${prepared} ${execute}`,
      `set plan_cache_mode = force_generic_plan; ${prepared} ${execute}`,
      'begin; declare c cursor with hold for select * from tasks; fetch all from c; commit; close c',
    ]).then((results) => results.slice(0, 2)),
    ['0', '0'],
  );
});

t.test('statements that last or spill are ended by the server', async (test) => {
  const results = await seen(test, [`set statement_timeout = '50ms'; select pg_sleep(60)`, 'show statement_timeout']);
  test.same(results, ['57014', '1min'], 'and a new session begins with the limit');
  await refused(test, 'set temp_file_limit = -1');
  await sql.owner.query(`alter role ${analyst.name} set temp_file_limit = '1MB'`);
  const spilling = 'select count(*) from (select generate_series(1, 1000000) n order by 1 desc) x';
  test.equal(await see(test, `set work_mem = '64kB'; ${spilling}`), '53400');
});

t.test('it comes into no other database of the server', async (test) => {
  for (const name of ['postgres', 'template1']) {
    const { said } = await ask(databaseUrl(analyst.url, name), 'select 1');
    test.match(said, /permission denied for database/, name);
  }
  const { said } = await ask(databaseUrl(analyst.url, 'template0'), 'select 1');
  test.match(said, /not currently accepting connections|permission denied/);
});
