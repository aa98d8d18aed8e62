import { organizationId, uuid } from '../fields/ids.ts';
import { sendBytes } from '../http/bytes.ts';
import { type Endpoint, endpoint } from '../http/endpoint.ts';
import { integerText } from '../http/query.ts';
import { contextScope, documentPath } from './documents.ts';
import {
  contextFilesSchema,
  contextSummarySchema,
  getContextFileBytes,
  getContextSummary,
  listContextFiles,
} from './files.ts';
import { contextHealthSchema, getContextHealth } from './health.ts';
import { retainSourceEndpoint } from './retention.ts';
import { contextSourceListQuery, contextSourcesSchema, getContextSourceBytes, listContextSources } from './sources.ts';

const BASE = '/organizations/{organizationId}/context';
const bytes = {
  stream: true,
  mediaType: 'application/octet-stream',
  ranges: true,
  description: 'The bytes as they were stored. `X-Media-Type` is their media type.',
} as const;
const broken = {
  status: 409,
  code: 'state_conflict',
  when: 'the stored bytes are damaged',
} as const;

/** The context, for people. */
export function contextEndpoints(): readonly Endpoint[] {
  return [
    endpoint({
      method: 'get',
      path: `${BASE}/summary`,
      audience: 'owner',
      tag: 'Context',
      operationId: 'getContextSummary',
      summary: 'Read the published context of a scope',
      description:
        'The documents of the published revision with their entries. Every file is verified against its digest. A document that cannot be read has an `issue` and no entries; the others are still returned.',
      params: { organizationId },
      query: { scope: contextScope.default('organization') },
      response: { data: contextSummarySchema },
      handler: ({ db, services, params, query, signal }) =>
        getContextSummary(db, services.storage, params.organizationId, query.scope, signal),
    }),
    endpoint({
      method: 'get',
      path: `${BASE}/files`,
      audience: 'owner',
      tag: 'Context',
      operationId: 'listContextFiles',
      summary: 'List published context files',
      description: 'The files of all scopes: the organization first, then the departments, sorted by path.',
      params: { organizationId },
      response: { data: contextFilesSchema },
      handler: ({ db, services, params }) => listContextFiles(db, services.storage, params.organizationId),
    }),
    endpoint({
      method: 'get',
      path: `${BASE}/files/content`,
      audience: 'owner',
      tag: 'Context',
      operationId: 'getContextFile',
      summary: 'Download a published context file',
      description:
        'The bytes are verified against their digest before they are sent. Supports byte ranges and `If-None-Match`.',
      params: { organizationId },
      query: {
        path: documentPath.describe('The exact `path` of a file in the list.'),
        scope: contextScope
          .optional()
          .describe("Default: the organization's file with this path, else one of a department."),
      },
      response: bytes,
      errors: [{ status: 404, code: 'not_found', when: 'no published file has this path' }, broken],
      async handler({ db, services, params, query, req, res, signal }) {
        const file = await getContextFileBytes(db, params.organizationId, query.path, query.scope);
        await sendBytes(req, res, { ...file, storage: services.storage, signal });
      },
    }),
    endpoint({
      method: 'get',
      path: `${BASE}/sources`,
      audience: 'owner',
      tag: 'Context',
      operationId: 'listContextSources',
      summary: 'List retained sources',
      description:
        'Uploads of the onboarding, pages that research read, and files retained from chats and tasks; newest first.',
      params: { organizationId },
      query: contextSourceListQuery,
      response: { data: contextSourcesSchema, list: true },
      handler: ({ db, services, params, query }) =>
        listContextSources(db, services.storage, params.organizationId, query),
    }),
    retainSourceEndpoint('owner', `${BASE}/sources`),
    endpoint({
      method: 'get',
      path: `${BASE}/sources/{sourceId}/content`,
      audience: 'owner',
      tag: 'Context',
      operationId: 'getContextSource',
      summary: 'Download a retained source',
      description:
        'The bytes are verified against their digest: damaged ones are 409 or, if a large file is already being sent, end the connection. Supports byte ranges and `If-None-Match`.',
      params: { organizationId, sourceId: uuid.describe('The source.') },
      response: bytes,
      errors: [
        { status: 404, code: 'not_found', when: 'the source does not exist, or its bytes are no longer stored' },
        broken,
      ],
      async handler({ db, services, params, req, res, signal }) {
        const file = await getContextSourceBytes(db, params.organizationId, params.sourceId);
        await sendBytes(req, res, { ...file, storage: services.storage, signal });
      },
    }),
    endpoint({
      method: 'get',
      path: `${BASE}/health`,
      audience: 'owner',
      tag: 'Context',
      operationId: 'getContextHealth',
      summary: 'Get the health of the context',
      description:
        'The latest report, or an older one by `revision`. Reports are written daily and whenever a context revision is published; they never change.',
      params: { organizationId },
      query: {
        revision: integerText({ minimum: 1, maximum: 2_147_483_647, description: 'A health revision.' }).optional(),
      },
      response: { data: contextHealthSchema },
      errors: [
        { status: 404, code: 'not_found', when: 'the health revision does not exist' },
        { status: 409, code: 'state_conflict', when: 'the stored report is missing or damaged' },
      ],
      handler: ({ db, services, params, query }) =>
        getContextHealth(db, services.storage, params.organizationId, query.revision),
    }),
  ];
}
