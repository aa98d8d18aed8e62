import { Readable } from 'node:stream';
import { sql } from 'slonik';
import { z } from 'zod';
import type { Queries } from '../../engine/db/call.ts';
import { Problem } from '../../engine/db/problem.ts';
import { scoped } from '../../engine/db/scope.ts';
import { mapping } from '../../engine/mapping.ts';
import type { GetOptions, Storage } from '../../engine/storage/index.ts';
import type { StoredBytes } from '../http/bytes.ts';
import { digests } from '../http/openapi/example_values.ts';
import { runNotFound } from './list.ts';
import { INPUT_ROLES } from './schema.ts';

const manifestFileSchema = z.object({
  path: z.string().describe('Relative, in the workspace of the run.'),
  name: z.string(),
  role: z.enum(INPUT_ROLES),
  mediaType: z.string(),
  sizeBytes: z.int(),
  available: z.boolean().describe('False: the task names the file, but it did not exist when the run started.'),
});
const manifestExample = {
  path: 'sales.csv',
  name: 'sales.csv',
  role: 'input',
  mediaType: 'text/csv',
  sizeBytes: 48_213,
  available: true,
};

/** Run context manifest: what was prepared before the run started. */
export const contextManifestSchema = z
  .object({ version: z.int().describe('Version of this format.'), files: z.array(manifestFileSchema) })
  .meta({ id: 'RunContextManifest', example: { version: 1, files: [manifestExample] } });

/** The same for the worker that hydrates the files, with their digests. */
export const inputManifestSchema = z
  .object({
    version: z.int().describe('Version of this format.'),
    files: z.array(
      manifestFileSchema.extend({ sha256: z.string().nullable().describe('Hex. Null if the file is not available.') }),
    ),
  })
  .meta({ id: 'RunInputManifest', example: { version: 1, files: [{ ...manifestExample, sha256: digests.report }] } });

const inputRow = z
  .object({
    path: z.string(),
    role: z.enum(INPUT_ROLES),
    media_type: z.string(),
    size: z.int(),
    sha256: z.string().nullable(),
  })
  .pipe(
    mapping((row) => ({
      path: row.path,
      name: row.path.slice(row.path.lastIndexOf('/') + 1),
      role: row.role,
      mediaType: row.media_type,
      sizeBytes: row.size,
      available: row.sha256 !== null,
      sha256: row.sha256,
    })),
  );

const manifestRow = z.object({ files: z.array(inputRow) });

/**
 * What a run was given; `kind` null: of a run of any kind. Chat turns are given nothing.
 * @throws Problem 404 `run_not_found`
 */
export async function getInputManifest(
  db: Queries,
  organizationId: string,
  runId: string,
  kind: 'task' | null = 'task',
): Promise<z.output<typeof inputManifestSchema>> {
  const row = await db.maybeOne(
    scoped(
      organizationId,
      manifestRow,
      sql.fragment`
        select coalesce((
          select jsonb_agg(jsonb_build_object('path', i.path, 'role', i.role, 'media_type', i.media_type,
            'size', i.size, 'sha256', i.sha256) order by i.path)
          from app.run_inputs i where i.organization_id = u.organization_id and i.run_id = u.id), '[]') as files
        from app.runs u
        join app.organizations o on o.id = u.organization_id
        where u.organization_id = scope.organization_id and u.id = ${runId}::uuid
          and u.kind = coalesce(${kind}, u.kind)`,
    ),
  );
  if (!row) throw runNotFound();
  return { version: 1, files: row.files };
}

const fileRow = z.object({
  path: z.string().nullable(),
  size: z.int().nullable(),
  sha256: z.string().nullable(),
  media_type: z.string().nullable(),
  storage_key: z.string().nullable(),
  content: z.string().nullable(),
});

/** Small inputs lie in the database itself; served like any other bytes. */
function textStorage(content: string): Pick<Storage, 'get' | 'stat'> {
  const bytes = Buffer.from(content, 'utf8');
  return {
    stat: async () => ({ size: bytes.length }),
    get: async (_key: string, options: GetOptions = {}) =>
      Readable.from([bytes.subarray(options.start ?? 0, (options.end ?? bytes.length - 1) + 1)]),
  };
}

function toBytes(storage: Storage, row: z.output<typeof fileRow> | null, missing: string): StoredBytes {
  if (!row) throw runNotFound();
  const { path, size, sha256, media_type, storage_key, content } = row;
  if (path === null || size === null || sha256 === null) throw new Problem(404, 'not_found', missing);
  const place = content === null ? { storage, key: storage_key ?? '' } : { storage: textStorage(content), key: path };
  return { ...place, size, sha256, mediaType: media_type ?? 'application/octet-stream', fileName: path };
}

/** One hydrated file by its exact path. @throws Problem 404 `run_not_found` or `not_found` */
export async function getInputBytes(
  db: Queries,
  storage: Storage,
  organizationId: string,
  runId: string,
  path: string,
): Promise<StoredBytes> {
  const row = await db.maybeOne(
    scoped(
      organizationId,
      fileRow,
      sql.fragment`
        select i.path, i.size, i.sha256, i.media_type, i.storage_key, i.content
        from app.runs u
        join app.organizations o on o.id = u.organization_id
        left join app.run_inputs i on i.organization_id = u.organization_id and i.run_id = u.id and i.path = ${path}
        where u.organization_id = scope.organization_id and u.id = ${runId}::uuid and u.kind = 'task'`,
    ),
  );
  return toBytes(storage, row, 'The run was not given a file with this path.');
}

/** One artifact by its place in the recorded list. @throws Problem 404 `run_not_found` or `not_found` */
export async function getArtifactBytes(
  db: Queries,
  storage: Storage,
  organizationId: string,
  runId: string,
  index: number,
): Promise<StoredBytes> {
  const row = await db.maybeOne(
    scoped(
      organizationId,
      fileRow,
      sql.fragment`
        select f.path, f.size, f.sha256, f.media_type, f.storage_key, null::text as content
        from app.runs u
        join app.organizations o on o.id = u.organization_id
        left join app.run_outputs f on f.organization_id = u.organization_id and f.run_id = u.id
          and f.path = u.output #>> array['result', 'artifacts', ${String(index)}, 'path']
        where u.organization_id = scope.organization_id and u.id = ${runId}::uuid and u.kind = 'task'`,
    ),
  );
  return toBytes(storage, row, 'The run recorded no artifact at this place.');
}
