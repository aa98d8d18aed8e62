import type { Client } from 'pg';

/**
 * What Postgres lets every login do by default, and what fills the disk: large objects, and messages in the write-ahead
 * log. Nothing of the project uses them.
 */
const FUNCTIONS = [
  'lo_creat',
  'lo_create',
  'lo_from_bytea',
  'lo_open',
  'lo_put',
  'lo_truncate',
  'lo_truncate64',
  'lo_unlink',
  'lowrite',
  'pg_logical_emit_message',
];

/** One login could take as many as there is memory for, and then no session of the server gets a lock, nor a connection. */
const ADVISORY_LOCKS = '^pg_(try_)?advisory_(xact_)?lock(_shared)?$';
/** Who takes some, besides the owner of the database, who migrates it. */
const LOCKERS = ['runner_scoped', 'runner_global', 'runner_jobs'];

/** For a cluster that belongs to the project alone: its other databases are nobody's but the superuser's. */
export const CLOSE_OTHER_DATABASES = ['postgres', 'template1'].map(
  (name) => `revoke connect, temporary on database ${name} from public`,
);

/** Leaves them to the roles that take them. Only a superuser can. */
async function closeAdvisoryLocks(client: Client): Promise<void> {
  const { rows } = await client.query<{ functions: string; lockers: string }>(
    `select string_agg(p.oid::regprocedure::text, ', ') as functions,
       (select string_agg(quote_ident(r.rolname), ', ') from pg_roles r where r.rolname = any ($2)
         or r.oid = (select datdba from pg_database where datname = current_database())) as lockers
     from pg_proc p
     where p.pronamespace = 'pg_catalog'::regnamespace and p.proname ~ $1
       and has_function_privilege('public', p.oid, 'execute')
       and (select rolsuper from pg_roles where rolname = current_user)
     having count(*) > 0`,
    [ADVISORY_LOCKS, LOCKERS],
  );
  if (!rows[0]) return;
  const { functions, lockers } = rows[0];
  await client.query(`begin; grant execute on function ${functions} to ${lockers};
    revoke execute on function ${functions} from public; commit`);
}

/**
 * Closes what this database leaves open to every login, so to analysts: temporary tables (and with them functions of one's
 * own), objects in the schema public, large objects, advisory locks. Asked at every migration, because a dump does not carry the
 * privileges of a database. Returns what the login may not close.
 */
export async function closeDatabase(client: Client, log: (line: string) => void): Promise<void> {
  await closeAdvisoryLocks(client);
  const { rows } = await client.query<{ what: string }>(
    `select format('temporary on database %I', current_database()) as what
       where has_database_privilege('public', current_database(), 'temporary')
     union all
     select 'create on schema public' from pg_namespace
       where nspname = 'public' and has_schema_privilege('public', oid, 'create')
     union all
     select format('execute on function %s', p.oid::regprocedure) from pg_proc p
       where p.pronamespace = 'pg_catalog'::regnamespace and p.proname = any ($1)
         and has_function_privilege('public', p.oid, 'execute')
         and (select rolsuper from pg_roles where rolname = current_user)`,
    [FUNCTIONS],
  );
  for (const { what } of rows) {
    await client.query(`revoke ${what} from public`).catch((error: Error) => {
      log(`left open to every login: ${what} (${error.message})`);
    });
  }
}
