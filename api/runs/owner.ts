import { z } from 'zod';
import { filePath } from '../fields/file_path.ts';
import { organizationId, uuid } from '../fields/ids.ts';
import { sendBytes } from '../http/bytes.ts';
import { type Endpoint, endpoint } from '../http/endpoint.ts';
import { ids } from '../http/openapi/example_values.ts';
import { integerText } from '../http/query.ts';
import { contextManifestSchema, getArtifactBytes, getInputBytes, getInputManifest } from './files.ts';
import { getRun, listRuns, runListQuery } from './list.ts';
import { getRunLogs, runLogPageSchema, runLogsQuery } from './logs.ts';
import { runSchema } from './schema.ts';

const id = uuid.meta({ description: 'The run.', examples: [ids.run] });
const notFound = { status: 404, code: 'run_not_found', when: 'the run does not exist in this organization' } as const;
const noUsage = { inputTokens: 0, outputTokens: 0, toolCalls: 0, costMinorUnits: 0, costKnown: false };
const bytes = { stream: true, mediaType: 'application/octet-stream', ranges: true } as const;

/** Runs, for people. */
export function runEndpoints(): readonly Endpoint[] {
  return [
    endpoint({
      method: 'get',
      path: '/organizations/{organizationId}/runs',
      audience: 'owner',
      tag: 'Runs',
      operationId: 'listRuns',
      summary: 'List runs',
      description: 'Newest first. Only runs of tasks are listed, not those of chat turns.',
      params: { organizationId },
      query: runListQuery,
      response: { data: z.array(runSchema), list: true },
      example: { data: [{ status: 'running', logState: 'recording', output: null, usage: noUsage, finishedAt: null }] },
      handler: ({ db, params, query }) => listRuns(db, params.organizationId, query),
    }),
    endpoint({
      method: 'get',
      path: '/organizations/{organizationId}/runs/{id}',
      audience: 'owner',
      tag: 'Runs',
      operationId: 'getRun',
      summary: 'Get a run',
      description: 'With its result or error, and its usage.',
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
      description:
        'Only files that the run recorded as artifacts are served. Supports byte ranges and `If-None-Match`.',
      params: {
        organizationId,
        id,
        artifactIndex: integerText({
          minimum: 0,
          maximum: 100_000,
          description: 'Position in `output.result.artifacts`, from 0.',
        }),
      },
      response: { ...bytes, description: 'The bytes as they were stored. `X-Media-Type` is their media type.' },
      errors: [notFound, { status: 404, code: 'not_found', when: 'the run has no artifact at this position' }],
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
      summary: 'List the files that a run was given',
      description:
        'The files that were prepared before the run started. The list does not say which of them the agent opened.',
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
      description: 'Supports byte ranges and `If-None-Match`.',
      params: { organizationId, id },
      query: { path: filePath.describe('The exact `path` of an available file in the list.') },
      response: { ...bytes, description: 'The bytes that the run was given.' },
      errors: [notFound, { status: 404, code: 'not_found', when: 'the run was not given a file with this path' }],
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
      summary: 'Read the log of a run',
      description: 'Entries in ascending order. Without `before` and `after` the latest page.',
      params: { organizationId, id },
      query: runLogsQuery,
      response: { data: runLogPageSchema },
      errors: [notFound],
      handler: ({ db, params, query }) => getRunLogs(db, params.organizationId, params.id, query),
    }),
  ];
}
