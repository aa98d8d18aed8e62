import { sql } from 'slonik';
import { z } from 'zod';
import type { Database } from '../../engine/db/database.ts';
import { scoped } from '../../engine/db/scope.ts';
import { contextKeyTime, contextPrefix } from '../../engine/storage/index.ts';
import type { JobHandler } from '../runner/handler.ts';
import { removeUnnamed } from '../storage/unnamed.ts';

const keyRow = z.object({ storage_key: z.string() });

async function exists(db: Database, organizationId: string): Promise<boolean> {
  const row = z.object({ found: z.boolean() });
  return (await db.maybeOne(scoped(organizationId, row, sql.fragment`select true as found`))) !== null;
}

async function named(db: Database, organizationId: string, keys: readonly string[]): Promise<readonly string[] | null> {
  // A deleted one shows no rows: its files are the deletion's.
  if (!(await exists(db, organizationId))) return null;
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
  return rows.map((row) => row.storage_key);
}

/**
 * Removes files of the context that were stored for a change that never came. Where there are many it goes on in another job.
 */
export const contextFilesClean: JobHandler<'context__clean_files'> = async ({ organizationId, after }, context) => {
  const { db, log, addJob } = context;
  const swept = await removeUnnamed(context, {
    prefix: contextPrefix(organizationId),
    after,
    timeOf: contextKeyTime,
    named: (keys) => named(db, organizationId, keys),
  });
  if (!swept) return 'unfinished';
  const { removed } = swept;
  if (removed > 0) log.info({ organizationId, removed }, 'files of the context that nothing names are removed');
  if (swept.after !== undefined) {
    const next = { organizationId, after: swept.after };
    await addJob('context__clean_files', next, { key: `context__clean_files:${organizationId}` });
  }
  return 'done';
};
