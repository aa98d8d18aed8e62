import { sql } from 'slonik';
import { z } from 'zod';
import { catalog } from '../catalog.ts';
import type { JobHandler } from './handler.ts';

const row = z.object({ task: z.string(), stray: z.boolean(), jobs: z.int() });

/**
 * Tells of jobs that nobody will run unless a person does something: given up, or of a task that is not in the catalog. One that
 * was replaced while it ran, and then failed, is no such job: it has lost its key, its successor does the work, and it ends here
 * (one whose process died: `recovery.ts`).
 */
export const jobsCheck: JobHandler<'runner__check'> = async (_payload, { db, log }) => {
  await db.query(sql.unsafe`
    select graphile_worker.complete_jobs(array_agg(id)) from graphile_worker.jobs
    where key is null and locked_at is null and attempts >= max_attempts having count(*) > 0`);
  const known = sql.array(Object.keys(catalog), 'text');
  const rows = await db.any(sql.type(row)`
    select task_identifier as task, task_identifier <> all (${known}) as stray, count(*)::int as jobs
    from graphile_worker.jobs
    where locked_at is null
      and (attempts >= max_attempts or task_identifier <> all (${known}) and run_at < now() - interval '10 minutes')
    group by task_identifier`);
  for (const { task, stray, jobs } of rows) {
    // During a release they may wait for a newer process; after it they are a mistake.
    if (stray) log.error({ task, jobs }, 'jobs wait whose task this version does not have');
    else log.error({ task, jobs }, 'jobs were given up: see last_error in graphile_worker.jobs');
  }
  return 'done';
};
