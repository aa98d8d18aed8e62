import { sql } from 'slonik';
import { z } from 'zod';
import { call } from '../../engine/db/call.ts';
import type { Database } from '../../engine/db/database.ts';
import { functionCall } from '../../engine/db/function_call.ts';
import type { JobContext, JobHandler } from '../runner/handler.ts';
import { deleteObjects } from '../storage/delete_objects.ts';

const ORGANIZATIONS = 100;
/** Files in a page. */
const ROWS = 200;

const organizationRow = z.object({ organization_id: z.uuid() });
const placeSchema = z.object({ retiredAt: z.string(), id: z.uuid() }).nullable();
type Place = z.output<typeof placeSchema>;
const expiredSchema = z.object({ keys: z.array(z.string()), after: placeSchema });
const removedSchema = z.object({ removed: z.int() });
const begunSchema = z.object({ begun: z.boolean() });

type Read = (after: string | null) => ReturnType<typeof functionCall>;

/** Those of which something is due, page by page. */
async function* dueOrganizations(db: Database, read: Read): AsyncGenerator<readonly string[]> {
  let after: string | null = null;
  do {
    const due = read(after);
    const rows: readonly z.output<typeof organizationRow>[] = await db.any(
      sql.type(organizationRow)`select organization_id from ${due}`,
    );
    const ids = rows.map((row) => row.organization_id);
    yield ids;
    after = ids[ORGANIZATIONS - 1] ?? null;
  } while (after !== null);
}

/**
 * Objects before the rows that name them: a crash in between loses nothing, and the next hour's run goes on with what stays.
 * @returns where the next page begins
 */
async function removePage(
  { config, db, log, storage }: JobContext,
  organizationId: string,
  after: Place,
): Promise<Place> {
  const hours = config.insightKeepHours;
  const page = await call(db, 'insight_segments_expired', { organizationId, hours, rows: ROWS, after }, expiredSchema);
  const { removed, failures } = await deleteObjects(storage, page.keys);
  await call(db, 'insight_segments_remove', { organizationId, hours, keys: [...removed] }, removedSchema);
  const [failure] = failures;
  if (failure) log.error({ ...failure, organizationId, objects: failures.length }, 'files of facts stay for now');
  return page.after;
}

/** A page of each of these, then the next one of those that have more. @returns how many could not be cleaned up */
async function removeExpired(context: JobContext, organizations: readonly string[]): Promise<number> {
  const places = new Map<string, Place>(organizations.map((id) => [id, null]));
  let failed = 0;
  while (places.size > 0) {
    for (const [organizationId, after] of [...places]) {
      if (context.signal.aborted) return failed;
      places.delete(organizationId);
      try {
        const next = await removePage(context, organizationId, after);
        if (next !== null) places.set(organizationId, next);
      } catch (err) {
        failed += 1;
        context.log.error({ err, organizationId }, 'files of facts stay for now');
      }
    }
  }
  return failed;
}

/**
 * Removes files of facts that are not read any more since a day, and has those looked for, once a day, that no row names. Organizations
 * take turns; what cannot be removed holds up nothing else, and is tried again by the next hour's run.
 */
export const insightsClean: JobHandler<'insights__clean'> = async (_payload, context) => {
  const { config, db, signal } = context;
  const hours = config.insightKeepHours;
  const sweeps: Read = (after) => functionCall('insight_sweeps_due', { organizations: ORGANIZATIONS, after });
  for await (const organizations of dueOrganizations(db, sweeps)) {
    for (const organizationId of organizations) await call(db, 'insight_sweep_begin', { organizationId }, begunSchema);
  }
  const expiries: Read = (after) =>
    functionCall('insight_expiries_due', { hours, organizations: ORGANIZATIONS, after });
  let failed = 0;
  for await (const organizations of dueOrganizations(db, expiries)) {
    failed += await removeExpired(context, organizations);
    if (signal.aborted) return 'done';
  }
  if (failed > 0) throw new Error(`files of facts of ${failed} organizations could not be removed`);
  return 'done';
};
