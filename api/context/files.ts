import { sql } from 'slonik';
import { z } from 'zod';
import { type ContextScope, DOCUMENT_MEDIA_TYPE, type Entry, readDocument } from '../../engine/context/index.ts';
import type { Queries } from '../../engine/db/call.ts';
import { Problem } from '../../engine/db/problem.ts';
import { organizationNotFound, requireOrganization, scoped } from '../../engine/db/scope.ts';
import type { Storage } from '../../engine/storage/index.ts';
import { dateTime } from '../fields/timestamp.ts';
import { storedProblems } from '../files/stored_problems.ts';
import type { StoredBytes } from '../http/bytes.ts';
import { digests, ids, times } from '../http/openapi/example_values.ts';
import { contextScope, documentKind, documentUri, type PublishedDocument, publishedDocumentRow } from './documents.ts';

const entrySchema = z.object({
  key: z.string(),
  title: z.string().nullable(),
  value: z.union([z.string(), z.number(), z.boolean()]).nullable(),
  status: z.string().nullable(),
  notes: z.string().nullable(),
  evidence: z.array(z.string()),
  steps: z.array(z.string()),
});

/** The published documents of a scope (docs/interface.md 2.8). */
export const contextSummarySchema = z
  .object({
    scope: contextScope,
    revision: z.int().describe('The published revision. 0 if nothing is published in this scope.'),
    documents: z.array(
      z.object({
        kind: documentKind,
        path: z.string(),
        entries: z.array(entrySchema),
        issue: z.string().optional().describe('Why the document cannot be read. Its `entries` are empty then.'),
      }),
    ),
  })
  .meta({
    id: 'ContextSummary',
    example: {
      scope: 'organization',
      revision: 1,
      documents: [
        {
          kind: 'facts',
          path: 'facts.json',
          entries: [
            {
              key: 'regions',
              title: 'Sales regions',
              value: 'north, south, east, west',
              status: 'confirmed',
              notes: null,
              evidence: [ids.source],
              steps: [],
            },
          ],
        },
      ],
    },
  });

const AT_ONCE = 8;

const publishedRow = z.object({ documents: z.array(z.unknown()), revision: z.int() });

/** Published documents of all scopes, or of one. @throws Problem 404 `organization_not_found` */
async function published(
  db: Queries,
  organizationId: string,
  scope: ContextScope | null,
): Promise<{ revision: number; documents: PublishedDocument[] }> {
  const row = await db.maybeOne(
    scoped(
      organizationId,
      publishedRow,
      sql.fragment`
        select coalesce(max(p.revision), 0) as revision, coalesce(jsonb_agg(
            to_jsonb(d) || jsonb_build_object('published_at', p.published_at)
            order by array_position(array['organization', 'engineering', 'growth', 'support'], p.scope), d.path)
          filter (where d.path is not null), '[]') as documents
        from app.context_publications p
        left join app.context_documents d on d.organization_id = p.organization_id and d.scope = p.scope
          and d.revision = p.revision
        where p.organization_id = scope.organization_id and (${scope}::text is null or p.scope = ${scope})`,
    ),
  );
  if (!row) throw organizationNotFound();
  return { revision: row.revision, documents: z.array(publishedDocumentRow).parse(row.documents) };
}

/**
 * The published documents of a scope with their entries. Each file is read and compared with its digest; one that cannot
 * be read is reported for itself.
 * @throws Problem 404 `organization_not_found`
 */
export async function getContextSummary(
  db: Queries,
  storage: Storage,
  organizationId: string,
  scope: ContextScope,
  signal: AbortSignal,
): Promise<z.output<typeof contextSummarySchema>> {
  const { revision, documents } = await published(db, organizationId, scope);
  const read: { kind: PublishedDocument['kind']; path: string; entries: Entry[]; issue?: string }[] = [];
  for (let start = 0; start < documents.length; start += AT_ONCE) {
    const some = documents.slice(start, start + AT_ONCE).map(async ({ kind, path, file }) => {
      const content = await readDocument(storage, file, signal);
      if ('entries' in content) return { kind, path, entries: content.entries };
      return { kind, path, entries: [], issue: `The document ${content.issue}.` };
    });
    read.push(...(await Promise.all(some)));
  }
  return { scope, revision, documents: read };
}

/** The files of the published revisions of all scopes. */
export const contextFilesSchema = z
  .object({
    items: z.array(
      z.object({
        scope: contextScope,
        path: z.string().describe('For downloading the file; together with `scope` if several scopes have the path.'),
        kind: documentKind,
        revision: z.int(),
        mediaType: z.string(),
        sizeBytes: z.int(),
        sha256: z.string(),
        uri: z.string(),
        publishedAt: dateTime,
      }),
    ),
    issues: z
      .array(
        z.object({
          scope: contextScope,
          path: z.string(),
          code: z.enum(['bytes_missing', 'bytes_changed']),
          message: z.string(),
        }),
      )
      .describe(
        'Files whose stored bytes are missing or have a wrong size. The content itself is verified when it is read.',
      ),
  })
  .meta({
    id: 'ContextFiles',
    example: {
      items: [
        {
          scope: 'organization',
          path: 'facts.json',
          kind: 'facts',
          revision: 1,
          mediaType: 'application/json',
          sizeBytes: 3_120,
          sha256: digests.report,
          uri: `org://${ids.organization}/context/organization/facts.json`,
          publishedAt: times.onboarded,
        },
      ],
      issues: [],
    },
  });

/** @throws Problem 404 `organization_not_found` */
export async function listContextFiles(
  db: Queries,
  storage: Storage,
  organizationId: string,
): Promise<z.output<typeof contextFilesSchema>> {
  const { documents } = await published(db, organizationId, null);
  const problems = await storedProblems(
    storage,
    documents.map(({ file }) => file),
  );
  return {
    items: documents.map(({ scope, path, kind, revision, publishedAt, file }) => ({
      scope,
      path,
      kind,
      revision,
      mediaType: DOCUMENT_MEDIA_TYPE,
      sizeBytes: file.size,
      sha256: file.sha256,
      uri: documentUri(organizationId, scope, path),
      publishedAt,
    })),
    issues: documents.flatMap(({ scope, path }, index) => {
      const problem = problems[index];
      return problem ? [{ scope, path, ...problem }] : [];
    }),
  };
}

/**
 * One published file by its path: of the scope, or without one of the organization's scope first.
 * @throws Problem 404 `organization_not_found` or `not_found`
 */
export async function getContextFileBytes(
  db: Queries,
  organizationId: string,
  path: string,
  scope: ContextScope | undefined,
): Promise<Omit<StoredBytes, 'storage' | 'signal'>> {
  const document = await db.maybeOne(
    scoped(
      organizationId,
      publishedDocumentRow,
      sql.fragment`
        select d.scope, d.revision, to_jsonb(p.published_at) #>> '{}' as published_at, d.path, d.kind, d.storage_key,
          d.size_bytes, d.sha256
        from app.context_publications p
        join app.context_documents d on d.organization_id = p.organization_id and d.scope = p.scope
          and d.revision = p.revision
        where p.organization_id = scope.organization_id and d.path = ${path}
          and (${scope ?? null}::text is null or p.scope = ${scope ?? null})
        order by array_position(array['organization', 'engineering', 'growth', 'support'], p.scope) limit 1`,
    ),
  );
  if (!document) {
    await requireOrganization(db, organizationId);
    throw new Problem(404, 'not_found', 'No published document has this path.');
  }
  return { ...document.file, mediaType: DOCUMENT_MEDIA_TYPE, fileName: document.path, evidence: true };
}
