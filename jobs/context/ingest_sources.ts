import { sql } from 'slonik';
import { z } from 'zod';
import { call, ignored } from '../../engine/db/call.ts';
import { scoped } from '../../engine/db/scope.ts';
import { textCheck } from '../../engine/media_types.ts';
import { checkVerified, type Storage, StorageBrokenError } from '../../engine/storage/index.ts';
import type { JobHandler } from '../runner/handler.ts';

const BATCH = 50;

const sourceRow = z.object({
  id: z.string(),
  media_type: z.string(),
  storage_key: z.string(),
  size_bytes: z.int(),
  sha256: z.string(),
});

const TEXT = /^text\/|json|yaml|toml|xml|sql/;

/** Why the bytes cannot ground anything, or null. */
async function problemOf(
  storage: Storage,
  source: z.output<typeof sourceRow>,
  signal: AbortSignal,
): Promise<{ code: string; message: string } | null> {
  const text = textCheck();
  const isText = TEXT.test(source.media_type);
  const file = { key: source.storage_key, size: source.size_bytes, sha256: source.sha256 };
  try {
    await checkVerified(storage, file, { signal, ...(isText ? { observe: text.observe } : {}) });
  } catch (error) {
    if (!(error instanceof StorageBrokenError)) throw error;
    if (error.reason === 'missing') return { code: 'bytes_missing', message: 'is no longer stored' };
    return { code: 'bytes_changed', message: 'was changed after it was stored' };
  }
  const message = isText ? text.problem() : null;
  return message === null ? null : { code: 'not_text', message };
}

/**
 * Reads the sources that were stored, and says of each whether it may ground evidence: its bytes are whole, and what
 * should be text is text. One that cannot be read now stays as it is, for the next try. After a batch the jobs that wait come
 * first.
 */
export const contextSourcesIngest: JobHandler<'context__ingest_sources'> = async ({ organizationId }, context) => {
  const { db, storage, signal } = context;
  const sources = await db.any(
    scoped(
      organizationId,
      sourceRow,
      sql.fragment`
        select s.id::text, s.media_type, s.storage_key, s.size_bytes, s.sha256
        from app.context_sources s
        where s.organization_id = scope.organization_id and s.status = 'stored'
        order by s.created_at, s.id limit ${BATCH}`,
    ),
  );
  for (const source of sources) {
    if (signal.aborted) return 'unfinished';
    const problem = await problemOf(storage, source, signal);
    const args = {
      organizationId,
      sourceId: source.id,
      status: problem ? 'failed' : 'ingested',
      error: problem,
    };
    await call(db, 'context_source_mark', args, ignored);
  }
  return sources.length < BATCH ? 'done' : 'unfinished';
};
