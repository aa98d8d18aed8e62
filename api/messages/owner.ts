import { z } from 'zod';
import { call } from '../../engine/db/call.ts';
import { CHAT_CHANNEL, chatPayload } from '../chats/events/hub.ts';
import { organizationId, uuid } from '../fields/ids.ts';
import { actorOf } from '../http/actor.ts';
import { type Endpoint, endpoint } from '../http/endpoint.ts';
import { PULL_CHANNEL } from '../run_requests/pull_broker.ts';
import { approvalsIn, newMessageSchema, postedSchema } from './changes.ts';
import { getMessage, listMessages, messageListQuery } from './list.ts';
import { assistantMessageExample, messageAnswer, messageRow, messageSchema, userMessageExample } from './schema.ts';

const chatParams = { organizationId, chatId: uuid.describe('The chat.') };
const messageId = uuid.describe('The message.');
const posted = z.object({ userMessage: messageRow, assistantMessage: messageRow });
const chatNotFound = { status: 404, code: 'chat_not_found', when: 'the organization has no such chat' } as const;
const notFound = { status: 404, code: 'message_not_found', when: 'there is no such message' } as const;

/** The messages of contract 4.4. */
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
      summary: 'Say something in a chat',
      description:
        'Keeps the message and its pending answer in one step; follow the answer by the events of the chat. When the last answer asks (questions, and notes and approvals that wait for a decision), each of these needs exactly one answer, in their order: a value or a deferral for a question, `approved` for a note or an approval. Skipping is never approval. Send an `Idempotency-Key`, so that a call whose answer was lost can be repeated.',
      params: chatParams,
      body: newMessageSchema,
      response: { status: 202, data: postedSchema },
      errors: [
        chatNotFound,
        { status: 409, code: 'chat_turn_active', when: 'the last message is still being answered' },
        { status: 409, code: 'state_conflict', when: 'the chat is archived, or no chat profile is enabled' },
        { status: 409, code: 'onboarding_chat_immutable', when: 'the onboarding that the chat belongs to is over' },
      ],
      example: {
        body: {
          author: { kind: 'human', displayName: 'Anna' },
          parts: [{ kind: 'text', text: 'Which region grew most in January?' }],
        },
        data: { userMessage: userMessageExample, assistantMessage: assistantMessageExample },
      },
      decision: {
        action: 'approval.decide',
        subject: 'message',
        id: ['userMessage', 'id'],
        arguments: approvalsIn,
      },
      async handler({ db, params: { organizationId, chatId }, body, caller, notify, decision }) {
        const args = {
          organizationId,
          chatId,
          body,
          actor: actorOf(caller),
        };
        const messages = await call(db, 'message_create', args, posted, decision);
        notify(PULL_CHANNEL);
        notify(CHAT_CHANNEL, chatPayload(organizationId, chatId));
        return messages;
      },
    }),
    endpoint({
      method: 'get',
      path: '/organizations/{organizationId}/messages/{id}',
      audience: 'owner',
      tag: 'Chats',
      operationId: 'getMessage',
      summary: 'Get a message',
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
      summary: 'Cancel a pending answer',
      description:
        'Answers the revision that says `cancelling`. One that nobody has started is `cancelled` with the next revision at once; one that was started when its runtime yields or its lease ends. Repeat it under an `Idempotency-Key` alone: in any other state than pending it is 409.',
      params: { ...chatParams, messageId },
      response: { data: messageSchema },
      errors: [notFound, { status: 409, code: 'message_not_cancellable', when: 'the message is not pending' }],
      example: { data: { ...assistantMessageExample, status: 'cancelling', revision: 2 } },
      async handler({ db, params: { organizationId, chatId, messageId: id }, caller, notify }) {
        const args = {
          organizationId,
          chatId,
          messageId: id,
          actor: actorOf(caller),
        };
        const { message } = await call(db, 'message_cancel', args, messageAnswer);
        notify(CHAT_CHANNEL, chatPayload(organizationId, chatId));
        // A claim that died gave its capacity back.
        notify(PULL_CHANNEL);
        return message;
      },
    }),
  ];
}
