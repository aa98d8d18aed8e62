import { sql } from 'slonik';
import { z } from 'zod';
import { functionCall } from '../../engine/db/function_call.ts';
import type { JobContext, JobHandler } from '../runner/handler.ts';

const BATCH = 200;
/** Reports are daily; promotions ask for one at once. */
const EVERY_HOURS = 24;

const dueRow = z.object({ id: z.string() });

const repairRow = z.object({ organization_id: z.string() });

/** Mappings that still wait for a report, whose own job was given up. */
async function scheduleRepairs({ db, addJob, signal }: JobContext): Promise<void> {
  let after: string | null = null;
  do {
    const due = functionCall('integrations_due', { kind: 'repair', organizations: BATCH, rows: 1, after });
    const rows: readonly z.output<typeof repairRow>[] = await db.any(
      sql.type(repairRow)`select d.organization_id::text from ${due} d order by 1`,
    );
    for (const { organization_id: organizationId } of rows) {
      if (signal.aborted) return;
      const payload = { organizationId, assessment: 'integration_reconciliation' } as const;
      await addJob('context__assess_health', payload, { key: `context__assess_health:${organizationId}:integrations` });
    }
    after = rows.length < BATCH ? null : (rows.at(-1)?.organization_id ?? null);
  } while (after !== null);
}

/** Lets each organization be assessed, and its context be cleaned, whose last full audit is a day old. */
export const contextHealthSchedule: JobHandler<'context__schedule_health'> = async (_payload, context) => {
  const { db, addJob, signal } = context;
  await scheduleRepairs(context);
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
