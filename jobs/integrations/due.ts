import { sql } from 'slonik';
import { z } from 'zod';
import { functionCall } from '../../engine/db/function_call.ts';
import type { JobContext, Outcome } from '../runner/handler.ts';

const ORGANIZATIONS = 100;
/** Of each of them, in a read. */
const ROWS = 4;
/** Providers that respond slowly hold up nobody else's for long. */
const PARALLEL = 8;
/** Then the jobs that wait come first. */
const LONGEST_MS = 60_000;

const dueSchema = z.object({ organization_id: z.uuid(), id: z.uuid() });
export type Due = z.output<typeof dueSchema>;

/**
 * Does something with each connection for which it is due, a few at a time, organizations in turns, and each once: `run` sees to it
 * that it is due later, whatever comes of it.
 * @throws the first error of `run`, once none runs any more
 */
export async function eachDue(
  { db, signal }: Pick<JobContext, 'db' | 'signal'>,
  kind: 'check' | 'refresh',
  run: (due: Due) => Promise<void>,
): Promise<Outcome> {
  const end = Date.now() + LONGEST_MS;
  const failures: unknown[] = [];
  const isOver = () => signal.aborted || failures.length > 0 || Date.now() > end;
  let after: string | null = null;
  let found = false;
  const seen = new Set<string>();
  for (;;) {
    const due: ReturnType<typeof functionCall> = functionCall('integrations_due', {
      kind,
      organizations: ORGANIZATIONS,
      rows: ROWS,
      after,
    });
    const rows: readonly Due[] = await db.any(sql.type(dueSchema)`select organization_id, id from ${due}`);
    const ids: string[] = [...new Set(rows.map((row) => row.organization_id))].toSorted();
    const left = rows.filter(({ id }) => !seen.has(id));
    for (const { id } of left) seen.add(id);
    found ||= left.length > 0;
    async function work(): Promise<void> {
      for (let next = left.shift(); next !== undefined && !isOver(); next = left.shift()) {
        await run(next).catch((error: unknown) => failures.push(error));
      }
    }
    await Promise.all(Array.from({ length: PARALLEL }, work));
    // Not before all have ended: the job is retried, and none of them may run beside it.
    if (failures.length > 0) throw failures[0];
    if (isOver()) return 'unfinished';
    after = ids[ORGANIZATIONS - 1] ?? null;
    if (after !== null) continue;
    if (!found) return 'done';
    found = false;
  }
}
