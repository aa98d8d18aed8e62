import { sql } from 'slonik';
import { z } from 'zod';
import { call, type Queries } from '../../../engine/db/call.ts';
import { Problem } from '../../../engine/db/problem.ts';
import { requireOrganization, scoped } from '../../../engine/db/scope.ts';
import { messageRow } from '../../messages/schema.ts';
import { type EventId, NOWHERE, type Position } from './position.ts';
import { createRevision, type Revision } from './revision.ts';
import type { Beginning } from './stream.ts';

const order = (alias: 'h' | 'e') => {
  const created = sql.identifier([alias, 'created_at']);
  return sql.fragment`(extract(epoch from ${created}) * 1000000)::bigint`;
};

const row = z.object({ message: messageRow.nullable(), order: z.int().nullable() });

function revisionOf({ message, order: at }: z.output<typeof row>): Revision | undefined {
  if (message === null || at === null) return undefined;
  return createRevision({ messageId: message.id, order: at, revision: message.revision }, message);
}

const openingRow = z.object({
  closed: z.boolean(),
  head_message: row.shape.message,
  head_order: row.shape.order,
  earlier_message: row.shape.message,
  earlier_order: row.shape.order,
});

/** What a stream of a chat begins with; `at` is where the chat is, `closed` whether nothing will follow. */
export type Opening = Beginning & Readonly<{ at: Position; closed: boolean }>;

/**
 * Reads what a client gets first that has processed the event `resumed`: nothing after the latest one, else
 * the latest revision, and before it the last revision of an earlier message that it was in the middle of (docs/interface.md 6.2).
 * @throws Problem 404 `organization_not_found` or `chat_not_found`
 */
export async function readOpening(
  db: Queries,
  organizationId: string,
  chatId: string,
  resumed: EventId | undefined,
): Promise<Opening> {
  const found = await db.maybeOne(
    scoped(
      organizationId,
      openingRow,
      sql.fragment`
        select c.status <> 'open' as closed,
          to_jsonb(h) - 'search_text' as head_message, ${order('h')} as head_order,
          to_jsonb(e) - 'search_text' as earlier_message, ${order('e')} as earlier_order
        from app.chats c
        left join lateral (
          select m.*
          from app.messages m
          where m.organization_id = scope.organization_id and m.chat_id = c.id and m.role = 'assistant'
          order by m.created_at desc
          limit 1
        ) h on true
        left join app.messages e on e.organization_id = scope.organization_id
          and e.id = ${resumed?.messageId ?? null}::uuid
          and e.chat_id = c.id and e.role = 'assistant' and e.id <> h.id
        where c.organization_id = scope.organization_id and c.id = ${chatId}::uuid`,
    ),
  );
  if (!found) {
    await requireOrganization(db, organizationId);
    throw new Problem(404, 'chat_not_found', 'There is no chat with this id.');
  }
  const head = revisionOf({ message: found.head_message, order: found.head_order });
  const earlier = revisionOf({ message: found.earlier_message, order: found.earlier_order });
  const at = head?.position ?? NOWHERE;
  const current = resumed && at.messageId === resumed.messageId && at.revision === resumed.revision;
  return {
    at,
    closed: found.closed,
    seen: current ? at : NOWHERE,
    first: current ? [] : [earlier, head].filter((one) => one !== undefined),
  };
}

const changesResult = z.array(
  z.object({
    chatId: z.string(),
    closed: z.boolean(),
    head: row.shape.message,
    headOrder: row.shape.order,
    earlier: row.shape.message,
    earlierOrder: row.shape.order,
  }),
);

/** What has happened in a chat since `known`. */
export type Change = Readonly<{ closed: boolean; revisions: readonly Revision[] }>;

export type Known = Readonly<{ chatId: string; known: Position }>;

/**
 * Reads several chats of one organization at once: what has changed since what is known of each, oldest first. When a
 * newer message has begun, the last revision of the one before is among it. A chat that is gone is closed; one that has
 * not changed is left out, so that looking at thousands costs next to nothing here.
 */
export async function readChanges(
  db: Queries,
  organizationId: string,
  chats: readonly Known[],
): Promise<ReadonlyMap<string, Change>> {
  const args = {
    organizationId,
    chatIds: chats.map(({ chatId }) => chatId),
    messageIds: chats.map(({ known }) => known.messageId || null),
    revisions: chats.map(({ known }) => (known.messageId ? known.revision : null)),
  };
  const changes = new Map<string, Change>();
  for (const found of await call(db, 'chat_heads', args, changesResult)) {
    const earlier = revisionOf({ message: found.earlier, order: found.earlierOrder });
    const head = revisionOf({ message: found.head, order: found.headOrder });
    const revisions = [earlier, head].filter((one) => one !== undefined);
    changes.set(found.chatId, { closed: found.closed, revisions });
  }
  return changes;
}
