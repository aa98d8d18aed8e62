import { atRest, type Rules } from './checks.ts';

/** A message that got its pending reply. */
export type SentMessage = Readonly<{ organizationId: string; chatId: string; messageId: string; question: string }>;

/** What this side of a round of chats knows. */
export type ChatFacts = Readonly<{
  sent: readonly SentMessage[];
  /** What the readers saw last of each message. */
  seen: readonly Readonly<{ messageId: string; revision: number; status: string; text: string }>[];
  /** What each reply has to be, by its message. */
  replies: readonly Readonly<{ messageId: string; reply: string }>[];
}>;

const textOf = `(select coalesce(string_agg(p ->> 'text', ''), '') from jsonb_array_elements(m.parts) p)`;
const ends = `('run_lease_expired', 'runtime_unavailable', 'command_failed', 'worker_error')`;

/** When nobody writes any more and all messages had their time. */
export const chatsAtRest: Rules<ChatFacts> = {
  ...atRest,
  'every reply is final': {
    query: `select organization_id, chat_id, id, status, revision from app.messages
      where completed_at is null or status in ('pending', 'cancelling')`,
  },
  'an accepted message is kept, exactly once, and no other': {
    known: ({ sent }) => sent,
    query: `with known as (select * from jsonb_to_recordset($1) k("chatId" uuid, "messageId" uuid, question text))
      select k.*, m.id as kept, u.id as asked
      from known k
      full join (app.messages m
          join app.messages u on u.organization_id = m.organization_id and u.id = m.reply_to_message_id)
        on m.id = k."messageId" and m.chat_id = k."chatId" and u.parts #>> '{0,text}' = k.question
      where (m.role is null or m.role = 'assistant') and (k."messageId" is null or m.id is null)`,
  },
  'a turn is started at most once': {
    query: `select organization_id, id, message_id, attempt from app.run_requests where kind = 'chat' and attempt > 1`,
  },
  'a reply is complete exactly when its run has succeeded': {
    query: `select m.organization_id, m.id, m.status, u.status as run
      from app.messages m
      left join app.runs u on u.organization_id = m.organization_id and u.message_id = m.id
      where m.role = 'assistant' and (m.status = 'complete') <> coalesce(u.status = 'succeeded', false)`,
  },
  'a reply that failed says why, and others have nothing to say': {
    query: `select organization_id, id, status, error from app.messages
      where (status = 'failed') <> (error is not null) or status = 'failed' and error ->> 'code' not in ${ends}`,
  },
  'what was written stands there once, and whole where it is complete': {
    known: ({ replies }) => replies,
    query: `select m.id, m.status, m.revision, ${textOf} as text, k.reply
      from jsonb_to_recordset($1) k("messageId" uuid, reply text)
      join app.messages m on m.id = k."messageId"
      where not starts_with(k.reply, ${textOf}) or m.status = 'complete' and k.reply <> ${textOf}`,
  },
  'the last that a reader saw of a message is its last revision': {
    known: ({ seen }) => seen,
    query: `select k.*, m.revision as kept, m.status as kept_status, ${textOf} as kept_text
      from jsonb_to_recordset($1) k("messageId" uuid, revision int, status text, text text)
      left join app.messages m on m.id = k."messageId"
      where (m.revision, m.status, ${textOf}) is distinct from (k.revision, k.status, k.text)`,
  },
};
