import { sql } from 'slonik';
import { z } from 'zod';
import type { Database } from '../../engine/db/database.ts';
import { scoped } from '../../engine/db/scope.ts';
import { contextKeyTime, contextPrefix } from '../../engine/storage/index.ts';
import type { JobHandler } from '../runner/handler.ts';

/** Far longer than it takes from a stored file to the row that names it. */
const ABANDONED_AFTER_MS = 24 * 3_600_000;
/** Pages until the jobs that wait come first. */
const PAGES = 20;

const keyRow = z.object({ storage_key: z.string() });

async function named(db: Database, organizationId: string, keys: readonly string[]): Promise<Set<string>> {
  const rows = await db.any(
    scoped(
      organizationId,
      keyRow,
      sql.fragment`
        select n.storage_key from (
          select d.organization_id, d.storage_key from app.context_documents d
          union all select s.organization_id, s.storage_key from app.context_sources s
          union all select h.organization_id, h.storage_key from app.context_health_reports h
        ) n
        where n.organization_id = scope.organization_id and n.storage_key = any (${sql.array([...keys], 'text')})`,
    ),
  );
  return new Set(rows.map((row) => row.storage_key));
}

async function exists(db: Database, organizationId: string): Promise<boolean> {
  const row = z.object({ found: z.boolean() });
  return (await db.maybeOne(scoped(organizationId, row, sql.fragment`select true as found`))) !== null;
}

/**
 * Removes files of the context that were stored for a change that never came: a day old, and named by no row. Where there are
 * many it goes on in another job.
 */
export const contextFilesClean: JobHandler<'context__clean_files'> = async (payload, context) => {
  const { organizationId } = payload;
  const { db, storage, log, signal, addJob } = context;
  // A deleted one shows no rows: its files are the deletion's.
  if (!(await exists(db, organizationId))) return 'done';
  const before = Date.now() - ABANDONED_AFTER_MS;
  let removed = 0;
  let { after } = payload;
  for (let read = 0; read < PAGES; read += 1) {
    if (signal.aborted) return 'unfinished';
    const page = await storage.list(contextPrefix(organizationId), after === undefined ? {} : { after });
    const old = page.objects.map(({ key }) => key).filter((key) => (contextKeyTime(key) ?? before) < before);
    const kept = old.length > 0 ? await named(db, organizationId, old) : new Set<string>();
    for (const key of old) {
      if (kept.has(key)) continue;
      await storage.delete(key);
      removed += 1;
    }
    after = page.next ?? undefined;
    if (after === undefined) break;
  }
  if (removed > 0) log.info({ organizationId, removed }, 'files of the context that nothing names are removed');
  if (after !== undefined) {
    await addJob('context__clean_files', { organizationId, after }, { key: `context__clean_files:${organizationId}` });
  }
  return 'done';
};
