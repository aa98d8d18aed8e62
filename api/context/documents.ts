import { z } from 'zod';
import { CONTEXT_SCOPES, DOCUMENT_KINDS } from '../../engine/context/index.ts';
import { mapping } from '../../engine/mapping.ts';
import { filePath } from '../fields/file_path.ts';
import { storedUuid } from '../fields/ids.ts';
import { dateTime, timestamp } from '../fields/timestamp.ts';
import { digests, ids } from '../http/openapi/example_values.ts';

export const contextScope = z
  .enum(CONTEXT_SCOPES)
  .meta({ id: 'ContextScope', description: 'The whole organization, or a department.' });
export const documentKind = z.enum(DOCUMENT_KINDS).meta({ id: 'DocumentKind' });

// Runs get it below context/{scope}/, and their paths have at most 1000 bytes.
const MAX_PATH_BYTES = 900;

/**
 * The path of a document in its scope, and the selector of one: relative, and plain for every file system that workers
 * lay documents out on (no drive, no names that end with a dot or a space, nothing that is dots or a slash once decoded).
 */
export const documentPath = filePath
  .refine((text) => Buffer.byteLength(text) <= MAX_PATH_BYTES, `must have at most ${MAX_PATH_BYTES} bytes`)
  .refine((text) => !/[. ](?:\/|$)|^[a-z]:/i.test(text), 'must not name a drive, nor end a part with a dot or a space')
  .refine((text) => !/%(?:2e|2f|5c|00)/i.test(text), 'must not be encoded');

/** `org://…` of a document: a name, never a place. */
export function documentUri(organizationId: string, scope: string, path: string): string {
  return `org://${organizationId}/context/${scope}/${path.split('/').map(encodeURIComponent).join('/')}`;
}

const documentSchema = z.object({
  kind: documentKind,
  path: z.string(),
  sizeBytes: z.int(),
  sha256: z.string(),
  sourceIds: z.array(storedUuid).describe('The sources that its entries cite.'),
});

/** An immutable revision of a scope. */
export const contextRevisionSchema = z
  .object({
    scope: contextScope,
    revision: z.int(),
    baseRevision: z.int().describe('The revision that this one is based on; 0 for the first.'),
    createdAt: dateTime,
    createdBy: z
      .object({
        kind: z.enum(['owner', 'service', 'agent']),
        agentProfileId: storedUuid.optional(),
        runId: storedUuid.optional(),
        taskId: storedUuid.optional(),
        chatId: storedUuid.optional(),
      })
      .describe('Who published the revision, and in which run.'),
    documents: z.array(documentSchema),
  })
  .meta({
    id: 'ContextRevision',
    description: 'A published revision of a scope. It never changes.',
    example: {
      scope: 'growth',
      revision: 4,
      baseRevision: 3,
      createdBy: { kind: 'agent', agentProfileId: ids.growthProfile, runId: ids.run, taskId: ids.task },
      documents: [
        {
          kind: 'facts',
          path: 'market.json',
          sizeBytes: 3_120,
          sha256: digests.report,
          sourceIds: [ids.source],
        },
      ],
    },
  });
export type ContextRevision = z.output<typeof contextRevisionSchema>;

/** What `app.context_promote` returns. */
export const promotionResult = z.object({
  revision: z
    .object({
      scope: contextScope,
      revision: z.int(),
      base_revision: z.int(),
      created_at: timestamp,
      created_by: contextRevisionSchema.shape.createdBy,
      documents: z.array(
        z
          .object({
            kind: documentKind,
            path: z.string(),
            size_bytes: z.int(),
            sha256: z.string(),
            source_ids: z.array(z.string()),
          })
          .pipe(
            mapping((row) => ({
              kind: row.kind,
              path: row.path,
              sizeBytes: row.size_bytes,
              sha256: row.sha256,
              sourceIds: row.source_ids,
            })),
          ),
      ),
    })
    .pipe(
      mapping(
        (row): ContextRevision => ({
          scope: row.scope,
          revision: row.revision,
          baseRevision: row.base_revision,
          createdAt: row.created_at,
          createdBy: row.created_by,
          documents: row.documents,
        }),
      ),
    ),
});

/** Documents of published revisions, as the reads select them. */
export const publishedDocumentRow = z
  .object({
    scope: contextScope,
    revision: z.int(),
    published_at: timestamp,
    path: z.string(),
    kind: documentKind,
    storage_key: z.string(),
    size_bytes: z.int(),
    sha256: z.string(),
  })
  .pipe(
    mapping((row) => ({
      scope: row.scope,
      revision: row.revision,
      publishedAt: row.published_at,
      path: row.path,
      kind: row.kind,
      file: { key: row.storage_key, size: row.size_bytes, sha256: row.sha256 },
    })),
  );
export type PublishedDocument = z.output<typeof publishedDocumentRow>;
