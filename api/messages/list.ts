import { sql } from 'slonik';
import { z } from 'zod';
import type { Queries } from '../../engine/db/call.ts';
import { conditions } from '../../engine/db/conditions.ts';
import { Problem } from '../../engine/db/problem.ts';
import { requireOrganization, scoped } from '../../engine/db/scope.ts';
import { getChat } from '../chats/schema.ts';
import { columnBytes, keyset, type Pagination, pageQuery } from '../http/pagination.ts';
import {
  MESSAGE_ROLES,
  MESSAGE_STATUSES,
  type Message,
  messagePageRow,
  messageResult,
  messageSelect,
} from './schema.ts';

/** Query of the message list (docs/interface.md 4.4). */
export const messageListQuery = {
  ...pageQuery(),
  role: z.enum(MESSAGE_ROLES).optional().describe('Messages of users, or of the assistant.'),
  status: z.enum(MESSAGE_STATUSES).optional().describe('Messages with this status.'),
};
const querySchema = z.object(messageListQuery);

/**
 * One page of a chat's messages, oldest first.
 * @throws Problem 404 `organization_not_found` or `chat_not_found`; 400 for a cursor that does not fit
 */
export async function listMessages(
  db: Queries,
  organizationId: string,
  chatId: string,
  query: z.output<typeof querySchema>,
): Promise<{ data: Message[]; pagination: Pagination }> {
  const { cursor, limit, ...filters } = query;
  const page = keyset({
    list: `messages:${organizationId}:${chatId}`,
    sort: { name: 'createdAt', key: sql.fragment`m.created_at`, type: 'timestamptz', direction: 'asc' },
    id: sql.fragment`m.id`,
    filters,
    cursor,
    limit,
    bytes: columnBytes(sql.fragment`m.parts`),
  });
  const rows = await db.any(
    scoped(
      organizationId,
      messagePageRow,
      page.bounded(sql.fragment`
        select ${messageSelect}, ${page.columns}
        from app.chats c
        join app.messages m on m.organization_id = c.organization_id and m.chat_id = c.id
        where c.organization_id = scope.organization_id and c.id = ${chatId}::uuid
          and ${conditions('m', filters)} and ${page.where}
        ${page.orderAndLimit}`),
    ),
  );
  if (rows.length === 0) await getChat(db, organizationId, chatId);
  return page.finish(rows, (row) => row.message);
}

/** @throws Problem 404 `organization_not_found` or `message_not_found` */
export async function getMessage(db: Queries, organizationId: string, id: string): Promise<Message> {
  const found = await db.maybeOne(
    scoped(
      organizationId,
      messageResult,
      sql.fragment`
        select ${messageSelect}
        from app.messages m
        join app.chats c on c.organization_id = m.organization_id and c.id = m.chat_id
        where m.organization_id = scope.organization_id and m.id = ${id}::uuid`,
    ),
  );
  if (found) return found.message;
  await requireOrganization(db, organizationId);
  throw new Problem(404, 'message_not_found', 'There is no message with this id.');
}
