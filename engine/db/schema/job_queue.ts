import { Logger, runMigrations } from 'graphile-worker';
import type { Client } from 'pg';

/** Who works with the queue's tables. */
const USER = 'runner_jobs';

/**
 * The queue's tables have row security without policies, which shuts out all but their owner. Asked again at every
 * migration, because a newer version of the queue may bring new tables.
 */
async function admit(client: Client): Promise<void> {
  await client.query(`
    grant usage on schema graphile_worker to ${USER};
    grant select, insert, update, delete on all tables in schema graphile_worker to ${USER};
    revoke insert, update, delete on graphile_worker.migrations from ${USER};
    grant usage, select on all sequences in schema graphile_worker to ${USER};
    grant execute on all functions in schema graphile_worker to ${USER}`);
  const { rows } = await client.query<{ name: string }>(
    `select c.oid::regclass::text as name
     from pg_class c
     where c.relnamespace = 'graphile_worker'::regnamespace and c.relrowsecurity
       and not exists (select from pg_policy p where p.polrelid = c.oid and p.polname = $1)`,
    [`${USER}_all`],
  );
  for (const { name } of rows) {
    await client.query(`create policy ${USER}_all on ${name} to ${USER} using (true) with check (true)`);
  }
}

/** Installs or upgrades graphile-worker's schema. The caller holds the migration lock. */
export async function installJobQueue(client: Client, url: string): Promise<void> {
  await runMigrations({ connectionString: url, logger: new Logger(() => () => {}) });
  // The role comes with the migrations of the project.
  const { rows } = await client.query('select from pg_roles where rolname = $1', [USER]);
  if (rows.length === 0) return;
  await client.query('begin');
  try {
    await admit(client);
    await client.query('commit');
  } catch (error) {
    await client.query('rollback');
    throw error;
  }
}
