import { z } from 'zod';
import { organizationId, uuid } from '../fields/ids.ts';
import { sendBytes } from '../http/bytes.ts';
import { type Endpoint, endpoint } from '../http/endpoint.ts';
import { integerText } from '../http/query.ts';
import { filePath } from '../tasks/spec.ts';
import { contextManifestSchema, getArtifactBytes, getInputBytes, getInputManifest } from './files.ts';
import { getRun, listRuns, runListQuery } from './list.ts';
import { getRunLogs, runLogPageSchema, runLogsQuery } from './logs.ts';
import { runSchema } from './schema.ts';

const id = uuid.describe('The run.');
const notFound = { status: 404, code: 'run_not_found', when: 'the organization has no such run' } as const;
const bytes = { stream: true, mediaType: 'application/octet-stream', ranges: true } as const;

/** Contract 4.7. */
export function runEndpoints(): readonly Endpoint[] {
  return [
    endpoint({
      method: 'get',
      path: '/organizations/{organizationId}/runs',
      audience: 'owner',
      tag: 'Runs',
      operationId: 'listRuns',
      summary: 'List runs, newest first',
      params: { organizationId },
      query: runListQuery,
      response: { data: z.array(runSchema), list: true },
      handler: ({ db, params, query }) => listRuns(db, params.organizationId, query),
    }),
    endpoint({
      method: 'get',
      path: '/organizations/{organizationId}/runs/{id}',
      audience: 'owner',
      tag: 'Runs',
      operationId: 'getRun',
      summary: 'Get a run',
      params: { organizationId, id },
      response: { data: runSchema },
      errors: [notFound],
      handler: ({ db, params }) => getRun(db, params.organizationId, params.id),
    }),
    endpoint({
      method: 'get',
      path: '/organizations/{organizationId}/runs/{id}/artifacts/{artifactIndex}/content',
      audience: 'owner',
      tag: 'Runs',
      operationId: 'getRunArtifact',
      summary: 'Download an artifact',
      description: 'By its place in `output.result.artifacts`. Byte ranges, entity tags and HEAD work.',
      params: {
        organizationId,
        id,
        artifactIndex: integerText({ minimum: 0, maximum: 100_000, description: 'Counted from zero.' }),
      },
      response: { ...bytes, description: 'The bytes as they were stored; Content-Type says what they are.' },
      errors: [notFound, { status: 404, code: 'not_found', when: 'the run recorded no artifact at this place' }],
      async handler({ db, services, params, req, res, signal }) {
        const { organizationId: organization, id: run, artifactIndex } = params;
        const file = await getArtifactBytes(db, services.storage, organization, run, artifactIndex);
        await sendBytes(req, res, { ...file, signal });
      },
    }),
    endpoint({
      method: 'get',
      path: '/organizations/{organizationId}/runs/{id}/context',
      audience: 'owner',
      tag: 'Runs',
      operationId: 'getRunContext',
      summary: 'Get what a run was given',
      description: 'The files that were hydrated before the run started; not which of them the agent opened.',
      params: { organizationId, id },
      response: { data: contextManifestSchema },
      errors: [notFound],
      async handler({ db, params }) {
        const manifest = await getInputManifest(db, params.organizationId, params.id);
        return { version: manifest.version, files: manifest.files.map(({ sha256: _, ...file }) => file) };
      },
    }),
    endpoint({
      method: 'get',
      path: '/organizations/{organizationId}/runs/{id}/context/files/content',
      audience: 'owner',
      tag: 'Runs',
      operationId: 'getRunContextFile',
      summary: 'Download a file that a run was given',
      params: { organizationId, id },
      query: { path: filePath.describe('An available path of the context manifest, exactly.') },
      response: { ...bytes, description: 'The bytes that the run was given.' },
      errors: [notFound, { status: 404, code: 'not_found', when: 'the run was not given such a file' }],
      async handler({ db, services, params, query, req, res, signal }) {
        const file = await getInputBytes(db, services.storage, params.organizationId, params.id, query.path);
        await sendBytes(req, res, { ...file, signal });
      },
    }),
    endpoint({
      method: 'get',
      path: '/organizations/{organizationId}/runs/{id}/logs',
      audience: 'owner',
      tag: 'Runs',
      operationId: 'getRunLogs',
      summary: "Read a run's log",
      description: 'Ascending. Without before and after: the latest page.',
      params: { organizationId, id },
      query: runLogsQuery,
      response: { data: runLogPageSchema },
      errors: [notFound],
      handler: ({ db, params, query }) => getRunLogs(db, params.organizationId, params.id, query),
    }),
  ];
}
