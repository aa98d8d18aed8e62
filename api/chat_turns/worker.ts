import { z } from 'zod';
import { call } from '../../engine/db/call.ts';
import { attachmentBytesRow } from '../chat_attachments/schema.ts';
import { CHAT_CHANNEL, chatPayload } from '../chats/events/hub.ts';
import { chatExample, chatRow, chatSchema } from '../chats/schema.ts';
import { uuid } from '../fields/ids.ts';
import { sendBytes } from '../http/bytes.ts';
import { type Endpoint, endpoint } from '../http/endpoint.ts';
import { invalid, toProblem } from '../http/errors.ts';
import { queryInteger } from '../http/query.ts';
import { messageRow, messageSchema } from '../messages/schema.ts';
import { leaseFields, messageBody, runId } from '../runs/changes.ts';

const headers = { 'x-organization-id': uuid, 'x-lease-token': leaseFields.leaseToken };

const writtenSchema = z
  .object({
    revision: z.int().describe('The next baseRevision.'),
    status: z.string().describe('`cancelling`: nothing was written, and the turn is to end.'),
  })
  .meta({ id: 'RunMessageWritten' });
const writtenAnswer = z.object({ ...writtenSchema.shape, chatId: z.string() });

const conversationFields = { messageId: z.string(), userMessageId: z.string(), earlier: z.boolean() };
const conversationSchema = z
  .object({
    chat: chatSchema,
    messageId: z.string().describe('The answer that the turn writes.'),
    userMessageId: z.string().describe('The message that it answers: the last of the list.'),
    messages: z.array(messageSchema).describe('Oldest first.'),
    earlier: z.boolean().describe('There are more before these.'),
  })
  .meta({ id: 'RunConversation' });
const conversationAnswer = z.object({ ...conversationFields, chat: chatRow, messages: z.array(messageRow) });

const leaseToken = '3.9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08';
const CONVERSATION_MAX_BYTES = 1024 * 1024;

/** These routes have no 404 (decisions 1): an attachment that is not there is a mistake in the request. */
const attachmentAnswer = z.object({ attachment: attachmentBytesRow });

function noSuchAttachment(error: unknown): never {
  if (toProblem(error).problem.status === 404)
    throw invalid('attachmentId', 'is not an attachment of the chat, or its bytes are gone');
  throw error;
}

/** What a runtime needs for a chat turn [+] (decisions 6). */
export function chatTurnEndpoints(): readonly Endpoint[] {
  return [
    endpoint({
      method: 'post',
      path: '/internal/runs/{runId}/message',
      audience: 'worker',
      tag: 'Workers',
      operationId: 'writeRunMessage',
      summary: 'Write a revision of the answer',
      description:
        'Either the parts as they are now, or text to append. Each write is a revision that the event streams of the chat show. The same write again answers the same revision; a baseRevision that is not the current one is 409 with `differs`. After a cancel nothing is written.',
      params: { runId },
      body: messageBody,
      response: { data: writtenSchema },
      example: {
        body: { organizationId: chatExample.organizationId, leaseToken, baseRevision: 1, append: 'North grew most.' },
        data: { revision: 2, status: 'pending' },
      },
      async handler({ db, params, body, notify }) {
        const args = {
          organizationId: body.organizationId,
          runId: params.runId,
          leaseToken: body.leaseToken,
          baseRevision: body.baseRevision,
          parts: body.parts,
          append: body.append,
        };
        const { chatId, ...written } = await call(db, 'run_message_write', args, writtenAnswer);
        notify(CHAT_CHANNEL, chatPayload(body.organizationId, chatId));
        return written;
      },
    }),
    endpoint({
      method: 'get',
      path: '/internal/runs/{runId}/conversation',
      audience: 'worker',
      tag: 'Workers',
      operationId: 'getRunConversation',
      summary: 'Read the conversation that the turn answers',
      description: 'The latest messages up to the one that is answered, at most `limit` and at most 1 MiB of parts.',
      params: { runId },
      query: { limit: queryInteger({ minimum: 1, maximum: 200, default: 100, description: 'Messages.' }) },
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
          conversationAnswer,
        ),
    }),
    endpoint({
      method: 'get',
      path: '/internal/runs/{runId}/attachments/{attachmentId}/content',
      audience: 'worker',
      tag: 'Workers',
      operationId: 'getRunAttachment',
      summary: 'Download an attachment of the chat that the turn answers',
      params: { runId, attachmentId: uuid.describe('`attachmentId` of a part.') },
      headers,
      response: {
        stream: true,
        mediaType: 'application/octet-stream',
        ranges: true,
        description: 'The bytes as they were stored.',
      },
      errors: [{ status: 400, code: 'validation_failed', when: 'the chat has no such attachment' }],
      async handler({ db, services, params, headers: lease, req, res, signal }) {
        const args = {
          organizationId: lease['x-organization-id'],
          runId: params.runId,
          leaseToken: lease['x-lease-token'],
          attachmentId: params.attachmentId,
        };
        await call(db, 'run_attachment', args, attachmentAnswer)
          .then(({ attachment }) => sendBytes(req, res, { ...attachment, storage: services.storage, signal }))
          .catch(noSuchAttachment);
      },
    }),
  ];
}
