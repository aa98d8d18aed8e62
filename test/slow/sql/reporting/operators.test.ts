import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import pg from 'pg';
import t from 'tap';
import { migrate } from '../../../../engine/db/migrate.ts';
import { AnalystError, addAnalyst, removeAnalyst } from '../../../../scripts/analyst/logins.ts';
import { analystName, connected, createOperator, loginUrl } from '../../../support/analysts.ts';
import { createEmptyDatabase, createTestDatabase } from '../../../support/database.ts';
import { until } from '../../../support/wait.ts';

// An operator that is no superuser is a member of runner_analyst, as analysts are: it hands that on.

t.test('a login that is no superuser, but owns the database and makes roles, does all of it', async (test) => {
  const database = await createEmptyDatabase(test);
  const { url } = await createOperator(test, database);
  const told: string[] = [];
  await migrate(url, { log: (line) => told.push(line) });
  test.notOk(
    told.some((line) => line.startsWith('left open')),
    'what is its to close is closed',
  );

  const name = analystName();
  const added = await connected(url, (client) =>
    addAnalyst(client, name, { all: true, organizationIds: [] }, () => {}),
  );
  test.ok(
    added.notes.some((note) => note.startsWith('temp_file_limit')),
    'what only superusers set is told',
  );
  test.ok(added.notes.some((note) => note.includes('large objects')));
  const analyst = loginUrl(database.url, name, added.password ?? '');
  await connected(analyst, async (session) => {
    test.equal((await session.query('select from runs')).rowCount, 0);
    await test.rejects(session.query('create temp table t ()'), { code: /42501|25006/ });
    const ended = await connected(url, (client) => removeAnalyst(client, name));
    test.equal(ended, 1);
    await test.rejects(session.query('select'));
  });
  test.same((await database.owner.query('select from pg_roles where rolname = $1', [name])).rows, []);
});

t.test('it is no analyst: the command neither adds nor removes it', async (test) => {
  const database = await createTestDatabase(test);
  const operator = await createOperator(test, database);
  const notRemoved = new AnalystError(`there is no analyst ${operator.name}`);
  const notAdded = new AnalystError(`${operator.name} is a role of this server already, and no analyst's`);
  // By its roles alone too, were it to make none itself.
  for (const attribute of ['createrole', 'nocreaterole']) {
    await database.owner.query(`alter role ${operator.name} ${attribute}`);
    await connected(operator.url, async (session) => {
      await session.query('create schema kept');
      await connected(database.url, async (client) => {
        await test.rejects(removeAnalyst(client, operator.name), notRemoved, attribute);
        await test.rejects(
          addAnalyst(client, operator.name, { all: true, organizationIds: [] }, () => {}),
          notAdded,
          attribute,
        );
      });
      await session.query('drop schema kept');
    });
  }
});

t.test('two that migrate with its login at once both come to their end, however long the first takes', async (test) => {
  const database = await createEmptyDatabase(test);
  const { url } = await createOperator(test, database);
  const sqlFolder = test.testdir({ 'roles.sql': '', migrations: {}, functions: {}, reporting: {} });
  const bring = () => migrate(url, { sqlFolder });
  await bring();
  await writeFile(path.join(sqlFolder, 'migrations', '000001_things.sql'), 'create table app.things ();');
  const among = async (condition: string, values: readonly unknown[] = []) => {
    const { rows } = await database.owner.query<{ n: number; now: string }>(
      `select count(*)::int as n, clock_timestamp()::text as now from pg_stat_activity
       where datname = current_database() and application_name = 'business-runner migrate' and ${condition}`,
      [...values],
    );
    return rows[0] ?? { n: 0, now: '' };
  };
  // As long as this is held the first one waits with the lock of all migrations in its hands.
  const holder = new pg.Client({ connectionString: database.url });
  await holder.connect();
  await holder.query('begin; lock table app.schema_migrations in access exclusive mode');
  const first = bring();
  await until('the first waits', async () => (await among(`wait_event = 'relation'`)).n === 1);
  const second = bring();
  const ends = Promise.allSettled([first, second]);
  const { now } = await until('the second waits', async () => {
    const waiting = await among(`wait_event = 'advisory'`);
    return waiting.n === 1 && waiting;
  });
  // Both have looked whom they wait for, and ended whom they would end.
  const looked = `query like '%pg_blocking_pids%' and state = 'idle' and query_start > $1`;
  await Promise.race([until('both have looked', async () => (await among(looked, [now])).n === 2), ends]);
  await holder.query('rollback');
  await holder.end();
  test.match(await ends, [
    { status: 'fulfilled', value: { migrations: ['000001_things'] } },
    { status: 'fulfilled', value: { migrations: [] } },
  ]);
});
