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
  description: 'The bytes as they were retained; Content-Type says what they are.',
} as const;
const broken = {
  status: 409,
  code: 'state_conflict',
  when: 'the stored bytes are not those that were retained',
} as const;

/** Contract 4.5. */
export function contextEndpoints(): readonly Endpoint[] {
  return [
    endpoint({
      method: 'get',
      path: `${BASE}/summary`,
      audience: 'owner',
      tag: 'Context',
      operationId: 'getContextSummary',
      summary: 'Read what is published in a scope',
      description:
        'The documents of the published revision with their entries. Every file is compared with its digest; one that cannot be read has an `issue`, no entries, and hides no other.',
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
      summary: 'List the published files',
      description: 'Of all scopes: the organization first, then the departments, by path.',
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
      summary: 'Download a published file',
      description:
        'Byte ranges, entity tags and HEAD work. The bytes are compared with their digest before any is sent.',
      params: { organizationId },
      query: {
        path: documentPath.describe('The exact path of a file in the list: relative, without `..`.'),
        scope: contextScope
          .optional()
          .describe("Without one: the organization's file with this path, else a department's."),
      },
      response: bytes,
      errors: [{ status: 404, code: 'not_found', when: 'no published document has this path' }, broken],
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
      summary: 'List retained sources, newest first',
      description: 'Uploads of the onboarding, pages that research read, and what was kept from chats and tasks.',
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
        'Byte ranges, entity tags and HEAD work. The bytes are compared with their digest: changed ones are 409 or, where a large file is on its way already, a connection that is cut.',
      params: { organizationId, sourceId: uuid.describe('The source.') },
      response: bytes,
      errors: [
        { status: 404, code: 'not_found', when: 'there is no such source, or its bytes are no longer stored' },
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
      summary: 'Read how the context stands',
      description:
        'The latest report, or an immutable older one by `revision`, always as version 3. Reports are written daily and after every promotion.',
      params: { organizationId },
      query: {
        revision: integerText({ minimum: 1, maximum: 2_147_483_647, description: 'A health revision.' }).optional(),
      },
      response: { data: contextHealthSchema },
      errors: [
        { status: 404, code: 'not_found', when: 'there is no such health revision' },
        { status: 409, code: 'state_conflict', when: 'the stored report is gone or was changed' },
      ],
      handler: ({ db, services, params, query }) =>
        getContextHealth(db, services.storage, params.organizationId, query.revision),
    }),
  ];
}
