import { sql } from 'slonik';
import { z } from 'zod';
import type { Queries } from '../../engine/db/call.ts';
import { Problem } from '../../engine/db/problem.ts';
import { requireOrganization, scoped } from '../../engine/db/scope.ts';
import { mapping } from '../../engine/mapping.ts';
import { dateTime, nullableTimestamp, timestamp } from '../fields/timestamp.ts';
import { keyColumns } from '../http/pagination.ts';

export const CHAT_STATUSES = ['open', 'archived'] as const;

const settingsSchema = z
  .object({ pinnedTaskIds: z.array(z.string()).describe('Tasks that the chat shows beside it.') })
  .meta({ id: 'ChatSettings' });

/** Contract 2.5. */
export const chatSchema = z
  .object({
    id: z.string(),
    organizationId: z.string(),
    title: z.string(),
    status: z.enum(CHAT_STATUSES),
    summary: z.string().nullable().describe('Kept by the runtime.'),
    harnessSessionId: z.string().nullable().describe("The runtime's own session, which it goes on with."),
    settings: settingsSchema,
    lastMessageAt: dateTime.describe('At first createdAt.'),
    archivedAt: dateTime.nullable(),
    createdAt: dateTime,
    updatedAt: dateTime,
    isOnboardingChat: z.boolean().describe('The onboarding chat cannot be changed.'),
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

export const chatAnswer = z.object({ chat: chatRow });
export const chatPageRow = z.object({ chat: chatRow, ...keyColumns });

export function chatNotFound(): Problem {
  return new Problem(404, 'chat_not_found', 'There is no chat with this id.');
}

/** @throws Problem 404 `organization_not_found` or `chat_not_found` */
export async function getChat(db: Queries, organizationId: string, id: string): Promise<Chat> {
  const found = await db.maybeOne(
    scoped(
      organizationId,
      chatAnswer,
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

const organizationId = '0199f2f4-7d1c-7a52-9b1e-2f4f6a1c0d3e';

export const chatExample = {
  id: '0199f2f6-1c55-7d02-9f6a-3b8e5d2c7a10',
  organizationId,
  title: 'Plans for the spring campaign',
  status: 'open',
  summary: null,
  harnessSessionId: null,
  settings: { pinnedTaskIds: [] },
  lastMessageAt: '2026-01-31T09:30:00.000Z',
  archivedAt: null,
  createdAt: '2026-01-31T09:30:00.000Z',
  updatedAt: '2026-01-31T09:30:00.000Z',
  isOnboardingChat: false,
} satisfies Chat;
