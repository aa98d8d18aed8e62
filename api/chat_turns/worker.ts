import { z } from 'zod';
import { call } from '../../engine/db/call.ts';
import { attachmentBytesRow } from '../chat_attachments/schema.ts';
import { chatExample, chatRow, chatSchema } from '../chats/schema.ts';
import { uuid } from '../fields/ids.ts';
import { sendBytes } from '../http/bytes.ts';
import { type Endpoint, endpoint } from '../http/endpoint.ts';
import { invalid, toProblem } from '../http/errors.ts';
import { ids, valuesByName } from '../http/openapi/example_values.ts';
import { queryInteger } from '../http/query.ts';
import { messageRow, messageSchema, userMessageExample } from '../messages/schema.ts';
import { leaseFields, messageBody, runId } from '../runs/changes.ts';
import { replyEnd } from './reply_end.ts';

const headers = {
  'x-organization-id': uuid.describe('The organization of the run.'),
  'x-lease-token': leaseFields.leaseToken,
};

const writtenSchema = z
  .object({
    revision: z.int().describe('The new revision: `baseRevision` of the next write.'),
    status: z.string().describe('`pending`; or `cancelling`: nothing was written, and the turn is to end.'),
  })
  .meta({ id: 'RunMessageWritten' });

const conversationFields = { messageId: z.string(), userMessageId: z.string(), earlier: z.boolean() };
const conversationSchema = z
  .object({
    chat: chatSchema,
    messageId: uuid.describe('The reply that the turn writes.'),
    userMessageId: uuid.describe('The message to reply to: the last of `messages`.'),
    messages: z.array(messageSchema).describe('Oldest first.'),
    earlier: z.boolean().describe('True if there are messages before these.'),
  })
  .meta({
    id: 'RunConversation',
    example: { chat: chatExample, messages: [userMessageExample], earlier: false },
  });
const conversationResult = z.object({ ...conversationFields, chat: chatRow, messages: z.array(messageRow) });

const CONVERSATION_MAX_BYTES = 1024 * 1024;

/** These routes have no 404: an attachment that is not there is a mistake in the request. */
const attachmentResult = z.object({ attachment: attachmentBytesRow });

function noSuchAttachment(error: unknown): never {
  if (toProblem(error).problem.status === 404)
    throw invalid('attachmentId', 'is not an attachment of the chat, or its bytes are gone');
  throw error;
}

/** What a runtime needs for a chat turn. */
export function chatTurnEndpoints(): readonly Endpoint[] {
  return [
    endpoint({
      method: 'post',
      path: '/internal/runs/{runId}/message',
      audience: 'worker',
      tag: 'Workers',
      operationId: 'writeRunMessage',
      summary: 'Write a revision of a chat reply',
      description:
        'Either all parts, or text to append. Each write is a revision, which the event streams of the chat send. Repeating a write returns the same revision; if `baseRevision` is not the current one, the call is 409 with `differs`. After a cancel nothing is written.',
      params: { runId },
      body: messageBody,
      response: { data: writtenSchema },
      example: {
        body: {
          organizationId: ids.organization,
          leaseToken: valuesByName['leaseToken'],
          baseRevision: 1,
          append: 'Sales rose most in the north.',
        },
        data: { revision: 2, status: 'pending' },
      },
      continued({ db, params, body: { append, organizationId } }) {
        if (append === undefined) return undefined;
        return { field: 'append', text: append, before: () => replyEnd(db, organizationId, params.runId) };
      },
      async handler({ db, params, body }) {
        const args = {
          organizationId: body.organizationId,
          runId: params.runId,
          leaseToken: body.leaseToken,
          baseRevision: body.baseRevision,
          parts: body.parts,
          append: body.append,
        };
        return call(db, 'run_message_write', args, writtenSchema);
      },
    }),
    endpoint({
      method: 'get',
      path: '/internal/runs/{runId}/conversation',
      audience: 'worker',
      tag: 'Workers',
      operationId: 'getRunConversation',
      summary: 'Read the conversation of a chat turn',
      description: 'The latest messages up to the one to reply to: at most `limit`, and at most 1 MiB of parts.',
      params: { runId },
      query: {
        limit: queryInteger({ minimum: 1, maximum: 200, default: 100, description: 'Most messages to return.' }),
      },
      headers,
      response: { data: conversationSchema },
      handler: ({ db, params, query, headers: lease }) =>
        call(
          db,
          'run_conversation',
          {
            organizationId: lease['x-organization-id'],
            runId: params.runId,
            leaseToken: lease['x-lease-token'],
            limit: query.limit,
            maxBytes: CONVERSATION_MAX_BYTES,
          },
          conversationResult,
        ),
    }),
    endpoint({
      method: 'get',
      path: '/internal/runs/{runId}/attachments/{attachmentId}/content',
      audience: 'worker',
      tag: 'Workers',
      operationId: 'getRunAttachment',
      summary: 'Download an attachment in a chat turn',
      description: 'Supports byte ranges and `If-None-Match`.',
      params: { runId, attachmentId: uuid.describe('`attachmentId` of a message part.') },
      headers,
      response: {
        stream: true,
        mediaType: 'application/octet-stream',
        ranges: true,
        description: 'The bytes as they were stored.',
      },
      errors: [{ status: 400, code: 'validation_failed', when: 'the chat has no attachment with this id' }],
      async handler({ db, services, params, headers: lease, req, res, signal }) {
        const args = {
          organizationId: lease['x-organization-id'],
          runId: params.runId,
          leaseToken: lease['x-lease-token'],
          attachmentId: params.attachmentId,
        };
        await call(db, 'run_attachment', args, attachmentResult)
          .then(({ attachment }) => sendBytes(req, res, { ...attachment, storage: services.storage, signal }))
          .catch(noSuchAttachment);
      },
    }),
  ];
}
