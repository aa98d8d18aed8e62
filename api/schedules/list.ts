import { sql } from 'slonik';
import { z } from 'zod';
import type { Queries } from '../../engine/db/call.ts';
import { conditions } from '../../engine/db/conditions.ts';
import { Problem } from '../../engine/db/problem.ts';
import { requireOrganization, scoped } from '../../engine/db/scope.ts';
import { isUuid } from '../fields/ids.ts';
import { keyset, type Pagination, pageQuery } from '../http/pagination.ts';
import { SCHEDULE_STATUSES, type Schedule, schedulePageRow, scheduleResult } from './schema.ts';

/** Query of the schedule lists (docs/interface.md 4.17). */
export const scheduleListQuery = {
  ...pageQuery(),
  status: z.enum(SCHEDULE_STATUSES).optional().describe('Schedules with this status.'),
};
const querySchema = z.object(scheduleListQuery);

/**
 * One page of an organization's schedules, newest first.
 * @throws Problem 404 `organization_not_found`; 400 for a cursor that does not fit
 */
export async function listSchedules(
  db: Queries,
  organizationId: string,
  query: z.output<typeof querySchema>,
): Promise<{ data: Schedule[]; pagination: Pagination }> {
  const { cursor, limit, status } = query;
  const page = keyset({
    list: `schedules:${organizationId}`,
    sort: { name: 'createdAt', key: sql.fragment`s.created_at`, type: 'timestamptz', direction: 'desc' },
    id: sql.fragment`s.id`,
    filters: { status },
    cursor,
    limit,
  });
  const rows = await db.any(
    scoped(
      organizationId,
      schedulePageRow,
      sql.fragment`
        select to_jsonb(s) as schedule, ${page.columns}
        from app.schedules s
        where s.organization_id = scope.organization_id and ${conditions('s', { status })} and ${page.where}
        ${page.orderAndLimit}`,
    ),
  );
  if (rows.length === 0) await requireOrganization(db, organizationId);
  return page.finish(rows, (row) => row.schedule);
}

/** @throws Problem 404 `organization_not_found` or `not_found` */
export async function getSchedule(db: Queries, organizationId: string, ref: string): Promise<Schedule> {
  const byRef = isUuid(ref) ? sql.fragment`s.id = ${ref}::uuid` : sql.fragment`s.key = ${ref}`;
  const found = await db.maybeOne(
    scoped(
      organizationId,
      scheduleResult,
      sql.fragment`
        select to_jsonb(s) as schedule
        from app.schedules s
        where s.organization_id = scope.organization_id and ${byRef}`,
    ),
  );
  if (found) return found.schedule;
  await requireOrganization(db, organizationId);
  throw new Problem(404, 'not_found', 'There is no schedule with this id or key.');
}
