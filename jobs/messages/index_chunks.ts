import { sql } from 'slonik';
import { z } from 'zod';
import { call, ignored } from '../../engine/db/call.ts';
import type { Database } from '../../engine/db/database.ts';
import { isTooSlow, isTransient, isUnavailable } from '../../engine/db/errors.ts';
import { functionCall } from '../../engine/db/function_call.ts';
import type { JobContext, JobHandler } from '../runner/handler.ts';

const ORGANIZATIONS = 100;
/** Of each of them, in a read. */
const MESSAGES = 10;
/** Pieces of a message in a transaction: some 100 ms. */
const CHUNKS = 4;
/** Then the jobs that wait come first. */
const LONGEST_MS = 20_000;

const dueSchema = z.object({ organization_id: z.uuid(), message_id: z.uuid() });
type Due = z.output<typeof dueSchema>;
const filledSchema = z.object({ filled: z.int() });

async function readDue(db: Database, after: string | null) {
  const due = functionCall('message_chunks_due', { organizations: ORGANIZATIONS, rows: MESSAGES, after });
  const messages = await db.any(sql.type(dueSchema)`select organization_id, message_id from ${due}`);
  const ids = [...new Set(messages.map((message) => message.organization_id))].toSorted();
  return { messages, after: ids[ORGANIZATIONS - 1] ?? null };
}

/** @returns whether it cut any piece */
async function fill({ db, log }: JobContext, message: Due): Promise<boolean> {
  const args = { organizationId: message.organization_id, messageId: message.message_id };
  try {
    const { filled } = await call(db, 'message_chunks_fill', { ...args, limit: CHUNKS }, filledSchema);
    return filled > 0;
  } catch (error) {
    if (isTransient(error)) return false;
    if (isUnavailable(error) && !isTooSlow(error)) throw error;
    await call(db, 'message_chunks_postpone', args, ignored);
    log.error({ err: error, ...args }, 'a long message is not indexed for now');
    return false;
  }
}

/**
 * Indexes what lies beyond the beginning of long messages, a few pieces of each after the other, organizations in turns. Dispatch
 * adds it where messages wait. A crash anywhere loses nothing: a piece that waits says how far a message is.
 */
export const messagesIndexChunks: JobHandler<'messages__index_chunks'> = async (_payload, context) => {
  const end = Date.now() + LONGEST_MS;
  let after: string | null = null;
  let further = false;
  for (;;) {
    const read = await readDue(context.db, after);
    after = read.after;
    for (const message of read.messages) {
      if (context.signal.aborted || Date.now() > end) return 'unfinished';
      const filled = await fill(context, message);
      further ||= filled;
    }
    if (after !== null) continue;
    // What is left, if anything, another process is cutting.
    if (!further) return 'done';
    further = false;
  }
};
