import { sql } from 'slonik';
import { z } from 'zod';
import type { Queries } from '../../engine/db/call.ts';
import { Problem } from '../../engine/db/problem.ts';
import { requireOrganization, scoped } from '../../engine/db/scope.ts';
import { keyset, type Pagination, pageQuery } from '../http/pagination.ts';
import { department } from '../organizations/schema.ts';
import {
  type AgentProfile,
  agentProfilePageRow,
  agentProfileResult,
  PROFILE_KINDS,
  PROFILE_STATUSES,
} from './schema.ts';

/** Query of the profile list. */
export const agentProfileListQuery = {
  ...pageQuery(),
  kind: z.enum(PROFILE_KINDS).optional().describe('Profiles of this kind.'),
  status: z.enum(PROFILE_STATUSES).optional().describe('Profiles with this status.'),
  department: department.optional().describe('Profiles of this department.'),
};
const querySchema = z.object(agentProfileListQuery);

/**
 * One page of an organization's profiles, newest first.
 * @throws Problem 404 `organization_not_found`; 400 for a cursor that does not fit
 */
export async function listAgentProfiles(
  db: Queries,
  organizationId: string,
  query: z.output<typeof querySchema>,
): Promise<{ data: AgentProfile[]; pagination: Pagination }> {
  const { cursor, limit, ...filters } = query;
  const page = keyset({
    list: `agent_profiles:${organizationId}`,
    sort: { name: 'createdAt', key: sql.fragment`p.created_at`, type: 'timestamptz', direction: 'desc' },
    id: sql.fragment`p.id`,
    filters,
    cursor,
    limit,
  });
  const conditions = Object.entries(filters).flatMap(([column, value]) =>
    value === undefined ? [] : [sql.fragment`${sql.identifier(['p', column])} = ${value}`],
  );
  const rows = await db.any(
    scoped(
      organizationId,
      agentProfilePageRow,
      sql.fragment`
        select to_jsonb(p) as agent_profile, ${page.columns}
        from app.agent_profiles p
        where p.organization_id = scope.organization_id
          and ${sql.join([sql.fragment`p.deleted_at is null`, ...conditions, page.where], sql.fragment` and `)}
        ${page.orderAndLimit}`,
    ),
  );
  if (rows.length === 0) await requireOrganization(db, organizationId);
  return page.finish(rows, (row) => row.agent_profile);
}

/** @throws Problem 404 `organization_not_found` or `agent_profile_not_found` */
export async function getAgentProfile(db: Queries, organizationId: string, id: string): Promise<AgentProfile> {
  const found = await db.maybeOne(
    scoped(
      organizationId,
      agentProfileResult,
      sql.fragment`
        select to_jsonb(p) as agent_profile
        from app.agent_profiles p
        where p.organization_id = scope.organization_id
          and p.id = ${id}
          and p.deleted_at is null`,
    ),
  );
  if (found) return found.agent_profile;
  await requireOrganization(db, organizationId);
  throw new Problem(404, 'agent_profile_not_found', 'There is no agent profile with this id.');
}
