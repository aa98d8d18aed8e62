import { sql } from 'slonik';
import { z } from 'zod';
import type { Queries } from '../../engine/db/call.ts';
import { conditions } from '../../engine/db/conditions.ts';
import { Problem } from '../../engine/db/problem.ts';
import { requireOrganization, scoped } from '../../engine/db/scope.ts';
import { mapping } from '../../engine/mapping.ts';
import type { Storage } from '../../engine/storage/index.ts';
import { uuid } from '../fields/ids.ts';
import { dateTime, timestamp } from '../fields/timestamp.ts';
import { storedProblems } from '../files/stored_problems.ts';
import type { StoredBytes } from '../http/bytes.ts';
import { ids } from '../http/openapi/example_values.ts';
import { keyColumns, keyset, type Pagination, pageQuery } from '../http/pagination.ts';
import { department } from '../organizations/schema.ts';

export const SOURCE_ORIGINS = ['onboarding', 'chat', 'task', 'research'] as const;
export const SOURCE_KINDS = ['file', 'markdown', 'page'] as const;
export const SOURCE_STATUSES = ['stored', 'ingested', 'failed'] as const;

const errorSchema = z.object({ code: z.string(), message: z.string() });

/** A retained source (docs/interface.md 2.8). */
export const contextSourceSchema = z
  .object({
    id: uuid,
    origin: z.enum(SOURCE_ORIGINS),
    status: z
      .enum(SOURCE_STATUSES)
      .describe('`stored`: not read yet. `ingested`: read completely, can serve as evidence. `failed`: see `error`.'),
    kind: z.enum(SOURCE_KINDS),
    title: z.string().nullable(),
    fileName: z.string(),
    mediaType: z.string(),
    sizeBytes: z.int(),
    sha256: z.string(),
    department: department.nullable().describe('Null: evidence for the whole organization.'),
    provenanceUrls: z.array(z.string()).describe('The addresses that the source comes from.'),
    error: errorSchema.nullable(),
    uri: z.string().describe('How entries of documents cite the source.'),
    createdAt: dateTime,
  })
  .meta({
    id: 'ContextSource',
    example: {
      id: ids.source,
      origin: 'chat',
      status: 'stored',
      kind: 'file',
      title: null,
      department: 'growth',
      provenanceUrls: [],
      error: null,
      uri: `org://${ids.organization}/context/sources/${ids.source}`,
    },
  });
export type ContextSource = z.output<typeof contextSourceSchema>;

/** A row of `app.context_sources`, as `to_jsonb` writes it. */
export const contextSourceRow = z
  .object({
    organization_id: z.string(),
    id: z.string(),
    origin: z.enum(SOURCE_ORIGINS),
    status: z.enum(SOURCE_STATUSES),
    kind: z.enum(SOURCE_KINDS),
    title: z.string().nullable(),
    file_name: z.string(),
    media_type: z.string(),
    size_bytes: z.int(),
    sha256: z.string(),
    storage_key: z.string(),
    department: department.nullable(),
    provenance_urls: z.array(z.string()),
    error: z.looseObject({ code: z.string().optional(), message: z.string().optional() }).nullable(),
    created_at: timestamp,
  })
  .pipe(
    mapping((row) => ({
      source: {
        id: row.id,
        origin: row.origin,
        status: row.status,
        kind: row.kind,
        title: row.title,
        fileName: row.file_name,
        mediaType: row.media_type,
        sizeBytes: row.size_bytes,
        sha256: row.sha256,
        department: row.department,
        provenanceUrls: row.provenance_urls,
        error: row.error && {
          code: row.error.code ?? 'failed',
          message: row.error.message ?? 'It could not be ingested.',
        },
        uri: `org://${row.organization_id}/context/sources/${row.id}`,
        createdAt: row.created_at,
      } satisfies ContextSource,
      file: { key: row.storage_key, size: row.size_bytes, sha256: row.sha256 },
    })),
  );

export const contextSourcesSchema = z
  .object({
    items: z.array(contextSourceSchema),
    issues: z
      .array(z.object({ sourceId: uuid, code: z.string(), message: z.string() }))
      .describe('Problems of sources in this page. These sources are still in the list.'),
  })
  .meta({ id: 'ContextSources', example: { issues: [] } });

/** Query of the source list. */
export const contextSourceListQuery = {
  ...pageQuery(),
  origin: z.enum(SOURCE_ORIGINS).optional().describe('Sources of this origin.'),
  status: z.enum(SOURCE_STATUSES).optional().describe('Sources with this status.'),
  department: department.optional().describe('Sources for this department.'),
};
const querySchema = z.object(contextSourceListQuery);

const pageRow = z.object({ row: contextSourceRow, ...keyColumns });

/**
 * One page of an organization's retained sources, newest first.
 * @throws Problem 404 `organization_not_found`; 400 for a cursor that does not fit
 */
export async function listContextSources(
  db: Queries,
  storage: Storage,
  organizationId: string,
  query: z.output<typeof querySchema>,
): Promise<{ data: z.output<typeof contextSourcesSchema>; pagination: Pagination }> {
  const { cursor, limit, ...filters } = query;
  const page = keyset({
    list: `context_sources:${organizationId}`,
    sort: { name: 'createdAt', key: sql.fragment`s.created_at`, type: 'timestamptz', direction: 'desc' },
    id: sql.fragment`s.id`,
    filters,
    cursor,
    limit,
  });
  const rows = await db.any(
    scoped(
      organizationId,
      pageRow,
      sql.fragment`
        select to_jsonb(s) as row, ${page.columns}
        from app.context_sources s
        where s.organization_id = scope.organization_id and ${conditions('s', filters)} and ${page.where}
        ${page.orderAndLimit}`,
    ),
  );
  if (rows.length === 0) await requireOrganization(db, organizationId);
  const { data, pagination } = page.finish(rows, ({ row }) => row);
  const problems = await storedProblems(
    storage,
    data.map(({ file }) => file),
  );
  const issues = data.flatMap(({ source }, index) => {
    const problem = problems[index] ?? source.error;
    return problem ? [{ sourceId: source.id, ...problem }] : [];
  });
  return { data: { items: data.map(({ source }) => source), issues }, pagination };
}

/**
 * The retained bytes of a source, whatever its status.
 * @throws Problem 404 `organization_not_found` or `not_found`
 */
export async function getContextSourceBytes(
  db: Queries,
  organizationId: string,
  sourceId: string,
): Promise<Omit<StoredBytes, 'storage' | 'signal'>> {
  const found = await db.maybeOne(
    scoped(
      organizationId,
      z.object({ row: contextSourceRow }),
      sql.fragment`
        select to_jsonb(s) as row from app.context_sources s
        where s.organization_id = scope.organization_id and s.id = ${sourceId}::uuid`,
    ),
  );
  if (!found) {
    await requireOrganization(db, organizationId);
    throw new Problem(404, 'not_found', 'The organization has no source with this id.');
  }
  const { source, file } = found.row;
  return { ...file, mediaType: source.mediaType, fileName: source.fileName, evidence: true };
}
