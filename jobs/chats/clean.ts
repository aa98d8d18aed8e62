import { sql } from 'slonik';
import { z } from 'zod';
import { call } from '../../engine/db/call.ts';
import type { Database } from '../../engine/db/database.ts';
import { functionCall } from '../../engine/db/function_call.ts';
import { chatPrefix } from '../../engine/storage/index.ts';
import type { JobContext, JobHandler } from '../runner/handler.ts';

const ORGANIZATIONS = 100;
/** Of each of them, in a read. */
const CHATS = 10;
const ROWS = 500;
const OBJECTS = 200;

const chatSchema = z.object({ organization_id: z.uuid(), chat_id: z.uuid() });
type Chat = z.output<typeof chatSchema>;
const purgeResult = z.object({ done: z.boolean(), gone: z.boolean() });

async function remove({ db, storage, signal }: JobContext, chat: Chat): Promise<'removed' | 'kept' | 'stopped'> {
  const { organization_id: organizationId, chat_id: chatId } = chat;
  const args = { organizationId, chatId, limit: ROWS };
  for (;;) {
    if (signal.aborted) return 'stopped';
    const rows = await call(db, 'chat_purge', { ...args, forget: false }, purgeResult);
    // Opened again meanwhile, not due yet, or removed by another process: its objects are none of our business.
    if (rows.gone) return 'kept';
    if (!rows.done) continue;
    const objects = await storage.deletePrefix(chatPrefix(organizationId, chatId), { batch: OBJECTS });
    if (objects.done) break;
  }
  await call(db, 'chat_purge', { ...args, forget: true }, purgeResult);
  return 'removed';
}

/** The oldest of some organizations, `more` of each and of these; and after which one the next read goes on, null at the end. */
async function readExpired(db: Database, more: number, after: string | null) {
  const organizations = ORGANIZATIONS + more;
  const expired = functionCall('chats_expired', { organizations, rows: CHATS + more, after });
  const chats = await db.any(sql.type(chatSchema)`select organization_id, chat_id from ${expired}`);
  const ids = [...new Set(chats.map((chat) => chat.organization_id))].toSorted();
  return { chats, after: ids[organizations - 1] ?? null };
}

/**
 * Removes chats 30 days after they were archived: hides the chat, then takes its rows, its objects (by their prefix, so
 * that what no row names goes too) and last its own row, in batches. A crash anywhere loses nothing, for the chat's row
 * is what the next run finds. One chat that cannot be removed stops no other, and organizations take turns: round after round,
 * until one finds no chat that was not tried.
 */
export const chatsClean: JobHandler<'chats__clean'> = async (_payload, context) => {
  const { db, log } = context;
  /** They come first in what is read, which is larger by them. */
  const kept = new Set<string>();
  let failed = 0;
  let found = false;
  let after: string | null = null;
  for (;;) {
    const read = await readExpired(db, kept.size, after);
    after = read.after;
    for (const chat of read.chats.filter(({ chat_id: id }) => !kept.has(id))) {
      found = true;
      try {
        const outcome = await remove(context, chat);
        // The next hour's run goes on where this one leaves off.
        if (outcome === 'stopped') return 'done';
        if (outcome === 'kept') kept.add(chat.chat_id);
      } catch (error) {
        failed += 1;
        kept.add(chat.chat_id);
        log.error({ err: error, organizationId: chat.organization_id, chatId: chat.chat_id }, 'a chat stays for now');
      }
    }
    if (after !== null) continue;
    if (!found) break;
    found = false;
  }
  if (failed > 0) throw new Error(`${failed} chats could not be removed`);
  return 'done';
};
