import { sql } from 'slonik';
import { z } from 'zod';
import type { Queries } from '../../engine/db/call.ts';
import { functionCall } from '../../engine/db/function_call.ts';
import { organizationNotFound, scoped } from '../../engine/db/scope.ts';
import type { OwnerCaller } from '../http/caller.ts';
import { keyset, type Pagination, pageQuery } from '../http/pagination.ts';
import { ORGANIZATION_STATUSES, type Organization, organizationPageRow, organizationResult } from './schema.ts';

/** Query of the organization list (docs/interface.md 4.2). */
export const organizationListQuery = {
  ...pageQuery(),
  status: z.enum(ORGANIZATION_STATUSES).optional().describe('Organizations with this status.'),
};
const querySchema = z.object(organizationListQuery);

/**
 * One page of all organizations (platform operators), or of the caller's own.
 * @throws Problem 400 for a cursor that does not fit
 */
export async function listOrganizations(
  db: Queries,
  caller: OwnerCaller,
  query: z.output<typeof querySchema>,
): Promise<{ data: Organization[]; pagination: Pagination }> {
  const page = keyset({
    list: 'organizations',
    sort: { name: 'createdAt', key: sql.fragment`o.created_at`, type: 'timestamptz', direction: 'desc' },
    id: sql.fragment`o.id`,
    filters: { status: query.status },
    cursor: query.cursor,
    limit: query.limit,
  });
  const { position } = page;
  const seek = functionCall('organizations_list', {
    subject: caller.subject,
    status: query.status,
    createdAtUs: position?.key,
    id: position?.id,
    inclusive: position?.inclusive ?? false,
    backward: position?.backward ?? false,
    limit: page.take,
  });
  const rows = await db.any(sql.type(organizationPageRow)`
    select to_jsonb(o) as organization, ${page.columns} from ${seek} o ${page.orderAndLimit}`);
  return page.finish(rows, (row) => row.organization);
}

/** @throws Problem 404 `organization_not_found` */
export async function getOrganization(db: Queries, organizationId: string): Promise<Organization> {
  const found = await db.maybeOne(
    scoped(
      organizationId,
      organizationResult,
      sql.fragment`
        select to_jsonb(o) as organization
        from app.organizations o
        where o.id = scope.organization_id`,
    ),
  );
  if (!found) throw organizationNotFound();
  return found.organization;
}
