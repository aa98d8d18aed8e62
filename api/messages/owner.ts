import { z } from 'zod';
import { call } from '../../engine/db/call.ts';
import { organizationId, uuid } from '../fields/ids.ts';
import { actorOf } from '../http/actor.ts';
import { type Endpoint, endpoint } from '../http/endpoint.ts';
import { ids } from '../http/openapi/example_values.ts';
import { approvalsIn, newMessageSchema, postedSchema } from './changes.ts';
import { getMessage, listMessages, messageListQuery } from './list.ts';
import { assistantMessageExample, messageResult, messageRow, messageSchema, userMessageExample } from './schema.ts';

const chatParams = { organizationId, chatId: uuid.describe('The chat.') };
const messageId = uuid.meta({ description: 'The message.', examples: [ids.assistantMessage] });
const posted = z.object({ userMessage: messageRow, assistantMessage: messageRow });
const chatNotFound = {
  status: 404,
  code: 'chat_not_found',
  when: 'the chat does not exist in this organization',
} as const;
const notFound = { status: 404, code: 'message_not_found', when: 'the message does not exist' } as const;

/** Messages, for people. */
export function messageEndpoints(): readonly Endpoint[] {
  return [
    endpoint({
      method: 'get',
      path: '/organizations/{organizationId}/chats/{chatId}/messages',
      audience: 'owner',
      tag: 'Chats',
      operationId: 'listMessages',
      summary: 'List the messages of a chat',
      description: 'Oldest first.',
      params: chatParams,
      query: messageListQuery,
      response: { data: z.array(messageSchema), list: true },
      errors: [chatNotFound],
      example: { data: [userMessageExample, assistantMessageExample] },
      handler: ({ db, params, query }) => listMessages(db, params.organizationId, params.chatId, query),
    }),
    endpoint({
      method: 'post',
      path: '/organizations/{organizationId}/chats/{chatId}/messages',
      audience: 'owner',
      tag: 'Chats',
      operationId: 'createMessage',
      summary: 'Send a message to a chat',
      description:
        'Stores the message together with its reply, which is `pending`. Follow the reply with the event stream of the chat. If the last assistant message asks something (a question, or a context note or approval with status `pending`), `answers` has exactly one entry for each such part, in their order: a value or a deferral for a question, `approved` for a context note or an approval. Send an `Idempotency-Key`, so that you can repeat a call whose response was lost.',
      params: chatParams,
      body: newMessageSchema,
      response: { status: 202, data: postedSchema },
      errors: [
        chatNotFound,
        { status: 409, code: 'chat_turn_active', when: 'the reply to the last message is not final yet' },
        {
          status: 409,
          code: 'state_conflict',
          when: 'the chat is archived, or the organization has no enabled chat profile',
        },
        {
          status: 409,
          code: 'onboarding_chat_immutable',
          when: 'it is the onboarding chat, and the onboarding is completed',
        },
      ],
      example: {
        body: {
          author: { kind: 'human', displayName: 'Aiko Tanaka' },
          parts: [{ kind: 'text', text: 'How did sales go this week?' }],
        },
        data: { userMessage: userMessageExample, assistantMessage: assistantMessageExample },
      },
      decision: {
        action: 'approval.decide',
        subject: 'message',
        id: ['userMessage', 'id'],
        arguments: approvalsIn,
      },
      async handler({ db, params: { organizationId, chatId }, body, caller, decision }) {
        const args = {
          organizationId,
          chatId,
          body,
          actor: actorOf(caller),
        };
        return call(db, 'message_create', args, posted, decision);
      },
    }),
    endpoint({
      method: 'get',
      path: '/organizations/{organizationId}/messages/{id}',
      audience: 'owner',
      tag: 'Chats',
      operationId: 'getMessage',
      summary: 'Get a message',
      description: 'In its latest revision.',
      params: { organizationId, id: messageId },
      response: { data: messageSchema },
      errors: [notFound],
      example: { data: assistantMessageExample },
      handler: ({ db, params }) => getMessage(db, params.organizationId, params.id),
    }),
    endpoint({
      method: 'post',
      path: '/organizations/{organizationId}/chats/{chatId}/messages/{messageId}/cancel',
      audience: 'owner',
      tag: 'Chats',
      operationId: 'cancelMessage',
      summary: 'Cancel a pending reply',
      description:
        'Returns the revision with status `cancelling`. A reply that no runtime has started is `cancelled` right after that; one that was started is `cancelled` when its runtime stops or its lease ends. A repeated cancel is 409, unless it carries the same `Idempotency-Key`.',
      params: { ...chatParams, messageId },
      response: { data: messageSchema },
      errors: [notFound, { status: 409, code: 'message_not_cancellable', when: 'the message is not pending' }],
      example: { data: { ...assistantMessageExample, status: 'cancelling', revision: 2 } },
      async handler({ db, params: { organizationId, chatId, messageId: id }, caller }) {
        const args = {
          organizationId,
          chatId,
          messageId: id,
          actor: actorOf(caller),
        };
        const { message } = await call(db, 'message_cancel', args, messageResult);
        return message;
      },
    }),
  ];
}
