import { sql } from 'slonik';
import { z } from 'zod';
import type { Task } from '../runner/handler.ts';

const BATCH = 200;
/** Reports are daily; promotions ask for one at once. */
const EVERY_HOURS = 24;

const dueRow = z.object({ id: z.string() });

/** Lets each organization be assessed, and its context be cleaned, whose last full audit is a day old. */
export const contextHealthSchedule: Task<'context_health__schedule'> = async (_payload, { db, addJob, signal }) => {
  let after: string | null = null;
  for (;;) {
    const rows: readonly z.output<typeof dueRow>[] = await db.any(
      sql.type(dueRow)`select d.id::text from app.context_health_due(${EVERY_HOURS}, ${after}, ${BATCH}) d(id)`,
    );
    for (const { id: organizationId } of rows) {
      if (signal.aborted) return 'unfinished';
      await addJob(
        'context_health__assess',
        { organizationId, assessment: 'full_audit' },
        { key: `context_health__assess:${organizationId}` },
      );
      await addJob('context_files__clean', { organizationId }, { key: `context_files__clean:${organizationId}` });
    }
    const last = rows.at(-1);
    if (rows.length < BATCH || !last) return 'done';
    after = last.id;
  }
};
