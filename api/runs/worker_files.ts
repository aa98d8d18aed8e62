import { z } from 'zod';
import { call } from '../../engine/db/call.ts';
import { Problem } from '../../engine/db/problem.ts';
import { layoutKey } from '../../engine/file_paths.ts';
import { runOutputKey } from '../../engine/storage/index.ts';
import { filePath } from '../fields/file_path.ts';
import { uuid } from '../fields/ids.ts';
import {
  type ReceivedFile,
  storeAndRecord,
  storedFileRow,
  storedFileSchema,
  UPLOAD_MAX_BYTES,
} from '../files/stored_file.ts';
import { sendBytes } from '../http/bytes.ts';
import { type Endpoint, endpoint } from '../http/endpoint.ts';
import { invalid } from '../http/errors.ts';
import { leaseFields, runId } from './changes.ts';
import { getInputBytes, getInputManifest, inputManifestSchema } from './files.ts';

const headers = {
  'x-organization-id': uuid.describe('The organization of the run.'),
  'x-lease-token': leaseFields.leaseToken,
};
const recorded = z.object({ output: storedFileRow.nullable(), replaced: z.string().nullable() });
const held = z.object({ held: z.literal(true) });

/**
 * These routes have no 404: a path that the manifest does not list is a mistake in the request, and a lease
 * is not to blame for bytes that were lost.
 */
function noSuchInput(error: unknown): never {
  if (error instanceof Problem && error.status === 404) throw invalid('path', 'is not an available input of the run');
  throw error;
}

/** Outputs and inputs of a run. */
export function runFileEndpoints(): readonly Endpoint[] {
  return [
    endpoint({
      method: 'put',
      path: '/internal/runs/{runId}/outputs/{path*}',
      audience: 'worker',
      tag: 'Workers',
      operationId: 'putRunOutput',
      summary: 'Store an output file of a run',
      description:
        'The backend determines size, digest and media type from the bytes. Until the run is completed, uploading to the same path again replaces the file. 400 for a path that conflicts with a stored one: they differ only in case or Unicode normalization, or one is a folder of the other.',
      params: { runId, path: filePath.describe('Where the file lies in the outputs of the run.') },
      headers,
      body: { stream: true, mediaTypes: ['application/octet-stream'], maxBytes: UPLOAD_MAX_BYTES },
      response: { status: 201, data: storedFileSchema },
      async handler({ db, services, params, headers: lease, openBody, signal }) {
        const organizationId = lease['x-organization-id'];
        const record = (file: ReceivedFile | null) =>
          call(
            db,
            'run_output_record',
            {
              organizationId,
              runId: params.runId,
              leaseToken: lease['x-lease-token'],
              path: params.path,
              layoutKey: layoutKey(params.path),
              storageKey: file?.key,
              size: file?.size,
              sha256: file?.sha256,
              mediaType: file?.mediaType,
            },
            recorded,
          );
        // Nobody's bytes are taken without a lease; it is checked again when they are recorded.
        await record(null);
        const key = runOutputKey(organizationId, params.runId);
        const upload = { key, path: params.path, source: openBody(), signal };
        const { output, replaced } = await storeAndRecord(services.storage, upload, record);
        if (replaced !== null) await services.storage.delete(replaced);
        if (output === null) throw new Error('a stored output was not recorded');
        return output;
      },
    }),
    endpoint({
      method: 'get',
      path: '/internal/runs/{runId}/inputs',
      audience: 'worker',
      tag: 'Workers',
      operationId: 'listRunInputs',
      summary: 'List the input files of a run',
      description: 'Empty for a chat turn: its attachments are downloaded one by one.',
      params: { runId },
      headers,
      response: { data: inputManifestSchema },
      async handler({ db, params, headers: lease }) {
        const args = { organizationId: lease['x-organization-id'], runId: params.runId };
        await call(db, 'run_lease_check', { ...args, leaseToken: lease['x-lease-token'] }, held);
        return getInputManifest(db, lease['x-organization-id'], params.runId, null);
      },
    }),
    endpoint({
      method: 'get',
      path: '/internal/runs/{runId}/inputs/content',
      audience: 'worker',
      tag: 'Workers',
      operationId: 'getRunInput',
      summary: 'Download an input file of a run',
      description: 'Supports byte ranges and `If-None-Match`.',
      params: { runId },
      query: { path: filePath.describe('The exact `path` of an available file in the list.') },
      headers,
      response: {
        stream: true,
        mediaType: 'application/octet-stream',
        ranges: true,
        description: 'The bytes that the run was given.',
      },
      errors: [{ status: 400, code: 'validation_failed', when: 'the run was not given a file with this path' }],
      async handler({ db, services, params, query, headers: lease, req, res, signal }) {
        const organizationId = lease['x-organization-id'];
        const args = { organizationId, runId: params.runId };
        await call(db, 'run_lease_check', { ...args, leaseToken: lease['x-lease-token'] }, held);
        await getInputBytes(db, services.storage, organizationId, params.runId, query.path)
          .then((file) => sendBytes(req, res, { ...file, signal }))
          .catch(noSuchInput);
      },
    }),
  ];
}
