// Chats as tests work with them, made through the transitions with the rights of the API and the jobs.
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { functionText } from '../../engine/db/function_text.ts';
import { createTestOrganization, OWNER, sha256, type TestOrganization } from './fixtures.ts';
import { type Connection, type JsonObject, type Sql, transition } from './transitions.ts';

const chatSchema = z.looseObject({
  id: z.string(),
  title: z.string(),
  status: z.string(),
  summary: z.string().nullable(),
  settings: z.object({ pinnedTaskIds: z.array(z.string()) }),
  archived_at: z.string().nullable(),
  last_message_at: z.string(),
});
export type Chat = z.output<typeof chatSchema>;
const chatResult = z.looseObject({ chat: chatSchema });

const partSchema = z.looseObject({ id: z.string(), kind: z.string() });
const messageSchema = z.looseObject({
  id: z.string(),
  chat_id: z.string(),
  reply_to_message_id: z.string().nullable(),
  role: z.string(),
  status: z.string(),
  revision: z.number(),
  parts: z.array(partSchema),
  error: z.looseObject({ code: z.string(), retryable: z.boolean() }).nullable(),
  completed_at: z.string().nullable(),
  created_at: z.string(),
});
export type Message = z.output<typeof messageSchema>;
const sentSchema = z.object({ userMessage: messageSchema, assistantMessage: messageSchema });
export type Sent = z.output<typeof sentSchema>;

/** An organization with an enabled profile of kind chat. */
export function createChatOrganization(
  sql: Sql,
  fields: Parameters<typeof createTestOrganization>[1] = {},
): Promise<TestOrganization> {
  return createTestOrganization(sql, { kind: 'chat', ...fields });
}

export async function createChat(sql: Sql, org: TestOrganization, body: JsonObject = {}): Promise<Chat> {
  const result = await transition(sql.api, 'chat_create', {
    organizationId: org.organizationId,
    body: { title: 'A chat', ...body },
    actor: OWNER,
  });
  return chatResult.parse(result).chat;
}

/** The onboarding chat of an organization, which no transition of chats makes. */
export async function createOnboardingChat(sql: Sql, org: TestOrganization): Promise<Chat> {
  const chat = await createChat(sql, org);
  await sql.owner.query('update app.chats set is_onboarding = true where organization_id = $1 and id = $2', [
    org.organizationId,
    chat.id,
  ]);
  return chat;
}

export async function updateChat(
  connection: Connection,
  org: TestOrganization,
  chatId: string,
  patch: JsonObject,
): Promise<Chat> {
  const result = await transition(connection, 'chat_update', {
    organizationId: org.organizationId,
    chatId,
    patch,
    actor: OWNER,
  });
  return chatResult.parse(result).chat;
}

export async function deleteChat(connection: Connection, org: TestOrganization, chatId: string): Promise<Chat> {
  const result = await transition(connection, 'chat_delete', {
    organizationId: org.organizationId,
    chatId,
    actor: OWNER,
  });
  return chatResult.parse(result).chat;
}

export function text(words: string) {
  return { kind: 'text', text: words } as const;
}

/** A user message with its pending reply. */
export async function send(
  connection: Connection,
  org: TestOrganization,
  chatId: string,
  body: JsonObject = { parts: [text('Hello')] },
): Promise<Sent> {
  const result = await transition(connection, 'message_create', {
    organizationId: org.organizationId,
    chatId,
    body: { author: { kind: 'human', displayName: 'Ada' }, ...body },
    actor: OWNER,
  });
  return sentSchema.parse(result);
}

export async function cancelMessage(
  connection: Connection,
  org: TestOrganization,
  message: Pick<Message, 'id' | 'chat_id'>,
): Promise<Message> {
  const result = await transition(connection, 'message_cancel', {
    organizationId: org.organizationId,
    chatId: message.chat_id,
    messageId: message.id,
    actor: OWNER,
  });
  return z.object({ message: messageSchema }).parse(result).message;
}

export type AttachmentFields = Readonly<{ id?: string; fileName?: string; bytes?: string; storageKey?: string | null }>;

export function putAttachment(
  connection: Connection,
  org: TestOrganization,
  chatId: string,
  fields: AttachmentFields = {},
): Promise<JsonObject> {
  const bytes = fields.bytes ?? 'bytes';
  return transition(connection, 'chat_attachment_put', {
    organizationId: org.organizationId,
    chatId,
    attachmentId: fields.id ?? randomUUID(),
    fileName: fields.fileName ?? 'notes.txt',
    mediaType: 'text/plain',
    sizeBytes: bytes.length,
    sha256: sha256(bytes),
    storageKey: fields.storageKey === undefined ? `key/${randomUUID()}` : fields.storageKey,
    actor: OWNER,
  });
}

const turnSchema = z.object({
  kind: z.literal('chat_turn'),
  organizationId: z.string(),
  agentProfileId: z.string(),
  chatId: z.string(),
  messageId: z.string(),
  runRequestId: z.string(),
  runId: z.string(),
  attempt: z.number(),
  leaseExpiresAt: z.string(),
  executionToken: z.string(),
});
export type Turn = z.output<typeof turnSchema> & Readonly<{ leaseToken: string }>;

const claimSchema = z.looseObject({
  organizationId: z.string(),
  runRequestId: z.string(),
  leaseToken: z.string(),
  kind: z.literal('chat'),
  chat: z.looseObject({ id: z.string(), message_id: z.string() }),
});
export type ChatClaim = z.output<typeof claimSchema>;

