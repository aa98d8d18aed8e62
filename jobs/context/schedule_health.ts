import { sql } from 'slonik';
import { z } from 'zod';
import { functionCall } from '../../engine/db/function_call.ts';
import type { JobHandler } from '../runner/handler.ts';

const BATCH = 200;
/** Reports are daily; promotions ask for one at once. */
const EVERY_HOURS = 24;

const dueRow = z.object({ id: z.string() });

/** Lets each organization be assessed, and its context be cleaned, whose last full audit is a day old. */
export const contextHealthSchedule: JobHandler<'context__schedule_health'> = async (
  _payload,
  { db, addJob, signal },
) => {
  let after: string | null = null;
  for (;;) {
    const due = functionCall('context_health_due', { hours: EVERY_HOURS, after, limit: BATCH });
    const rows: readonly z.output<typeof dueRow>[] = await db.any(
      sql.type(dueRow)`select d.id::text from ${due} d(id)`,
    );
    for (const { id: organizationId } of rows) {
      if (signal.aborted) return 'unfinished';
      await addJob(
        'context__assess_health',
        { organizationId, assessment: 'full_audit' },
        { key: `context__assess_health:${organizationId}` },
      );
      await addJob('context__clean_files', { organizationId }, { key: `context__clean_files:${organizationId}` });
    }
    const last = rows.at(-1);
    if (rows.length < BATCH || !last) return 'done';
    after = last.id;
  }
};
