import t from 'tap';
import type { TearDown } from './support/database.ts';
import { createTestOrganization, runNew } from './support/fixtures.ts';
import { openSession, openSql, type Sql } from './support/transitions.ts';

/** What a file does with a database between taking it and its end; the name of the database it had. */
async function file(body: (sql: Sql, t: TearDown) => Promise<unknown>): Promise<string> {
  const handlers: (() => Promise<void>)[] = [];
  const context = { teardown: (handler: () => Promise<void>) => handlers.unshift(handler) };
  const sql = await openSql(context);
  const database = new URL(sql.url).pathname;
  await body(sql, context);
  for (const handler of handlers) await handler();
  return database;
}

const count = async (sql: Sql, table: string): Promise<number> =>
  (await sql.owner.query(`select from ${table}`)).rowCount ?? 0;

t.test('a file takes the database of the last one, without what that left in it', async (t) => {
  const first = await file(async (sql) => {
    await runNew(sql, await createTestOrganization(sql));
    await sql.api.query(`set app.organization_id = '00000000-0000-0000-0000-000000000000'`);
    await sql.owner.query('select pg_advisory_lock(1)');
  });
  const second = await file(async (sql) => {
    for (const table of ['app.organizations', 'app.tasks', 'app.runs', 'app.audit_entries']) {
      t.equal(await count(sql, table), 0, `${table} is empty`);
    }
    t.ok((await count(sql, 'app.schema_migrations')) > 0, 'what the template has is there');
    const { rows } = await sql.api.query(`select current_setting('app.organization_id', true) as tenant`);
    t.notOk(rows[0]?.tenant, 'no connection has a tenant');
    const held = `select from pg_locks join pg_database d on d.oid = database
      where locktype = 'advisory' and d.datname = current_database()`;
    t.same((await sql.owner.query(held)).rowCount, 0);
    await runNew(sql, await createTestOrganization(sql));
  });
  t.equal(second, first);
});

const unfit: Readonly<Record<string, (sql: Sql, t: TearDown) => Promise<unknown>>> = {
  'a column more': (sql) => sql.owner.query('alter table app.tasks add column more int'),
  'a function replaced': (sql) =>
    sql.owner.query(`create or replace function app.new_id() returns uuid language sql as 'select gen_random_uuid()'`),
  'a setting': (sql) =>
    sql.owner.query(
      `do $$ begin execute format('alter database %I set work_mem = ''8MB''', current_database()); end $$`,
    ),
  'row security switched off': (sql) => sql.owner.query('alter table app.tasks no force row level security'),
  'a row of the template deleted': (sql) =>
    sql.owner.query(
      'delete from app.schema_migrations where version = (select max(version) from app.schema_migrations)',
    ),
  'new statistics': (sql) => sql.owner.query('analyze app.schema_migrations'),
  'a transaction that is open': async (sql, context) => {
    const client = await sql.api.connect();
    await client.query('begin');
    context.teardown(async () => void setTimeout(() => client.release(true), 0));
  },
};

for (const [what, change] of Object.entries(unfit)) {
  t.test(`it does not after ${what}`, async (t) => {
    const first = await file(change);
    t.not(await file(async () => {}), first);
  });
}

t.test('a session that a test has closed is waited for', async (t) => {
  const first = await file(async (sql, context) => {
    const session = await openSession(context, sql);
    await session.begin();
    await session.commit();
  });
  t.equal(await file(async () => {}), first);
});
