import { sql } from 'slonik';
import { z } from 'zod';
import {
  type AssessedDocument,
  type AssessedSource,
  CONTEXT_SCOPES,
  comparedIntegrationSchema,
  DOCUMENT_KINDS,
  readDocument,
} from '../../engine/context/index.ts';
import { call, ignored } from '../../engine/db/call.ts';
import { scoped } from '../../engine/db/scope.ts';
import { checkVerified, StorageBrokenError } from '../../engine/storage/index.ts';
import type { JobContext } from '../runner/handler.ts';

const BATCH = 200;

const stateRow = z.object({
  /** Scope → published revision. */
  context: z.record(z.string(), z.int()),
  departments: z.array(z.string()),
});

/** What there is to assess; null for an organization that is gone. */
export function readState({ db }: JobContext, organizationId: string) {
  return db.maybeOne(
    scoped(
      organizationId,
      stateRow,
      sql.fragment`
        select coalesce((
            select jsonb_object_agg(p.scope, p.revision) from app.context_publications p
            where p.organization_id = scope.organization_id and p.revision is not null), '{}') as context,
          coalesce((
            select jsonb_agg(d.key order by d.key) from jsonb_each(o.config -> 'departments') d
            where (d.value ->> 'enabled')::boolean), '[]') as departments
        from app.organizations o where o.id = scope.organization_id`,
    ),
  );
}

const documentRow = z.object({
  scope: z.enum(CONTEXT_SCOPES),
  path: z.string(),
  kind: z.enum(DOCUMENT_KINDS),
  storage_key: z.string(),
  size_bytes: z.int(),
  sha256: z.string(),
});

/** The documents of these revisions, read and verified. */
export async function readDocuments(
  { db, storage, signal }: JobContext,
  organizationId: string,
  context: Readonly<Record<string, number>>,
): Promise<AssessedDocument[]> {
  const rows = await db.any(
    scoped(
      organizationId,
      documentRow,
      sql.fragment`
        select d.scope, d.path, d.kind, d.storage_key, d.size_bytes, d.sha256
        from jsonb_each_text(${sql.jsonb(context)}) p(scope, revision)
        join app.context_documents d on d.organization_id = scope.organization_id and d.scope = p.scope
          and d.revision = p.revision::integer
        order by d.scope, d.path`,
    ),
  );
  const documents: AssessedDocument[] = [];
  for (const { scope, path, kind, storage_key: key, size_bytes: size, sha256 } of rows) {
    documents.push({ scope, path, kind, content: await readDocument(storage, { key, size, sha256 }, signal) });
  }
  return documents;
}

const sourceRow = z.object({
  id: z.string(),
  file_name: z.string(),
  status: z.enum(['stored', 'ingested', 'failed']),
  problem: z.string().nullable(),
  created_micros: z.string(),
  created_ms: z.number(),
  storage_key: z.string(),
  size_bytes: z.int(),
  sha256: z.string(),
});

/** Ingested bytes that are not what they were ground nothing any more. */
async function problemOf({ db, storage, signal }: JobContext, organizationId: string, row: z.output<typeof sourceRow>) {
  try {
    await checkVerified(storage, { key: row.storage_key, size: row.size_bytes, sha256: row.sha256 }, { signal });
    return null;
  } catch (error) {
    if (!(error instanceof StorageBrokenError)) throw error;
    const missing = error.reason === 'missing';
    const message = missing ? 'is no longer stored' : 'was changed after it was stored';
    const args = {
      organizationId,
      sourceId: row.id,
      status: 'failed',
      error: { code: missing ? 'bytes_missing' : 'bytes_changed', message },
    };
    await call(db, 'context_source_mark', args, ignored);
    return message;
  }
}

/** All sources by id; the bytes of those that ground evidence are read again, and failed ones marked. */
export async function readSources(context: JobContext, organizationId: string): Promise<Map<string, AssessedSource>> {
  const sources = new Map<string, AssessedSource>();
  let after: z.output<typeof sourceRow> | undefined;
  for (;;) {
    context.signal.throwIfAborted();
    const rows: readonly z.output<typeof sourceRow>[] = await context.db.any(
      scoped(
        organizationId,
        sourceRow,
        sql.fragment`
          select s.id::text, s.file_name, s.status, s.error ->> 'message' as problem, s.storage_key, s.size_bytes,
            s.sha256, ((extract(epoch from s.created_at) * 1000000)::bigint)::text as created_micros,
            (extract(epoch from s.created_at) * 1000)::double precision as created_ms
          from app.context_sources s
          where s.organization_id = scope.organization_id
            and (s.created_at, s.id) > (
              timestamptz 'epoch' + ${after?.created_micros ?? '-1'}::bigint * interval '1 microsecond',
              ${after?.id ?? '00000000-0000-0000-0000-000000000000'}::uuid)
          order by s.created_at, s.id limit ${BATCH}`,
      ),
    );
    for (const row of rows) {
      const problem = row.status === 'ingested' ? await problemOf(context, organizationId, row) : row.problem;
      sources.set(row.id, {
        id: row.id,
        fileName: row.file_name,
        status: row.status === 'ingested' && problem !== null ? 'failed' : row.status,
        createdAt: new Date(row.created_ms),
        problem,
      });
    }
    after = rows.at(-1);
    if (rows.length < BATCH || !after) return sources;
  }
}

const reportRow = z.object({ revision: z.int(), storage_key: z.string(), size_bytes: z.int(), sha256: z.string() });

/** Where the latest report lies, or null. */
export function readLatestReport({ db }: JobContext, organizationId: string) {
  return db.maybeOne(
    scoped(
      organizationId,
      reportRow,
      sql.fragment`
        select h.revision, h.storage_key, h.size_bytes, h.sha256 from app.context_health_reports h
        where h.organization_id = scope.organization_id order by h.revision desc limit 1`,
    ),
  );
}

const comparedSchema = z.object({
  integrations: z.array(comparedIntegrationSchema),
  repairs: z.array(z.object({ id: z.uuid(), mapping: z.looseObject({}) })),
});

/** The integrations, and the repairs that wait for a report. */
export function readIntegrations({ db }: JobContext, organizationId: string) {
  return call(db, 'integrations_reconcile_read', { organizationId }, comparedSchema);
}
