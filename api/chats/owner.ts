import { z } from 'zod';
import { call } from '../../engine/db/call.ts';
import { organizationId, uuid } from '../fields/ids.ts';
import { actorOf } from '../http/actor.ts';
import { type Endpoint, endpoint } from '../http/endpoint.ts';
import { ids } from '../http/openapi/example_values.ts';
import { assistantMessageExample } from '../messages/schema.ts';
import { chatPatchSchema, newChatSchema } from './changes.ts';
import { EVENT_STREAM } from './events/hub.ts';
import { chatListQuery, listChats } from './list.ts';
import { chatExample, chatResult, chatSchema, getChat } from './schema.ts';

const id = uuid.meta({ description: 'The chat.', examples: [ids.chat] });
const params = { organizationId, id };
const notFound = { status: 404, code: 'chat_not_found', when: 'the chat does not exist in this organization' } as const;
const changeErrors = [
  notFound,
  {
    status: 409,
    code: 'chat_response_active',
    when: 'a reply is being written, and the call would archive the chat',
  },
  { status: 409, code: 'onboarding_chat_immutable', when: 'it is the onboarding chat' },
] as const;

const eventsDescription = [
  'Server-sent events. After a `retry` line:',
  '',
  '- `chat.snapshot` with `{type, message}`: the latest assistant message, as soon as there is one',
  '- `chat.message` with `{type, message}`: each later revision',
  '- `chat.closed` with `{type}` and without an id: the chat was archived or removed, and the stream ends',
  '',
  'The id of an event is `<assistantMessageId>:<revision>`. Revisions may be skipped but are never reordered, and the last revision of a message is always sent.',
  '',
  'To resume, send the id of the last event as `Last-Event-ID`. If it is the latest one, the stream starts with what is new; otherwise with the snapshot and, if the id belongs to an earlier message of the chat, the last revision of that message before it.',
  '',
  'A comment line is sent every 15 seconds. A client that reads nothing for 60 seconds is disconnected. The stream ends when the token or the membership that it was opened with ends.',
].join('\n');

const snapshot = { type: 'chat.snapshot', message: assistantMessageExample };
const eventsExample = `retry: 2000\n\nid: ${ids.assistantMessage}:1\nevent: chat.snapshot\ndata: ${JSON.stringify(snapshot)}\n\n`;

/** Chats and their event streams, for people. */
export function chatEndpoints(): readonly Endpoint[] {
  return [
    endpoint({
      method: 'get',
      path: '/organizations/{organizationId}/chats',
      audience: 'owner',
      tag: 'Chats',
      operationId: 'listChats',
      costly: ({ search }) => search !== undefined,
      summary: 'List or search chats',
      description: 'The chat with the latest message comes first.',
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
      summary: 'Create a chat',
      description: 'The enabled profile of kind `chat` replies to its messages.',
      params: { organizationId },
      body: newChatSchema,
      response: { status: 201, data: chatSchema },
      example: { body: { title: chatExample.title }, data: chatExample },
      async handler({ db, params, body, caller }) {
        const args = { organizationId: params.organizationId, body, actor: actorOf(caller) };
        return (await call(db, 'chat_create', args, chatResult)).chat;
      },
    }),
    endpoint({
      method: 'get',
      path: '/organizations/{organizationId}/chats/{id}',
      audience: 'owner',
      tag: 'Chats',
      operationId: 'getChat',
      summary: 'Get a chat',
      description: 'Open or archived. Its messages are a list of their own.',
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
        'A JSON merge patch (RFC 7396). Archiving ends the event streams of the chat. Its messages and files are kept for 30 days, and until then the chat can be restored. Setting the status that the chat already has changes nothing.',
      params,
      body: chatPatchSchema,
      response: { data: chatSchema },
      errors: changeErrors,
      example: { body: { status: 'archived' }, data: chatExample },
      async handler({ db, params, body, caller }) {
        const args = {
          organizationId: params.organizationId,
          chatId: params.id,
          patch: body,
          actor: actorOf(caller),
        };
        const { chat } = await call(db, 'chat_update', args, chatResult);
        return chat;
      },
    }),
    endpoint({
      method: 'delete',
      path: '/organizations/{organizationId}/chats/{id}',
      audience: 'owner',
      tag: 'Chats',
      operationId: 'deleteChat',
      summary: 'Delete a chat',
      description:
        'Archives the chat and cancels a pending reply that no runtime has started. If a runtime has started it, the call is 409: cancel the reply first. Messages and files are removed after 30 days; until then the chat can be restored. Deleting an archived chat has no effect.',
      params,
      response: { data: chatSchema },
      errors: changeErrors,
      example: { data: chatExample },
      async handler({ db, params, caller }) {
        const args = { organizationId: params.organizationId, chatId: params.id, actor: actorOf(caller) };
        const { chat } = await call(db, 'chat_delete', args, chatResult);
        return chat;
      },
    }),
    endpoint({
      method: 'get',
      path: '/organizations/{organizationId}/chats/{chatId}/events',
      audience: 'owner',
      tag: 'Chats',
      operationId: 'streamChatEvents',
      summary: 'Stream the replies of a chat',
      description: eventsDescription,
      params: { organizationId, chatId: id },
      headers: {
        'last-event-id': z
          .string()
          .optional()
          .describe('The id of the last event that was processed: `<assistantMessageId>:<revision>`.'),
      },
      response: { stream: true, mediaType: 'text/event-stream', description: 'The events as they happen.' },
      example: { data: eventsExample },
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
