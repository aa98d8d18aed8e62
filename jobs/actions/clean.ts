import { sql } from 'slonik';
import { z } from 'zod';
import { call } from '../../engine/db/call.ts';
import { functionCall } from '../../engine/db/function_call.ts';
import type { JobContext, JobHandler } from '../runner/handler.ts';
import { deleteObjects, type Failure } from '../storage/delete_objects.ts';

const ORGANIZATIONS = 100;
/** Of each of them, in a read. */
const ROWS = 20;
/** Of files, and of invocations, in a transaction. */
const BATCH = 200;
/** Batches of one execution until those of others come first. */
const BATCHES = 5;

const dueSchema = z.object({ organization_id: z.uuid(), run_id: z.uuid() });
type Due = z.output<typeof dueSchema>;
const removedSchema = z.object({ rows: z.int(), keys: z.array(z.string()) });

/**
 * Objects before the rows that name them: a crash in between loses nothing. Rows whose objects stay are put off.
 * @returns whether there is more of it, and what stays
 */
async function remove({ db, storage, signal }: JobContext, due: Due) {
  const args = { organizationId: due.organization_id, runId: due.run_id, rows: BATCH };
  const stay: Failure[] = [];
  for (let batch = 0; batch < BATCHES; batch += 1) {
    if (signal.aborted) return { more: false, stay };
    const { rows, keys } = await call(db, 'action_invocations_remove', args, removedSchema);
    if (rows === 0) return { more: false, stay };
    const { removed, failures } = await deleteObjects(storage, keys);
    stay.push(...failures);
    await call(db, 'action_invocations_remove', { ...args, removed }, removedSchema);
  }
  return { more: true, stay };
}

async function readDue({ db }: JobContext, after: string | null) {
  const due = functionCall('action_invocations_due', { organizations: ORGANIZATIONS, rows: ROWS, after });
  const rows: readonly Due[] = await db.any(sql.type(dueSchema)`select organization_id, run_id from ${due}`);
  const ids = [...new Set(rows.map((row) => row.organization_id))].toSorted();
  return { rows, after: ids[ORGANIZATIONS - 1] ?? null };
}

/**
 * Removes what calls of the gateway left a day after their execution, with their files, and uploads that nobody completed.
 * Organizations take turns. Objects that cannot be removed stop no others, of their execution or another: they are tried again later.
 */
export const actionsClean: JobHandler<'actions__clean'> = async (_payload, context) => {
  const { log, signal, addJob } = context;
  const tried = new Set<string>();
  const swept = new Set<string>();
  let failed = 0;
  let found = false;
  let after: string | null = null;
  for (;;) {
    const read: Awaited<ReturnType<typeof readDue>> = await readDue(context, after);
    after = read.after;
    for (const due of read.rows.filter(({ run_id: id }) => !tried.has(id))) {
      // The next hour's run goes on where this one leaves off.
      if (signal.aborted) return 'done';
      found = true;
      try {
        // What its calls left without a row is a day old too by now.
        const key = `actions__clean_files:${due.organization_id}`;
        if (!swept.has(due.organization_id))
          await addJob('actions__clean_files', { organizationId: due.organization_id }, { key });
        swept.add(due.organization_id);
        const { more, stay } = await remove(context, due);
        if (!more) tried.add(due.run_id);
        if (stay.length > 0) {
          const { organization_id: organizationId, run_id: runId } = due;
          log.error({ ...stay[0], organizationId, runId, objects: stay.length }, 'files of a run stay for now');
        }
      } catch (error) {
        failed += 1;
        tried.add(due.run_id);
        log.error(
          { err: error, organizationId: due.organization_id, runId: due.run_id },
          'files of a run stay for now',
        );
      }
    }
    if (after !== null) continue;
    if (!found) break;
    found = false;
  }
  if (failed > 0) throw new Error(`files of ${failed} runs could not be removed`);
  return 'done';
};
