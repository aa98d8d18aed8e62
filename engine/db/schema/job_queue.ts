import { Logger, runMigrations } from 'graphile-worker';
import type { Client } from 'pg';

/** Who works with the queue's tables: the job process, and the functions that enqueue. */
const USERS = ['runner_jobs', 'runner_global'];

/**
 * The queue's tables have row security without policies, which shuts out all but their owner. Asked again at every
 * migration, because a newer version of the queue may bring new tables.
 */
async function admit(client: Client, role: string): Promise<void> {
  await client.query(`
    grant usage on schema graphile_worker to ${role};
    grant select, insert, update, delete on all tables in schema graphile_worker to ${role};
    grant usage, select on all sequences in schema graphile_worker to ${role};
    grant execute on all functions in schema graphile_worker to ${role}`);
  const { rows } = await client.query<{ name: string }>(
    `select c.oid::regclass::text as name
     from pg_class c
     where c.relnamespace = 'graphile_worker'::regnamespace and c.relrowsecurity
       and not exists (select from pg_policy p where p.polrelid = c.oid and p.polname = $1)`,
    [`${role}_all`],
  );
  for (const { name } of rows) {
    await client.query(`create policy ${role}_all on ${name} to ${role} using (true) with check (true)`);
  }
}

/** Installs or upgrades graphile-worker's schema. The caller holds the migration lock. */
export async function installJobQueue(client: Client, url: string): Promise<void> {
  await runMigrations({ connectionString: url, logger: new Logger(() => () => {}) });
  const { rows } = await client.query<{ name: string }>(
    'select rolname as name from pg_roles where rolname = any ($1)',
    [USERS],
  );
  await client.query('begin');
  try {
    for (const { name } of rows) await admit(client, name);
    await client.query('commit');
  } catch (error) {
    await client.query('rollback');
    throw error;
  }
}
