import { type FragmentSqlToken, type QuerySqlToken, sql } from 'slonik';
import { z } from 'zod';
import type { Queries } from './call.ts';
import { Problem } from './problem.ts';

/**
 * A tenant's read in one round trip: the tenant is set and read by the same statement, so that row security lets its
 * rows through. `select` sees `scope.organization_id` and says `where t.organization_id = scope.organization_id`.
 * `offset 0` keeps the planner from turning the order round: rows looked at before the tenant is set would not show.
 * A deleted organization shows nothing from the moment of its deletion, although its rows are removed later.
 */
export function scoped<S extends z.ZodType>(
  organizationId: string,
  row: S,
  select: FragmentSqlToken,
): QuerySqlToken<S> {
  return sql.type(row)`
    with scope as materialized (
      select set_config('app.organization_id', ${organizationId}, true)::uuid as organization_id
    )
    select t.*
    from scope
    cross join lateral (
      select
      from app.organizations o
      where o.id = scope.organization_id
        and o.deleted_at is null
      offset 0
    ) alive
    cross join lateral (select s.* from (${select}) s offset 0) t`;
}

/** 404 for an organization that is not there, is being deleted, or is not the caller's. */
export function organizationNotFound(): Problem {
  return new Problem(404, 'organization_not_found', 'There is no organization with this id.');
}

const foundRow = z.object({ found: z.boolean() });

/**
 * Tells an empty list from one of an organization that is not there (or is being deleted).
 * @throws Problem 404 `organization_not_found`
 */
export async function requireOrganization(queries: Queries, organizationId: string): Promise<void> {
  const found = await queries.maybeOne(scoped(organizationId, foundRow, sql.fragment`select true as found`));
  if (!found) throw organizationNotFound();
}
