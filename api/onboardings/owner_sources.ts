import { call } from '../../engine/db/call.ts';
import { contextKey } from '../../engine/storage/index.ts';
import { checkFoundType } from '../chat_attachments/schema.ts';
import { organizationId, uuid } from '../fields/ids.ts';
import { type ReceivedFile, storeAndRecord } from '../files/stored_file.ts';
import { type Endpoint, endpoint } from '../http/endpoint.ts';
import { common, missing, notPermitted } from './errors.ts';
import { deleteStored } from './files.ts';
import { onboardingExample, onboardingSchema, removalAnswer, sourcePutAnswer } from './schema.ts';
import { judgedName, SOURCE_MAX_BYTES, sourceQuery, sourceType } from './source.ts';

const params = {
  organizationId,
  sourceId: uuid.describe('Chosen by the client; unique in the organization.'),
};
const path = '/organizations/{organizationId}/onboarding/sources/{sourceId}';
const sourced = {
  ...onboardingExample,
  generation: 2,
  sources: [
    {
      id: '0199f2f8-2f1a-7c3e-8a55-6d1f0c9b7e21',
      kind: 'markdown',
      status: 'ingested',
      fileName: 'handbook.md',
      mediaType: 'text/markdown',
      sizeBytes: 1_842,
      sha256: '2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae',
      department: null,
      createdAt: '2026-01-31T09:31:00.000Z',
    },
  ],
};

/** The evidence that a client hands in (contract 4.1). */
export function onboardingSourceEndpoints(): readonly Endpoint[] {
  return [
    endpoint({
      ...common,
      method: 'put',
      path,
      operationId: 'putOnboardingSource',
      summary: 'Upload a source',
      description:
        'Streamed; size and digest are what the backend finds. `file` takes .md, .markdown, .txt, .csv, .json, .yaml, .yml, .toml, .pdf, .png, .jpg, .jpeg, .webp and .gif, `markdown` any UTF-8 text. Types that are not taken are 415; a name, type and content that disagree are 400. Sources are immutable: the same id with the same bytes again changes nothing, with others it is 409. In review it leads back to `collecting`. At most 100 sources.',
      params,
      query: sourceQuery,
      body: {
        stream: true,
        mediaTypes: ['application/octet-stream'],
        maxBytes: SOURCE_MAX_BYTES,
        tooLargeCode: 'request_failed',
      },
      response: { status: 201, data: onboardingSchema, description: 'Stored.' },
      errors: [
        missing,
        {
          status: 409,
          code: 'request_failed',
          when: 'the state does not permit it, another source has the id, or there are 100 sources',
        },
        { status: 415, code: 'request_failed', when: 'sources are not of this type' },
      ],
      example: { data: sourced },
      async handler({ db, services, params: { organizationId, sourceId }, query, openBody, signal }) {
        const mediaType = sourceType(query);
        const described = { id: sourceId, kind: query.kind, fileName: query.fileName, mediaType };
        const put = (file?: ReceivedFile) => {
          const stored = file && { sizeBytes: file.size, sha256: file.sha256, storageKey: file.key };
          const source = { ...described, department: query.department ?? null, ...stored };
          return call(db, 'onboarding_source_put', { organizationId, source }, sourcePutAnswer);
        };
        // Nobody's bytes are taken for an onboarding that takes none.
        await put();
        const key = contextKey(organizationId, 'sources');
        const limit = { maxBytes: SOURCE_MAX_BYTES, tooLargeCode: 'request_failed' };
        const upload = { key, path: judgedName(query), source: openBody(), signal, ...limit };
        const { onboarding, stored } = await storeAndRecord(services.storage, upload, (file) => {
          checkFoundType(file.mediaType, mediaType);
          return put(file);
        });
        if (!stored) await services.storage.delete(key);
        return onboarding;
      },
    }),
    endpoint({
      ...common,
      method: 'delete',
      path,
      operationId: 'deleteOnboardingSource',
      summary: 'Take a source back',
      description:
        'Its bytes go too, and findings that cite it. In review it leads back to `collecting`. A repeat is 404.',
      params,
      response: { data: onboardingSchema },
      errors: [{ ...missing, when: 'there is no such onboarding, or it has no such source' }, notPermitted],
      example: { data: { ...onboardingExample, generation: 3 } },
      async handler({ db, services, log, params: { organizationId, sourceId } }) {
        const args = { organizationId, sourceId };
        const { onboarding, removedKeys } = await call(db, 'onboarding_source_delete', args, removalAnswer);
        await deleteStored(services.storage, removedKeys, log);
        return onboarding;
      },
    }),
  ];
}
