import { sql } from 'slonik';
import { z } from 'zod';
import type { Queries } from '../../engine/db/call.ts';
import { conditions } from '../../engine/db/conditions.ts';
import { requireOrganization, scoped } from '../../engine/db/scope.ts';
import { instant } from '../fields/instant.ts';
import { AUDIT_ACTIONS } from '../http/decision.ts';
import { columnBytes, keyset, type Pagination, pageQuery } from '../http/pagination.ts';
import { ACTOR_KINDS, type AuditEntry, auditEntryPageRow } from './schema.ts';

/** Query of the audit log. */
export const auditListQuery = {
  ...pageQuery(),
  action: z.enum(AUDIT_ACTIONS).optional().describe('Entries of this action.'),
  actorKind: z.enum(ACTOR_KINDS).optional().describe('Decisions of members, platform operators or administrators.'),
  since: instant.optional().describe('Entries at or after this time.'),
  until: instant.optional().describe('Entries before this time.'),
};
const querySchema = z.object(auditListQuery);

/**
 * One page of an organization's audit log, newest first.
 * @throws Problem 404 `organization_not_found`; 400 for a cursor that does not fit
 */
export async function listAuditEntries(
  db: Queries,
  organizationId: string,
  query: z.output<typeof querySchema>,
): Promise<{ data: AuditEntry[]; pagination: Pagination }> {
  const { cursor, limit, action, actorKind, since, until } = query;
  const page = keyset({
    list: `audit:${organizationId}`,
    sort: { name: 'createdAt', key: sql.fragment`a.created_at`, type: 'timestamptz', direction: 'desc' },
    id: sql.fragment`a.id`,
    filters: { action, actorKind, since, until },
    cursor,
    limit,
    bytes: sql.fragment`${columnBytes(sql.fragment`a.arguments`)} + ${columnBytes(sql.fragment`a.result`)}`,
  });
  const after = since === undefined ? sql.fragment`true` : sql.fragment`a.created_at >= ${since}::timestamptz`;
  const before = until === undefined ? sql.fragment`true` : sql.fragment`a.created_at < ${until}::timestamptz`;
  const rows = await db.any(
    scoped(
      organizationId,
      auditEntryPageRow,
      page.bounded(sql.fragment`
        select to_jsonb(a) as entry, ${page.columns}
        from app.audit_entries a
        where a.organization_id = scope.organization_id and ${conditions('a', { action, actor_kind: actorKind })}
          and ${after} and ${before} and ${page.where}
        ${page.orderAndLimit}`),
    ),
  );
  if (rows.length === 0) await requireOrganization(db, organizationId);
  return page.finish(rows, (row) => row.entry);
}
