import { sql } from 'slonik';
import { z } from 'zod';
import { DOCUMENT_MAX_BYTES, type DocumentKind, type Entry, readDocument } from '../../engine/context/index.ts';
import type { Queries } from '../../engine/db/call.ts';
import { functionCall } from '../../engine/db/function_call.ts';
import { scoped } from '../../engine/db/scope.ts';
import type { Storage } from '../../engine/storage/index.ts';
import { invalid } from '../http/errors.ts';

type Wanted = Readonly<{
  kind: DocumentKind;
  path: string;
  outputPath?: string | undefined;
  runId?: string | undefined;
}>;

const outputRow = z.object({
  storage_key: z.string().nullable(),
  size: z.int().nullable(),
  sha256: z.string().nullable(),
});

/** Where the wanted files of the task lie, in their order; nulls where no run has stored one. */
function findOutputs(
  db: Queries,
  organizationId: string,
  taskRef: string,
  ownRunId: string | null,
  documents: readonly Wanted[],
) {
  const wanted = documents.map(({ path, outputPath, runId }) => ({ path: outputPath ?? path, runId: runId ?? null }));
  return db.any(
    scoped(
      organizationId,
      outputRow,
      sql.fragment`
        select f.storage_key, f.size, f.sha256
        from jsonb_array_elements(${sql.jsonb(wanted)}) with ordinality w(file, place)
        left join lateral (
          select o.storage_key, o.size, o.sha256
          from app.runs u
          join app.run_outputs o on o.organization_id = u.organization_id and o.run_id = u.id
            and o.path = w.file ->> 'path'
          where u.organization_id = scope.organization_id
            and u.task_id = ${functionCall('task_find', { organizationId: sql.fragment`scope.organization_id`, taskRef })}
            and case when w.file ->> 'runId' is not null then u.id = (w.file ->> 'runId')::uuid
                     else u.status = 'succeeded' or u.id = ${ownRunId}::uuid end
          order by u.created_at desc, u.id desc limit 1) f on true
        order by w.place`,
    ),
  );
}

/**
 * The documents that output files of a task hold, as `{entries}`. Files are compared with what their run stored.
 * @param ownRunId the run of the caller, whose files count although it has not succeeded yet
 * @throws Problem 400 for a file that is not there, or is no document
 */
export async function readTaskDocuments(
  db: Queries,
  storage: Storage,
  place: Readonly<{ organizationId: string; taskRef: string; ownRunId: string | null }>,
  documents: readonly Wanted[],
): Promise<{ kind: DocumentKind; path: string; entries: Entry[] }[]> {
  const { organizationId, taskRef, ownRunId } = place;
  const rows = await findOutputs(db, organizationId, taskRef, ownRunId, documents);
  const read: { kind: DocumentKind; path: string; entries: Entry[] }[] = [];
  for (const [index, { kind, path }] of documents.entries()) {
    const at = `documents.${index}`;
    const { storage_key: key, size, sha256 } = rows[index] ?? {};
    if (typeof key !== 'string' || typeof size !== 'number' || typeof sha256 !== 'string') {
      throw invalid(at, 'names a file that no fitting run of the task has stored', 'not_stored');
    }
    if (size > DOCUMENT_MAX_BYTES) {
      throw invalid(at, `names a file of more than ${DOCUMENT_MAX_BYTES} bytes`, 'too_large');
    }
    const content = await readDocument(storage, { key, size, sha256 });
    if ('issue' in content) throw invalid(at, `names a file that ${content.issue}`, 'unreadable');
    read.push({ kind, path, entries: content.entries });
  }
  return read;
}
