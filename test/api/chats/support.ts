import { once } from 'node:events';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { createParser } from 'eventsource-parser';
import type { Chat } from '../../../api/chats/schema.ts';
import type { Message } from '../../../api/messages/schema.ts';
import { CHAT_CHANNEL, chatPayload } from '../../../engine/db/channels.ts';
import { expectSuccess, type Fields, ownerPath, sqlOf } from '../../support/api_fixtures.ts';
import type { TestApp } from '../../support/app.ts';
import { createTestOrganization, type TestOrganization } from '../../support/fixtures.ts';
import type { Client } from '../../support/http.ts';

/** An organization whose one profile replies in chats. */
export function createChatOrganization(app: TestApp): Promise<TestOrganization> {
  return createTestOrganization(sqlOf(app), { kind: 'chat', key: 'chat' });
}

export async function createChat(app: TestApp, org: TestOrganization, title = 'A chat'): Promise<Chat> {
  return expectSuccess(await app.owner.post<Chat>(ownerPath(org, '/chats'), { title }), 201);
}

export function chatPath(chat: Pick<Chat, 'organizationId' | 'id'>, rest = ''): string {
  return `/organizations/${chat.organizationId}/chats/${chat.id}${rest}`;
}

export type Posted = Readonly<{ userMessage: Message; assistantMessage: Message }>;

/** A user message with its pending reply, which is returned. */
export async function ask(app: TestApp, chat: Chat, text = 'Hello?', client: Client = app.owner): Promise<Message> {
  const body = { author: { kind: 'human', displayName: 'Anna' }, parts: [{ kind: 'text', text }] };
  return expectSuccess(await client.post<Posted>(chatPath(chat, '/messages'), body), 202).assistantMessage;
}

type Revised = Readonly<{ text?: string; status?: 'pending' | 'complete'; silent?: boolean }>;

/** The next revision of a reply, as a runtime's write leaves it; `silent`: its notification is lost. */
export async function revise(app: TestApp, message: Message, revised: Revised = {}): Promise<number> {
  const { text = 'text', status = 'pending', silent = false } = revised;
  const { rows } = await app.database.owner.query<{ revision: number }>(
    `update app.messages
       set revision = revision + 1, parts = $3, status = $4::text, updated_at = clock_timestamp(),
         completed_at = case when $4::text = 'complete' then clock_timestamp() end,
         search_text = case when $4::text = 'complete' then app.search_fold($5) end
       where organization_id = $1 and id = $2 returning revision`,
    [message.organizationId, message.id, JSON.stringify([{ id: 'a', kind: 'text', text }]), status, text],
  );
  if (!silent) app.services.notifier.mark(CHAT_CHANNEL, chatPayload(message.organizationId, message.chatId));
  return rows[0]?.revision ?? 0;
}

export type StreamEvent = Readonly<{
  id: string | undefined;
  event: string | undefined;
  data: { type: string; message?: Message };
}>;

export type Followed = Readonly<{
  status: number;
  headers: IncomingMessage['headers'];
  events: StreamEvent[];
  /** `<event> <id without the message>` of each, in order. */
  revisions(): string[];
  comments(): number;
  retry(): number | undefined;
  /** The whole text, as far as it came. */
  text(): string;
  ended(): boolean;
  response: IncomingMessage;
  request: ClientRequest;
  stop(): void;
}>;

type FollowOptions = Readonly<{ lastEventId?: string; headers?: Readonly<Record<string, string>>; method?: string }>;

/** Opens an event stream and gathers what comes. */
export async function follow(url: string, path: string, options: FollowOptions = {}): Promise<Followed> {
  const { lastEventId, headers, method = 'GET' } = options;
  const outgoing = request(new URL(path, url), {
    method,
    agent: false,
    headers: { ...headers, ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId }) },
  });
  outgoing.on('error', () => {});
  outgoing.end();
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
  const events: StreamEvent[] = [];
  let comments = 0;
  let retry: number | undefined;
  let text = '';
  let ended = false;
  const parser = createParser({
    onEvent: ({ id, event, data }) => events.push({ id, event, data: JSON.parse(data) }),
    onComment: () => {
      comments += 1;
    },
    onRetry: (ms) => {
      retry = ms;
    },
  });
  response.setEncoding('utf8');
  response.on('data', (chunk: string) => {
    text += chunk;
    parser.feed(chunk);
  });
  response.on('error', () => {});
  response.on('end', () => {
    ended = true;
  });
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    events,
    revisions: () => events.map(({ event, id }) => [event, id?.split(':')[1]].filter(Boolean).join(' ')),
    comments: () => comments,
    retry: () => retry,
    text: () => text,
    ended: () => ended,
    response,
    request: outgoing,
    stop: () => outgoing.destroy(),
  };
}

/** The stream of a chat. */
export function followChat(app: TestApp, chat: Chat, options?: FollowOptions): Promise<Followed> {
  return follow(app.url, chatPath(chat, '/events'), options);
}

export function patchChat(app: TestApp, chat: Chat, body: Fields) {
  return app.owner.patch<Chat>(chatPath(chat), body);
}
