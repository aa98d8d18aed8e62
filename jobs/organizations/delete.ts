import { z } from 'zod';
import { call } from '../../engine/db/call.ts';
import type { Database } from '../../engine/db/database.ts';
import { findPostgresError, raisedProblem } from '../../engine/db/errors.ts';
import { organizationPrefix } from '../../engine/storage/index.ts';
import type { JobHandler } from '../runner/handler.ts';

const ROWS = 500;
const OBJECTS = 200;
/** Batches until the jobs that wait come first. */
const BATCHES = 20;
/** Longer than an upload that was under way at the deletion takes to end. */
const LATE_AFTER_MS = 3_600_000;

const purgeResult = z.object({ done: z.boolean(), gone: z.boolean().default(false) });

/** One batch of rows; with `forget` the organization's own row too. `gone`: there is nothing of ours under the id. */
async function purge(db: Database, organizationId: string, forget: boolean): Promise<z.output<typeof purgeResult>> {
  try {
    const args = { organizationId, limit: ROWS, forget };
    return await call(db, 'organization_purge', args, purgeResult);
  } catch (error) {
    const raised = findPostgresError(error);
    // The id was forgotten, and somebody has made an organization with it since.
    if (raised && raisedProblem(raised)?.status === 409) return { done: true, gone: true };
    throw error;
  }
}

/**
 * Removes a deleted organization's rows, then its objects, both in batches; a crash anywhere loses nothing, for each
 * batch begins with what is left, and objects are found by their prefix, not by rows. A large one leaves off now and then, for
 * the jobs of others. The second pass an hour later
 * takes what uploads have left since (an API process that dies between storing and refusing the record), and with it
 * the organization's own row. Until then the id cannot be taken again, so no pass meets the files of a new owner.
 */
export const organizationsDelete: JobHandler<'organizations__delete'> = async (payload, context) => {
  const { organizationId, late } = payload;
  const { db, storage, signal } = context;

  if (!late) {
    // First of all: if this pass dies for good, that one does its work.
    await context.addJob(
      'organizations__delete',
      { organizationId, late: true },
      { key: `organizations__delete:${organizationId}:late`, runAt: new Date(Date.now() + LATE_AFTER_MS) },
    );
  }
  for (let batch = 0; ; batch += 1) {
    if (signal.aborted || batch === BATCHES) return 'unfinished';
    // Asked before each batch of objects too: an id that is gone, or another's by now, is none of our business.
    const rows = await purge(db, organizationId, false);
    if (rows.gone) return 'done';
    if (!rows.done) continue;
    const objects = await storage.deletePrefix(organizationPrefix(organizationId), { batch: OBJECTS });
    if (objects.done) break;
  }
  if (late) await purge(db, organizationId, true);
  return 'done';
};
