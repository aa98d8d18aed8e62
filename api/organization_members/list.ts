import { sql } from 'slonik';
import type { Queries } from '../../engine/db/call.ts';
import { Problem } from '../../engine/db/problem.ts';
import { requireOrganization, scoped } from '../../engine/db/scope.ts';
import { keyset, type Pagination } from '../http/pagination.ts';
import { type Member, memberPageRow, memberResult } from './schema.ts';

/**
 * One page of an organization's members, by subject.
 * @throws Problem 404 `organization_not_found`; 400 for a cursor that does not fit
 */
export async function listMembers(
  db: Queries,
  organizationId: string,
  query: Readonly<{ cursor?: string | undefined; limit: number }>,
): Promise<{ data: Member[]; pagination: Pagination }> {
  const page = keyset({
    list: `members:${organizationId}`,
    sort: { name: 'subject', key: sql.fragment`m.subject`, type: 'text', direction: 'asc' },
    // Subjects are unique in an organization: there is no tie to break.
    id: sql.fragment`m.organization_id`,
    filters: {},
    cursor: query.cursor,
    limit: query.limit,
  });
  const rows = await db.any(
    scoped(
      organizationId,
      memberPageRow,
      sql.fragment`
        select to_jsonb(m) as member, ${page.columns}
        from app.organization_members m
        where m.organization_id = scope.organization_id and ${page.where}
        ${page.orderAndLimit}`,
    ),
  );
  if (rows.length === 0) await requireOrganization(db, organizationId);
  return page.finish(rows, (row) => row.member);
}

/** @throws Problem 404 `organization_not_found` or `not_found` */
export async function getMember(db: Queries, organizationId: string, subject: string): Promise<Member> {
  const found = await db.maybeOne(
    scoped(
      organizationId,
      memberResult,
      sql.fragment`
        select to_jsonb(m) as member
        from app.organization_members m
        where m.organization_id = scope.organization_id
          and m.subject = ${subject}`,
    ),
  );
  if (found) return found.member;
  await requireOrganization(db, organizationId);
  throw new Problem(404, 'not_found', 'The organization has no member with this subject.');
}