/** Up to `limit` chat turns of the organization. */
export async function pullTurns(connection: Connection, org: TestOrganization, limit = 1): Promise<ChatClaim[]> {
  const result = await transition(connection, 'run_requests_pull', {
    workerIds: Array.from({ length: limit }, () => 'runtime'),
    organizationIds: [org.organizationId],
    profileKeys: null,
    kinds: ['chat'],
    claimSeconds: 30,
  });
  return z.object({ items: z.array(claimSchema) }).parse(result).items;
}

/** The next chat turn of the organization, which has to have one. */
export async function claimTurn(sql: Sql, org: TestOrganization): Promise<ChatClaim> {
  const [claim] = await pullTurns(sql.api, org);
  if (!claim) throw new Error('no chat turn to pull');
  return claim;
}

export async function startTurn(
  connection: Connection,
  claim: Pick<ChatClaim, 'organizationId' | 'runRequestId' | 'leaseToken'>,
  runId: string = randomUUID(),
): Promise<Turn> {
  const result = await transition(connection, 'run_start', {
    organizationId: claim.organizationId,
    runRequestId: claim.runRequestId,
    runId,
    leaseToken: claim.leaseToken,
    workerId: 'runtime',
    leaseSeconds: 60,
  });
  return { ...turnSchema.parse(result), leaseToken: claim.leaseToken };
}

/** A message in a new chat, claimed and started. */
export async function startedTurn(sql: Sql, org: TestOrganization): Promise<Turn & { sent: Sent }> {
  const chat = await createChat(sql, org);
  const sent = await send(sql.api, org, chat.id);
  return { ...(await startTurn(sql.api, await claimTurn(sql, org))), sent };
}

type Held = Pick<Turn, 'organizationId' | 'runId' | 'leaseToken'>;

function held(turn: Held) {
  return { organizationId: turn.organizationId, runId: turn.runId, leaseToken: turn.leaseToken };
}

/** One revision: parts in place of the old ones, or text behind the last. */
export function write(
  connection: Connection,
  turn: Held,
  baseRevision: number,
  content: { parts: readonly JsonObject[] } | { append: string },
): Promise<JsonObject> {
  return transition(connection, 'run_message_write', {
    ...held(turn),
    baseRevision,
    parts: 'parts' in content ? content.parts : null,
    append: 'append' in content ? content.append : null,
  });
}

export function completeTurn(
  connection: Connection,
  turn: Held,
  output: JsonObject = { parts: [text('Done')] },
  bodyHash = 'a',
): Promise<JsonObject> {
  return transition(connection, 'run_complete', {
    ...held(turn),
    bodyHash,
    result: { kind: 'chat_message', ...output },
    report: {},
    checks: null,
    evaluationDigest: null,
  });
}

/** A message in the chat and a complete reply with these parts. */
export async function exchange(
  sql: Sql,
  org: TestOrganization,
  chatId: string,
  parts: readonly JsonObject[],
  body?: JsonObject,
): Promise<Message> {
  const { assistantMessage } = await send(sql.api, org, chatId, body);
  await completeTurn(sql.api, await startTurn(sql.api, await claimTurn(sql, org)), { parts });
  return messageRow(sql, org, assistantMessage.id);
}

export async function messageRow(sql: Sql, org: TestOrganization, id: string): Promise<Message> {
  const { rows } = await sql.owner.query(
    'select to_jsonb(m) as message from app.messages m where organization_id = $1 and id = $2',
    [org.organizationId, id],
  );
  return messageSchema.parse(rows[0]?.message);
}

export async function chatRow(sql: Sql, org: TestOrganization, id: string): Promise<Chat | undefined> {
  const { rows } = await sql.owner.query(
    'select to_jsonb(c) as chat from app.chats c where organization_id = $1 and id = $2',
    [org.organizationId, id],
  );
  return rows[0] && chatSchema.parse(rows[0].chat);
}

/** The one request that replies to a message. */
export async function turnRequest(sql: Sql, org: TestOrganization, messageId: string) {
  const { rows } = await sql.owner.query(
    'select * from app.run_requests where organization_id = $1 and message_id = $2',
    [org.organizationId, messageId],
  );
  return z.looseObject({ id: z.string(), state: z.string(), attempt: z.number() }).parse(rows[0]);
}

/** What the job does with one long message: the next pieces, at most so many. */
export function fillChunks(connection: Connection, org: TestOrganization, messageId: string, limit = 4) {
  return transition(connection, 'message_chunks_fill', { organizationId: org.organizationId, messageId, limit });
}

/** The long messages of the organization that wait for the job. */
export async function waitingChunks(sql: Sql, org: TestOrganization): Promise<string[]> {
  const { rows } = await sql.jobs.query(
    `select message_id from ${functionText('message_chunks_due', { organizations: '1000', rows: '1000' })}
     where organization_id = $1`,
    [org.organizationId],
  );
  return rows.map((row) => String(row.message_id));
}

/** Lets all of them be indexed. */
export async function indexChunks(sql: Sql, org: TestOrganization): Promise<void> {
  for (const messageId of await waitingChunks(sql, org)) {
    while ((await fillChunks(sql.jobs, org, messageId))['waiting'] === true);
  }
}
