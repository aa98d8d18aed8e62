import type { Logger } from 'pino';
import { sql } from 'slonik';
import { z } from 'zod';
import { call, ignored, type Queries } from '../../engine/db/call.ts';
import { Problem } from '../../engine/db/problem.ts';
import { scoped } from '../../engine/db/scope.ts';
import { mapping } from '../../engine/mapping.ts';
import { BrokenSourcesError, type ScopeDocuments, storeFirstRevision } from '../../engine/onboarding/index.ts';
import type { Storage } from '../../engine/storage/index.ts';
import type { Onboarding } from './schema.ts';

const bytesRow = z
  .object({
    id: z.string(),
    media_type: z.string(),
    size_bytes: z.int(),
    sha256: z.string(),
    storage_key: z.string(),
  })
  .pipe(
    mapping((row) => ({
      id: row.id,
      mediaType: row.media_type,
      size: row.size_bytes,
      sha256: row.sha256,
      key: row.storage_key,
    })),
  );

/**
 * Stores the documents that the completion publishes, made of the onboarding's review. When it is refused after all the
 * clean-up of the context removes them. Sources that were broken since the review have failed, which makes another review.
 * @throws Problem 409 request_failed (stale), StorageUnavailableError
 */
export async function storeReviewed(
  db: Queries,
  storage: Storage,
  { organizationId, review }: Onboarding,
  signal: AbortSignal,
): Promise<ScopeDocuments[]> {
  if (review === null) throw new Error('an onboarding in review has none');
  const ids = [...review.summary.sources, ...review.summary.evidence].map(({ id }) => id);
  const rows = await db.any(
    scoped(
      organizationId,
      bytesRow,
      sql.fragment`
        select s.id::text, s.media_type, s.size_bytes, s.sha256, s.storage_key
        from app.context_sources s
        where s.organization_id = scope.organization_id and s.id = any (${sql.array([...ids], 'uuid')})`,
    ),
  );
  const bytes = new Map(rows.map((row) => [row.id, row]));
  try {
    return await storeFirstRevision(organizationId, review.summary, { storage, bytes, signal });
  } catch (error) {
    if (!(error instanceof BrokenSourcesError)) throw error;
    for (const { id, reason } of error.sources) await markBroken(db, organizationId, id, reason);
    throw new Problem(
      409,
      'request_failed',
      'Sources of the review were found broken: read the review anew, put them again, or confirm its sha256 with allowWarnings',
      error.sources.map(({ id, reason }) => ({
        path: 'reviewSha256',
        code: 'stale',
        message: `is not the digest of the review any more: the source ${id} ${BROKEN[reason]}`,
      })),
    );
  }
}

const BROKEN = { missing: 'is no longer stored', changed: 'was changed after it was stored' } as const;

async function markBroken(db: Queries, organizationId: string, sourceId: string, reason: keyof typeof BROKEN) {
  const args = {
    organizationId,
    sourceId,
    status: 'failed',
    error: { code: `bytes_${reason}`, message: BROKEN[reason] },
  };
  await call(db, 'context_source_mark', args, ignored);
}

/** Deletes bytes that no row names any more. What cannot be deleted now the clean-up finds by its age. */
export async function deleteStored(storage: Storage, keys: readonly string[], log: Logger): Promise<void> {
  for (const key of keys) {
    await storage.delete(key).catch((err: unknown) => log.warn({ err }, 'bytes of a forgotten source stay for now'));
  }
}
