import { sql } from 'slonik';
import { z } from 'zod';
import { mapping } from '../../engine/mapping.ts';
import { dateTime, nullableTimestamp, timestamp } from '../fields/timestamp.ts';
import { keyColumns } from '../http/pagination.ts';
import { partSchema } from './parts.ts';

export const MESSAGE_ROLES = ['user', 'assistant'] as const;
export const MESSAGE_STATUSES = ['pending', 'complete', 'cancelling', 'cancelled', 'failed'] as const;

/** Who wrote it. */
export const authorSchema = z
  .object({ kind: z.string(), displayName: z.string().optional() })
  .meta({ id: 'MessageAuthor', description: 'Who wrote the message.' });

const errorSchema = z
  .object({ code: z.string(), message: z.string(), retryable: z.boolean() })
  .meta({ id: 'MessageError', description: 'Why an answer has failed.' });

/** Contract 2.6. */
export const messageSchema = z
  .object({
    id: z.string(),
    organizationId: z.string(),
    chatId: z.string(),
    replyToMessageId: z.string().nullable().describe('The user message that an assistant message answers.'),
    role: z.enum(MESSAGE_ROLES),
    status: z
      .enum(MESSAGE_STATUSES)
      .describe('User messages are complete. Answers are pending while their revisions arrive.'),
    revision: z.int().describe('Rises with each update of an assistant message.'),
    author: authorSchema.nullable(),
    parts: z.array(partSchema),
    error: errorSchema.nullable(),
    completedAt: dateTime.nullable(),
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
export const messageAnswer = z.object({ message: messageRow });
export const messagePageRow = z.object({ message: messageRow, ...keyColumns });

const example = {
  organizationId: '0199f2f4-7d1c-7a52-9b1e-2f4f6a1c0d3e',
  chatId: '0199f2f6-1c55-7d02-9f6a-3b8e5d2c7a10',
  error: null,
  createdAt: '2026-01-31T09:30:00.000Z',
  updatedAt: '2026-01-31T09:30:00.000Z',
} as const;

export const userMessageExample = {
  ...example,
  id: '0199f2f6-4a10-7e31-8c27-5d9b1f3e6a42',
  replyToMessageId: null,
  role: 'user',
  status: 'complete',
  revision: 1,
  author: { kind: 'human', displayName: 'Anna' },
  parts: [{ id: '0199f2f6-4a11-70c5-9d3e-2a4c6e8b0f13', kind: 'text', text: 'Which region grew most in January?' }],
  completedAt: '2026-01-31T09:30:00.000Z',
} satisfies Message;

export const assistantMessageExample = {
  ...example,
  id: '0199f2f6-4a12-7b64-a1f8-7c0e2d4b6a95',
  replyToMessageId: userMessageExample.id,
  role: 'assistant',
  status: 'pending',
  revision: 1,
  author: { kind: 'agent', displayName: 'Chat' },
  parts: [],
  completedAt: null,
} satisfies Message;
