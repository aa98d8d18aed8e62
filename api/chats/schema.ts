import { sql } from 'slonik';
import { z } from 'zod';
import type { Queries } from '../../engine/db/call.ts';
import { Problem } from '../../engine/db/problem.ts';
import { requireOrganization, scoped } from '../../engine/db/scope.ts';
import { mapping } from '../../engine/mapping.ts';
import { storedUuid, uuid } from '../fields/ids.ts';
import { dateTime, nullableTimestamp, timestamp } from '../fields/timestamp.ts';
import { ids } from '../http/openapi/example_values.ts';
import { keyColumns } from '../http/pagination.ts';

export const CHAT_STATUSES = ['open', 'archived'] as const;

const settingsSchema = z
  .object({ pinnedTaskIds: z.array(storedUuid).describe('Tasks that clients show next to the chat.') })
  .meta({ id: 'ChatSettings' });

export const chatSchema = z
  .object({
    id: uuid,
    organizationId: uuid,
    title: z.string(),
    status: z.enum(CHAT_STATUSES),
    summary: z.string().nullable().describe('What the chat is about, written by the runtime.'),
    harnessSessionId: z.string().nullable().describe('The session that the runtime continues in the next turn.'),
    settings: settingsSchema,
    lastMessageAt: dateTime.describe('`createdAt` until there is a message.'),
    archivedAt: dateTime.nullable().describe('The chat is removed 30 days after this time.'),
    createdAt: dateTime,
    updatedAt: dateTime,
    isOnboardingChat: z.boolean().describe('The onboarding chat cannot be renamed, archived or deleted.'),
  })
  .meta({ id: 'Chat' });
export type Chat = z.output<typeof chatSchema>;

/** A row of `app.chats`, as `to_jsonb` writes it. */
export const chatRow = z
  .object({
    organization_id: z.string(),
    id: z.string(),
    title: z.string(),
    status: z.enum(CHAT_STATUSES),
    summary: z.string().nullable(),
    harness_session_id: z.string().nullable(),
    settings: settingsSchema,
    is_onboarding: z.boolean(),
    last_message_at: timestamp,
    archived_at: nullableTimestamp,
    created_at: timestamp,
    updated_at: timestamp,
  })
  .pipe(
    mapping(
      (row): Chat => ({
        id: row.id,
        organizationId: row.organization_id,
        title: row.title,
        status: row.status,
        summary: row.summary,
        harnessSessionId: row.harness_session_id,
        settings: row.settings,
        lastMessageAt: row.last_message_at,
        archivedAt: row.archived_at,
        createdAt: row.created_at,
        updatedAt: row.updated_at,
        isOnboardingChat: row.is_onboarding,
      }),
    ),
  );

export const chatResult = z.object({ chat: chatRow });
export const chatPageRow = z.object({ chat: chatRow, ...keyColumns });

export function chatNotFound(): Problem {
  return new Problem(404, 'chat_not_found', 'There is no chat with this id.');
}

/** @throws Problem 404 `organization_not_found` or `chat_not_found` */
export async function getChat(db: Queries, organizationId: string, id: string): Promise<Chat> {
  const found = await db.maybeOne(
    scoped(
      organizationId,
      chatResult,
      sql.fragment`
        select to_jsonb(c) as chat
        from app.chats c
        where c.organization_id = scope.organization_id and c.id = ${id}::uuid`,
    ),
  );
  if (found) return found.chat;
  await requireOrganization(db, organizationId);
  throw chatNotFound();
}

export const chatExample = {
  id: ids.chat,
  organizationId: ids.organization,
  title: 'Weekly sales',
  status: 'open',
  summary: null,
  harnessSessionId: null,
  settings: { pinnedTaskIds: [] },
  lastMessageAt: '2026-11-27T09:11:58.204Z',
  archivedAt: null,
  createdAt: '2026-11-27T09:05:30.870Z',
  updatedAt: '2026-11-27T09:11:58.204Z',
  isOnboardingChat: false,
} satisfies Chat;
