import { z } from 'zod';
import { call } from '../../engine/db/call.ts';
import { organizationId, uuid } from '../fields/ids.ts';
import { actorOf } from '../http/actor.ts';
import { type Endpoint, endpoint } from '../http/endpoint.ts';
import { PULL_CHANNEL } from '../run_requests/pull_broker.ts';
import { chatPatchSchema, newChatSchema } from './changes.ts';
import { CHAT_CHANNEL, chatPayload, EVENT_STREAM } from './events/hub.ts';
import { chatListQuery, listChats } from './list.ts';
import { chatAnswer, chatExample, chatSchema, getChat } from './schema.ts';

const id = uuid.describe('The chat.');
const params = { organizationId, id };
const notFound = { status: 404, code: 'chat_not_found', when: 'the organization has no such chat' } as const;
const changeErrors = [
  notFound,
  { status: 409, code: 'chat_response_active', when: 'it is to be archived while an answer is on its way' },
  { status: 409, code: 'onboarding_chat_immutable', when: 'it is the onboarding chat' },
] as const;

const archived = '2026-02-01T10:00:00.000Z';

const eventsDescription = [
  'Server-sent events: `retry` first, then',
  '- `chat.snapshot` `{type, message}`: the latest assistant message; nothing until there is one,',
  '- `chat.message` `{type, message}`: each later revision,',
  '- `chat.closed` `{type}`, without an id: the chat was archived or removed, and the stream ends.',
  '',
  'Revisions may be skipped, never reordered, and the last one of a message always arrives. An event id is `<assistantMessageId>:<revision>`. With the latest one as `Last-Event-ID` nothing comes until something is new; with an older or unknown one the snapshot, and before it, when the id names an earlier message of the chat, the last revision of that message. A comment line comes every 15 seconds. A client that reads nothing for 60 seconds is disconnected. The stream ends with the token, and with the membership, that it was opened with.',
].join('\n');

/** The chats of contract 4.4, and their event streams (contract 6). */
export function chatEndpoints(): readonly Endpoint[] {
  return [
    endpoint({
      method: 'get',
      path: '/organizations/{organizationId}/chats',
      audience: 'owner',
      tag: 'Chats',
      operationId: 'listChats',
      summary: 'List or search chats',
      description: 'The chat with the latest message first.',
      params: { organizationId },
      query: chatListQuery,
      response: { data: z.array(chatSchema), list: true },
      example: { data: [chatExample] },
      handler: ({ db, params, query }) => listChats(db, params.organizationId, query),
    }),
    endpoint({
      method: 'post',
      path: '/organizations/{organizationId}/chats',
      audience: 'owner',
      tag: 'Chats',
      operationId: 'createChat',
      summary: 'Open a chat',
      params: { organizationId },
      body: newChatSchema,
      response: { status: 201, data: chatSchema },
      example: { body: { title: chatExample.title }, data: chatExample },
      async handler({ db, params, body, caller }) {
        const args = { organizationId: params.organizationId, body, actor: actorOf(caller) };
        return (await call(db, 'chat_create', args, chatAnswer)).chat;
      },
    }),
    endpoint({
      method: 'get',
      path: '/organizations/{organizationId}/chats/{id}',
      audience: 'owner',
      tag: 'Chats',
      operationId: 'getChat',
      summary: 'Get a chat',
      params,
      response: { data: chatSchema },
      errors: [notFound],
      example: { data: chatExample },
      handler: ({ db, params }) => getChat(db, params.organizationId, params.id),
    }),
    endpoint({
      method: 'patch',
      path: '/organizations/{organizationId}/chats/{id}',
      audience: 'owner',
      tag: 'Chats',
      operationId: 'updateChat',
      summary: 'Rename, archive or restore a chat',
      description:
        'A JSON merge patch. Archiving ends the event streams of the chat; its messages and files are kept for 30 days, during which it can be restored. A status that it has already changes nothing.',
      params,
      body: chatPatchSchema,
      response: { data: chatSchema },
      errors: changeErrors,
      example: { body: { status: 'archived' }, data: { ...chatExample, status: 'archived', archivedAt: archived } },
      async handler({ db, params, body, caller, notify }) {
        const args = {
          organizationId: params.organizationId,
          chatId: params.id,
          patch: body,
          actor: actorOf(caller),
        };
        const { chat } = await call(db, 'chat_update', args, chatAnswer);
        notify(CHAT_CHANNEL, chatPayload(params.organizationId, params.id));
        return chat;
      },
    }),
    endpoint({
      method: 'delete',
      path: '/organizations/{organizationId}/chats/{id}',
      audience: 'owner',
      tag: 'Chats',
      operationId: 'deleteChat',
      summary: 'Archive a chat, whatever waits in it',
      description:
        'Archives, and cancels an answer that nobody has started. One that was started is 409: cancel it first. Its messages and files are kept for 30 days. A repeat answers the same.',
      params,
      response: { data: chatSchema },
      errors: changeErrors,
      example: { data: { ...chatExample, status: 'archived', archivedAt: archived } },
      async handler({ db, params, caller, notify }) {
        const args = { organizationId: params.organizationId, chatId: params.id, actor: actorOf(caller) };
        const { chat } = await call(db, 'chat_delete', args, chatAnswer);
        notify(CHAT_CHANNEL, chatPayload(params.organizationId, params.id));
        // A claim that died gave its capacity back.
        notify(PULL_CHANNEL);
        return chat;
      },
    }),
    endpoint({
      method: 'get',
      path: '/organizations/{organizationId}/chats/{chatId}/events',
      audience: 'owner',
      tag: 'Chats',
      operationId: 'streamChatEvents',
      summary: 'Follow the answers of a chat',
      description: eventsDescription,
      params: { organizationId, chatId: id },
      headers: {
        'last-event-id': z
          .string()
          .optional()
          .describe('`<assistantMessageId>:<revision>` of the last event processed.'),
      },
      response: { stream: true, mediaType: 'text/event-stream', description: 'The events, as they come.' },
      errors: [notFound],
      async handler({ db, services, params, headers, caller, req, res }) {
        if (req.method === 'HEAD') {
          await getChat(db, params.organizationId, params.chatId);
          res.writeHead(200, EVENT_STREAM).end();
        } else await services.chatStreams.open(res, { ...params, caller }, headers['last-event-id']);
      },
    }),
  ];
}
