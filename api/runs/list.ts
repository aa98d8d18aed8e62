import { sql } from 'slonik';
import { z } from 'zod';
import type { Queries } from '../../engine/db/call.ts';
import { conditions } from '../../engine/db/conditions.ts';
import { Problem } from '../../engine/db/problem.ts';
import { requireOrganization, scoped } from '../../engine/db/scope.ts';
import { uuid } from '../fields/ids.ts';
import { columnBytes, keyset, type Pagination, pageQuery } from '../http/pagination.ts';
import { RUN_STATUSES, type Run, runMode, runPageRow, runRow, runSelect } from './schema.ts';

/** Query of the run list (docs/interface.md 4.7). */
export const runListQuery = {
  ...pageQuery(),
  taskId: uuid.optional().describe('Runs of this task.'),
  agentProfileId: uuid.optional().describe('Runs by this profile.'),
  status: z.enum(RUN_STATUSES).optional().describe('Runs with this status.'),
  mode: runMode.optional().describe('Runs with this mode.'),
};
const querySchema = z.object(runListQuery);

/**
 * One page of an organization's task runs, newest first.
 * @throws Problem 404 `organization_not_found`; 400 for a cursor that does not fit
 */
export async function listRuns(
  db: Queries,
  organizationId: string,
  query: z.output<typeof querySchema>,
): Promise<{ data: Run[]; pagination: Pagination }> {
  const filters = {
    task_id: query.taskId,
    agent_profile_id: query.agentProfileId,
    status: query.status,
    mode: query.mode,
  };
  const page = keyset({
    list: `runs:${organizationId}`,
    sort: { name: 'createdAt', key: sql.fragment`u.created_at`, type: 'timestamptz', direction: 'desc' },
    id: sql.fragment`u.id`,
    filters,
    cursor: query.cursor,
    limit: query.limit,
    bytes: sql.fragment`${columnBytes(sql.fragment`u.output`)} + ${columnBytes(sql.fragment`u.receipts`)} + ${columnBytes(sql.fragment`u.error`)}`,
  });
  const rows = await db.any(
    scoped(
      organizationId,
      runPageRow,
      page.bounded(sql.fragment`
        select ${runSelect}, ${page.columns}
        from app.runs u
        join app.organizations o on o.id = u.organization_id
        join app.agent_profiles p on p.organization_id = u.organization_id and p.id = u.agent_profile_id
        where u.organization_id = scope.organization_id and u.kind = 'task' and ${conditions('u', filters)}
          and ${page.where}
        ${page.orderAndLimit}`),
    ),
  );
  if (rows.length === 0) await requireOrganization(db, organizationId);
  return page.finish(rows, (row) => row.run);
}

/** @throws Problem 404 `run_not_found` */
export async function getRun(db: Queries, organizationId: string, runId: string): Promise<Run> {
  const run = await db.maybeOne(
    scoped(
      organizationId,
      runRow,
      sql.fragment`
        select ${runSelect}
        from app.runs u
        join app.organizations o on o.id = u.organization_id
        join app.agent_profiles p on p.organization_id = u.organization_id and p.id = u.agent_profile_id
        where u.organization_id = scope.organization_id and u.id = ${runId}::uuid and u.kind = 'task'`,
    ),
  );
  if (!run) throw runNotFound();
  return run;
}

export function runNotFound(): Problem {
  return new Problem(404, 'run_not_found', 'There is no run with this id.');
}
