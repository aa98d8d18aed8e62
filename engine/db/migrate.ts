import path from 'node:path';
import { Client } from 'pg';
import { connectionProblem } from '../libpq.ts';
import { KEEP_ALIVE, SERVER_LIMITS } from './abandoned.ts';
import { endBlockingAnalysts } from './schema/analysts.ts';
import { closeDatabase } from './schema/close.ts';
import { MigrateError } from './schema/files.ts';
import { applyFunctions, createTriggerFunctions } from './schema/functions.ts';
import { installJobQueue } from './schema/job_queue.ts';
import { applyMigrations, checkMigrations } from './schema/migrations.ts';
import { applyRoles } from './schema/roles.ts';
import { readSource, type Source } from './schema/source.ts';
import { applyViews } from './schema/views.ts';

export { MigrateError } from './schema/files.ts';

const SQL_FOLDER = path.resolve(import.meta.dirname, '..', '..', 'sql');
const OLDEST_POSTGRES = 150_000;

export type MigrateOptions = Readonly<{
  /** The folder with `roles.sql`, `migrations`, `triggers`, `functions` and `reporting`; default: that of the project. */
  sqlFolder?: string;
  /** Told what was done, a line each. */
  log?: (line: string) => void;
}>;

export type Migrated = Readonly<{
  /** The migrations applied by this call. */
  migrations: readonly string[];
  /** Whether the function files were applied. */
  functions: boolean;
  /** Whether the reporting views were applied. */
  views: boolean;
}>;

async function connect(url: string): Promise<Client> {
  const client = new Client({
    connectionString: url,
    application_name: 'business-runner migrate',
    connectionTimeoutMillis: 10_000,
    ...KEEP_ALIVE,
  });
  // A connection that breaks fails the query at hand; without a listener it would end the process.
  client.on('error', () => {});
  try {
    await client.connect();
  } catch (error) {
    const { host, username, pathname } = new URL(url);
    throw new MigrateError(
      `cannot connect to Postgres at ${host}${pathname} as ${username || 'the default user'}: ${connectionProblem(error)}`,
      {
        cause: error,
      },
    );
  }
  return client;
}

async function requirePostgres(client: Client): Promise<void> {
  const { rows } = await client.query<{ version: number }>(
    `select current_setting('server_version_num')::int as version`,
  );
  if ((rows[0]?.version ?? 0) < OLDEST_POSTGRES) throw new MigrateError('Postgres 15 or newer is needed');
}

/** What the migration itself remembers. */
async function prepare(client: Client): Promise<void> {
  const { rows } = await client.query<{ ready: boolean }>(
    `select to_regclass('app.schema_files') is not null as ready`,
  );
  if (rows[0]?.ready) return;
  await client.query(`
    create schema if not exists app;
    create table if not exists app.schema_migrations (
      version int primary key,
      name text not null,
      sha256 text not null,
      applied_at timestamptz not null default clock_timestamp()
    );
    create table if not exists app.schema_files (
      path text primary key,
      sha256 text not null,
      functions text[] not null
    );
    comment on table app.schema_migrations is 'Migrations that were applied.';
    comment on column app.schema_migrations.version is 'Its number.';
    comment on column app.schema_migrations.name is 'Its name.';
    comment on column app.schema_migrations.sha256 is 'Digest of its text, which never changes.';
    comment on column app.schema_migrations.applied_at is 'When it was applied.';
    comment on table app.schema_files is 'Files that are applied whenever their text changes, as they were applied last.';
    comment on column app.schema_files.path is 'The file, below the folder sql.';
    comment on column app.schema_files.sha256 is 'Digest of its text.';
    comment on column app.schema_files.functions is 'The functions that it made.'`);
}

async function applyAll(client: Client, url: string, source: Source, log: (line: string) => void): Promise<Migrated> {
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
  const stopEnding = endBlockingAnalysts(rows[0]?.pid ?? 0, () => connect(url), log);
  try {
    // A time-out set for the login or the database is meant for its users, not for a migration. One that is frozen in the middle
    // holds up everybody, and is undone.
    const limits = Object.entries(SERVER_LIMITS).map(([name, value]) => `set ${name} = '${value}';`);
    await client.query(`set statement_timeout = 0; set lock_timeout = 0; set client_min_messages = warning;
      ${limits.join(' ')} set timezone = 'UTC'`);
    // Goes with the session: a process that dies here leaves no lock.
    await client.query(`select pg_advisory_lock(hashtextextended('business-runner:migrate', 0))`);
    await requirePostgres(client);
    await checkMigrations(client, source.migrations);
    await prepare(client);
    await applyRoles(client, source.roles);
    await createTriggerFunctions(client, source.triggers);
    const migrations = await applyMigrations(client, source.migrations, log);
    await installJobQueue(client, url);
    const functions = await applyFunctions(client, [source.triggers, source.functions], log);
    const views = await applyViews(client, source.reporting, log);
    await closeDatabase(client, log);
    return { migrations, functions, views };
  } finally {
    await stopEnding();
  }
}

/**
 * Brings the database to the state of the code: roles, the functions of triggers, tables by migrations, the job queue's
 * schema, functions, reporting views. Any number of processes may call it at once, one does the work. `url` must be a direct
 * connection (the lock belongs to a session), of a superuser or of a login with CREATEROLE that owns the database.
 * @throws MigrateError with one line for the person who runs it; what the failing file did is undone.
 */
export async function migrate(url: string, options: MigrateOptions = {}): Promise<Migrated> {
  const { sqlFolder = SQL_FOLDER, log = () => {} } = options;
  const source = await readSource(sqlFolder);
  const client = await connect(url);
  try {
    return await applyAll(client, url, source, log);
  } finally {
    await client.end();
  }
}
