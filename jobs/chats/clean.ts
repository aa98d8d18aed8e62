import { sql } from 'slonik';
import { z } from 'zod';
import { call } from '../../engine/db/call.ts';
import { functionCall } from '../../engine/db/function_call.ts';
import { chatPrefix } from '../../engine/storage/index.ts';
import type { JobContext, JobHandler } from '../runner/handler.ts';

const CHATS = 100;
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

/**
 * Removes chats 30 days after they were archived: hides the chat, then takes its rows, its objects (by their prefix, so
 * that what no row names goes too) and last its own row, in batches. A crash anywhere loses nothing, for the chat's row
 * is what the next run finds. One chat that cannot be removed stops no other.
 */
export const chatsClean: JobHandler<'chats__clean'> = async (_payload, context) => {
  const { db, log } = context;
  let kept = 0;
  let failed = 0;
  for (;;) {
    const expired = functionCall('chats_expired', { skip: kept + failed, limit: CHATS });
    const chats = await db.any(sql.type(chatSchema)`select organization_id, chat_id from ${expired}`);
    if (chats.length === 0) break;
    for (const chat of chats) {
      try {
        const outcome = await remove(context, chat);
        // The next hour's run goes on where this one leaves off.
        if (outcome === 'stopped') return 'done';
        if (outcome === 'kept') kept += 1;
      } catch (error) {
        failed += 1;
        log.error({ err: error, organizationId: chat.organization_id, chatId: chat.chat_id }, 'a chat stays for now');
      }
    }
  }
  if (failed > 0) throw new Error(`${failed} chats could not be removed`);
  return 'done';
};
