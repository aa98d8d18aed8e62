import type pg from 'pg';
import { seedMessages } from '../search.ts';
import { seedReportedOrganizations } from './organizations.ts';
import { ROWS } from './rows.ts';
import { HELPERS, STAGE_ORGANIZATIONS, STAGE_REQUESTS, STAGE_RUNS, STAGE_TASKS } from './staging.ts';

export type ReportingSize = Readonly<{ organizations: number; runs: number; largestShare: number; messages: number }>;

const STAGES = {
  organizations: STAGE_ORGANIZATIONS,
  tasks: STAGE_TASKS,
  requests: STAGE_REQUESTS,
  runs: STAGE_RUNS,
};

/** The organizations by their number of runs, the largest first; their ids are kept, so that a data set is used again. */
export async function reportedOrganizations(db: pg.Pool): Promise<readonly { id: string; runs: number }[]> {
  const { rows } = await db.query<{ id: string; runs: number }>(
    `select o.id, count(u.id)::integer as runs from app.organizations o join app.runs u on u.organization_id = o.id
     where o.slug like 'reported-%' group by o.id, o.name order by count(u.id) desc, o.name`,
  );
  return rows;
}

/**
 * A year of work: organizations with their profiles, tasks, run requests, runs, log entries, questions and chats. One of them
 * has `largestShare` of the runs, the others share the rest evenly. Triggers and foreign keys are off: per row they would take
 * hours, and what they keep is computed here.
 */
export async function seedReporting(db: pg.Pool, size: ReportingSize): Promise<void> {
  const ids = await seedReportedOrganizations(db, size.organizations);
  const client = await db.connect();
  try {
    await client.query('begin');
    await client.query(`select set_config('session_replication_role', 'replica', true), set_config('work_mem', '512MB', true),
      set_config('maintenance_work_mem', '512MB', true), set_config('synchronous_commit', 'off', true)`);
    for (const statement of HELPERS) await client.query(statement);
    for (const [name, stage] of Object.entries(STAGES)) {
      // The statement that makes a table takes no parameters.
      const text = stage
        .replaceAll('$1', `'{${ids.join(',')}}'`)
        .replaceAll('$2', String(size.runs))
        .replaceAll('$3', String(size.largestShare));
      await client.query(text);
      await client.query(`analyze bench.${name}`);
    }
    for (const statement of ROWS) await client.query(statement);
    await client.query('drop schema bench cascade');
    await client.query('commit');
  } catch (error) {
    await client.query('rollback');
    throw error;
  } finally {
    client.release();
  }
  for (const id of ids) await seedMessages(db, id, size.messages);
  await db.query('vacuum analyze');
}
