import { sql } from 'slonik';
import { z } from 'zod';
import {
  DOCUMENT_MAX_BYTES,
  DocumentError,
  type DocumentKind,
  type Entry,
  entriesSchema,
  foreignCitations,
  REVISION_MAX_DOCUMENTS,
  type StoredDocument,
  storeDocument,
} from '../../engine/context/index.ts';
import { call, type Queries } from '../../engine/db/call.ts';
import { scoped } from '../../engine/db/scope.ts';
import type { Json } from '../../engine/db/sql_types.ts';
import { layoutConflicts } from '../../engine/file_paths.ts';
import type { Storage } from '../../engine/storage/index.ts';
import { filePath } from '../fields/file_path.ts';
import { uuid } from '../fields/ids.ts';
import { actorOf } from '../http/actor.ts';
import type { Caller } from '../http/caller.ts';
import type { Context } from '../http/endpoint.ts';
import { invalid, toProblem, validationFailed } from '../http/errors.ts';
import { type ContextRevision, contextScope, documentKind, documentPath, promotionResult } from './documents.ts';

const common = {
  scope: contextScope,
  baseRevision: z
    .int()
    .min(0)
    .max(2_147_483_647)
    .nullable()
    .describe(
      'The published revision that this one is based on; 0 or null if there is none. 409 if it is not the published one.',
    ),
  removePaths: z
    .array(documentPath)
    .max(REVISION_MAX_DOCUMENTS)
    .default([])
    .describe('Paths of documents to remove. Documents that are not named stay as they are.'),
};

type Named = Readonly<{ documents: readonly { path: string }[]; removePaths: readonly string[] }>;

/** A path stands once in a revision, and a promotion that changes nothing is a mistake. */
function checkPaths({ documents, removePaths }: Named, context: z.RefinementCtx): void {
  const paths = [...documents.map(({ path }) => path), ...removePaths];
  if (paths.length === 0) {
    context.addIssue({ code: 'custom', path: ['documents'], message: 'must name what to publish or remove' });
  }
  if (new Set(paths).size < paths.length) {
    context.addIssue({ code: 'custom', path: ['documents'], message: 'must name each path once' });
  }
}

/** `POST /context/promotions`. */
export const promotionBody = z
  .strictObject({
    ...common,
    documents: z
      .array(z.strictObject({ kind: documentKind, path: documentPath, entries: entriesSchema }))
      .max(REVISION_MAX_DOCUMENTS),
  })
  .superRefine(checkPaths);

/** `POST /tasks/{taskRef}/context-revisions/promote`. */
export const taskPromotionBody = z
  .strictObject({
    ...common,
    documents: z
      .array(
        z.strictObject({
          kind: documentKind,
          path: documentPath,
          outputPath: filePath
            .optional()
            .describe('The output file that contains `{"entries": […]}`. Default: `path`.'),
          runId: uuid
            .optional()
            .describe(
              'The run that stored the file. Default: the own run of the caller, else the newest that succeeded.',
            ),
        }),
      )
      .max(REVISION_MAX_DOCUMENTS),
  })
  .superRefine(checkPaths);

export type NewDocument = Readonly<{ kind: DocumentKind; path: string; entries: readonly Entry[] }>;

/** Where a promotion goes, and who makes it. */
export type Promotion = Readonly<{
  organizationId: string;
  scope: z.output<typeof contextScope>;
  baseRevision: number | null;
  removePaths: readonly string[];
  caller: Caller;
  taskRef?: string;
}>;

function callPromote<S extends z.ZodType>(db: Queries, promotion: Promotion, documents: Json | null, schema: S) {
  const args = {
    organizationId: promotion.organizationId,
    scope: promotion.scope,
    baseRevision: promotion.baseRevision,
    documents,
    actor: actorOf(promotion.caller),
    taskRef: promotion.taskRef,
  };
  return call(db, 'context_promote', args, schema);
}

/** Before files are read or stored: may this be? @throws Problem 401, 404, 409 */
export async function checkPromotion(db: Queries, promotion: Promotion): Promise<void> {
  await callPromote(db, promotion, null, z.unknown());
}

const pathRow = z.object({ path: z.string() });

/**
 * New documents are laid out beside each other and those of the base that stay. A revision never changes, and the promotion is refused where another
 * one is published by then.
 * @throws Problem 400
 */
async function requireLayoutOnBase(db: Queries, promotion: Promotion, documents: readonly NewDocument[]) {
  const { organizationId, scope, baseRevision, removePaths } = promotion;
  const base = await db.any(
    scoped(
      organizationId,
      pathRow,
      sql.fragment`
        select d.path
        from app.context_documents d
        where d.organization_id = scope.organization_id and d.scope = ${scope} and d.revision = ${baseRevision ?? 0}`,
    ),
  );
  const changed = new Set([...removePaths, ...documents.map(({ path }) => path)]);
  const taken = base.map(({ path }) => path).filter((path) => !changed.has(path));
  const conflicts = layoutConflicts(
    documents.map(({ path }) => path),
    { taken },
  );
  if (conflicts.length === 0) return;
  throw validationFailed(
    conflicts.map(({ index, message, kind }) => ({
      path: `documents.${index}.path`,
      message,
      code: kind === 'same' ? 'layout_conflict' : 'below_a_document',
    })),
  );
}

async function storeOne(
  storage: Storage,
  organizationId: string,
  document: NewDocument,
  index: number,
): Promise<StoredDocument> {
  const [foreign] = foreignCitations(organizationId, document.entries);
  if (foreign !== undefined) {
    throw invalid(`documents.${index}`, `entry ${foreign} cites what is none of this organization`, 'foreign_uri');
  }
  try {
    return await storeDocument(storage, organizationId, document);
  } catch (error) {
    if (!(error instanceof DocumentError)) throw error;
    throw invalid(`documents.${index}`, `must have at most ${DOCUMENT_MAX_BYTES} bytes as a file`, 'too_large');
  }
}

/**
 * Stores the files, then publishes the revision that names them. Where that is refused the files go; where its outcome is
 * unknown they stay, and the clean-up looks a day later whether a row names them.
 * @throws Problem as `app.context_promote`, 400 for paths that cannot be laid out beside those of the base
 */
export async function promote(
  { db, storage, commit }: Pick<Context, 'db' | 'commit'> & { storage: Storage },
  promotion: Promotion,
  documents: readonly NewDocument[],
): Promise<ContextRevision> {
  await requireLayoutOnBase(db, promotion, documents);
  const stored: StoredDocument[] = [];
  try {
    for (const [index, document] of documents.entries()) {
      stored.push(await storeOne(storage, promotion.organizationId, document, index));
    }
    const removed = promotion.removePaths.map((path) => ({ path, removed: true }));
    return await commit(
      async (on) => (await callPromote(on, promotion, [...stored, ...removed], promotionResult)).revision,
    );
  } catch (error) {
    if (toProblem(error).problem.status < 500) {
      await Promise.all(stored.map(({ storageKey }) => storage.delete(storageKey)));
    }
    throw error;
  }
}
