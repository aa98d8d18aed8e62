import { sql } from 'slonik';
import { z } from 'zod';
import { mapping } from '../../engine/mapping.ts';
import { uuid } from '../fields/ids.ts';
import { dateTime, nullableTimestamp, timestamp } from '../fields/timestamp.ts';
import { ids } from '../http/openapi/example_values.ts';
import { keyColumns } from '../http/pagination.ts';
import { partSchema } from './parts.ts';

export const MESSAGE_ROLES = ['user', 'assistant'] as const;
export const MESSAGE_STATUSES = ['pending', 'complete', 'cancelling', 'cancelled', 'failed'] as const;

/** Who wrote it. */
export const authorSchema = z
  .object({
    kind: z.string().describe('`human`, `agent`, or a kind that the client chooses.'),
    displayName: z.string().optional(),
  })
  .meta({ id: 'MessageAuthor', description: 'Who wrote the message.' });

const errorSchema = z
  .object({ code: z.string(), message: z.string(), retryable: z.boolean() })
  .meta({ id: 'MessageError', description: 'Why the reply failed.' });

export const messageSchema = z
  .object({
    id: uuid,
    organizationId: uuid,
    chatId: uuid,
    replyToMessageId: uuid.nullable().describe('The user message that an assistant message replies to.'),
    role: z.enum(MESSAGE_ROLES),
    status: z
      .enum(MESSAGE_STATUSES)
      .describe(
        'User messages are `complete`. A reply is `pending` while its revisions arrive, and `cancelling` after a cancel until it is `cancelled`.',
      ),
    revision: z.int().describe('Rises with each change of an assistant message.'),
    author: authorSchema.nullable(),
    parts: z.array(partSchema),
    error: errorSchema.nullable().describe('With status `failed`.'),
    completedAt: dateTime.nullable().describe('When the message became final.'),
    createdAt: dateTime,
    updatedAt: dateTime,
  })
  .meta({ id: 'Message' });
export type Message = z.output<typeof messageSchema>;

/** A row of `app.messages`, as `to_jsonb` writes it. */
export const messageRow = z
  .object({
    organization_id: z.string(),
    id: z.string(),
    chat_id: z.string(),
    reply_to_message_id: z.string().nullable(),
    role: z.enum(MESSAGE_ROLES),
    status: z.enum(MESSAGE_STATUSES),
    revision: z.int(),
    author: authorSchema.nullable(),
    parts: z.array(partSchema),
    error: errorSchema.nullable(),
    completed_at: nullableTimestamp,
    created_at: timestamp,
    updated_at: timestamp,
  })
  .pipe(
    mapping(
      (row): Message => ({
        id: row.id,
        organizationId: row.organization_id,
        chatId: row.chat_id,
        replyToMessageId: row.reply_to_message_id,
        role: row.role,
        status: row.status,
        revision: row.revision,
        author: row.author,
        parts: row.parts,
        error: row.error,
        completedAt: row.completed_at,
        createdAt: row.created_at,
        updatedAt: row.updated_at,
      }),
    ),
  );

/** The message of `m` for a select list, without the copy of its text that is searched. */
export const messageSelect = sql.fragment`to_jsonb(m) - 'search_text' as message`;
export const messageResult = z.object({ message: messageRow });
export const messagePageRow = z.object({ message: messageRow, ...keyColumns });

const example = {
  organizationId: ids.organization,
  chatId: ids.chat,
  error: null,
  createdAt: '2026-11-27T09:11:58.204Z',
  updatedAt: '2026-11-27T09:11:58.204Z',
} as const;

export const userMessageExample = {
  ...example,
  id: ids.userMessage,
  replyToMessageId: null,
  role: 'user',
  status: 'complete',
  revision: 1,
  author: { kind: 'human', displayName: 'Aiko Tanaka' },
  parts: [{ id: '01a21c46-97fc-7a2b-970d-a03b466b3aa9', kind: 'text', text: 'How did sales go this week?' }],
  completedAt: '2026-11-27T09:11:58.204Z',
} satisfies Message;

export const assistantMessageExample = {
  ...example,
  id: ids.assistantMessage,
  replyToMessageId: userMessageExample.id,
  role: 'assistant',
  status: 'pending',
  revision: 1,
  author: { kind: 'agent', displayName: 'Chat' },
  parts: [],
  completedAt: null,
} satisfies Message;
