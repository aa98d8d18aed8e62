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

/** For a cluster that belongs to the project alone: its other databases are nobody's but the superuser's. */
export const CLOSE_OTHER_DATABASES = ['postgres', 'template1'].map(
  (name) => `revoke connect, temporary on database ${name} from public`,
);

/**
 * Closes what this database leaves open to every login, so to analysts: temporary tables (and with them functions of one's
 * own), objects in the schema public, large objects. Asked at every migration, because a dump does not carry the
 * privileges of a database. What the login may not close is told.
 */
export async function closeDatabase(client: Client, log: (line: string) => void): Promise<void> {
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
