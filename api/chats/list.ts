import { sql } from 'slonik';
import { z } from 'zod';
import type { Queries } from '../../engine/db/call.ts';
import { conditions } from '../../engine/db/conditions.ts';
import { functionCall } from '../../engine/db/function_call.ts';
import { requireOrganization, scoped } from '../../engine/db/scope.ts';
import { type Keyset, keyset, type Pagination, pageQuery } from '../http/pagination.ts';
import { CHAT_STATUSES, type Chat, chatPageRow } from './schema.ts';

/** Query of the chat list (docs/interface.md 4.4). */
export const chatListQuery = {
  ...pageQuery(),
  status: z.enum(CHAT_STATUSES).optional().describe('Chats with this status. Default: all.'),
  search: z
    .string()
    .min(1)
    .max(200)
    .optional()
    .describe(
      'Chats whose title or visible messages contain this text. Case and Unicode form (composed, full-width, ß or ss) are ignored; no character has a special meaning. What lies beyond the first 30,000 characters of a message is found moments after it is final.',
    ),
};
const querySchema = z.object(chatListQuery);

/**
 * One page of an organization's chats, the one with the latest message first.
 * @throws Problem 404 `organization_not_found`; 400 for a cursor that does not fit
 */
export async function listChats(
  db: Queries,
  organizationId: string,
  query: z.output<typeof querySchema>,
): Promise<{ data: Chat[]; pagination: Pagination }> {
  const { cursor, limit, status, search } = query;
  const page = keyset({
    list: `chats:${organizationId}`,
    sort: { name: 'lastMessageAt', key: sql.fragment`c.last_message_at`, type: 'timestamptz', direction: 'desc' },
    id: sql.fragment`c.id`,
    filters: { status, search },
    cursor,
    limit,
  });
  const from =
    search === undefined
      ? sql.fragment`
          app.chats c
          where c.organization_id = scope.organization_id and ${conditions('c', { status })} and ${page.where}`
      : searched(organizationId, search, status, page);
  const rows = await db.any(
    scoped(
      organizationId,
      chatPageRow,
      sql.fragment`select to_jsonb(c) as chat, ${page.columns} from ${from} ${page.orderAndLimit}`,
    ),
  );
  if (rows.length === 0) await requireOrganization(db, organizationId);
  return page.finish(rows, (row) => row.chat);
}

/** The page of a search: the function seeks and limits by itself, nearest row first. */
function searched(organizationId: string, search: string, status: string | undefined, { position, take }: Keyset) {
  const seek = functionCall('chats_search', {
    organizationId,
    search,
    status,
    lastMessageAtUs: position?.key,
    id: position?.id,
    inclusive: position?.inclusive ?? false,
    backward: position?.backward ?? false,
    limit: take,
  });
  return sql.fragment`${seek} c`;
}
