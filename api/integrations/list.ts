import { sql } from 'slonik';
import type { z } from 'zod';
import { call, type Queries } from '../../engine/db/call.ts';
import { requireOrganization } from '../../engine/db/scope.ts';
import { type Keyset, keyset, type Pagination, pageQuery } from '../http/pagination.ts';
import { type Integration, integrationsResult } from './schema.ts';

/** Query of the integration lists: 1 to 200, default 20 (docs/interface.md 4.10). */
export const integrationListQuery = pageQuery({ defaultLimit: 20 });
type Query = Readonly<{ [K in keyof typeof integrationListQuery]: z.output<(typeof integrationListQuery)[K]> }>;

/** A page in the order of keys, behind a SQL function that seeks by them. */
export function pageByKey(list: string, { cursor, limit }: Query): Keyset {
  return keyset({
    list,
    sort: { name: 'key', key: sql.fragment`i.key`, type: 'text', direction: 'asc' },
    id: sql.fragment`i.id`,
    filters: {},
    cursor,
    limit,
  });
}

/** How the function is called for a page. */
export function seekArguments({ position, take }: Keyset) {
  return {
    key: position?.key,
    inclusive: position?.inclusive ?? false,
    backward: position?.backward ?? false,
    limit: take,
  };
}

/** The page of what the function returned, always in the order of keys; `cut`: it ended before the limit, and more follows. */
export function pageOf<T extends Readonly<{ id: string; key: string }>>(
  page: Keyset,
  { items, cut }: Readonly<{ items: readonly T[]; cut: boolean }>,
) {
  const more = cut ? { cursor_rows: items.length + 1 } : {};
  const rows = items.map((item) => ({ item, cursor_key: item.key, cursor_id: item.id, ...more }));
  return page.finish(page.position?.backward ? rows.reverse() : rows, ({ item }) => item);
}

/**
 * One page of an organization's integrations, by key.
 * @throws Problem 404 `organization_not_found`; 400 for a cursor that does not fit
 */
export async function listIntegrations(
  db: Queries,
  organizationId: string,
  query: Query,
): Promise<{ data: Integration[]; pagination: Pagination }> {
  const page = pageByKey(`integrations:${organizationId}`, query);
  const found = await call(db, 'integrations_list', { organizationId, ...seekArguments(page) }, integrationsResult);
  if (found.items.length === 0) await requireOrganization(db, organizationId);
  return pageOf(page, found);
}
