import { call } from '../../engine/db/call.ts';
import { contextKey } from '../../engine/storage/index.ts';
import { BrokenTextError, utf16ToUtf8 } from '../../engine/text_encoding.ts';
import { checkFoundType, isTextType } from '../chat_attachments/schema.ts';
import { organizationId, uuid } from '../fields/ids.ts';
import { type ReceivedFile, storeAndRecord } from '../files/stored_file.ts';
import { type Endpoint, endpoint } from '../http/endpoint.ts';
import { invalid } from '../http/errors.ts';
import { common, missing, notPermitted } from './errors.ts';
import { deleteStored } from './files.ts';
import { onboardingExample, onboardingSchema, removalResult, sourcePutResult } from './schema.ts';
import { judgedName, SOURCE_MAX_BYTES, sourceQuery, sourceType } from './source.ts';

const params = {
  organizationId,
  sourceId: uuid.describe('Chosen by the client, unique in the organization.'),
};
const path = '/organizations/{organizationId}/onboarding/sources/{sourceId}';

/** The evidence that a client uploads. */
export function onboardingSourceEndpoints(): readonly Endpoint[] {
  return [
    endpoint({
      ...common,
      method: 'put',
      path,
      operationId: 'putOnboardingSource',
      costly: true,
      summary: 'Upload a source to an onboarding',
      description:
        'The kind `file` takes .md, .markdown, .txt, .csv, .json, .yaml, .yml, .toml, .pdf, .png, .jpg, .jpeg, .webp and .gif; `markdown` takes any UTF-8 text. UTF-16 text with a byte order mark is stored as UTF-8. The backend determines size and digest. A source is immutable: repeating the upload with the same bytes changes nothing, with other bytes it is 409. An onboarding has at most 100 sources. In `review` an upload returns the onboarding to `collecting`.',
      params,
      query: sourceQuery,
      body: {
        stream: true,
        mediaTypes: ['application/octet-stream'],
        maxBytes: SOURCE_MAX_BYTES,
        tooLargeCode: 'request_failed',
      },
      response: { status: 201, data: onboardingSchema },
      errors: [
        missing,
        {
          status: 409,
          code: 'request_failed',
          when: 'not possible in this status, another source has the id, or there are 100 sources',
        },
        { status: 415, code: 'request_failed', when: 'sources of this media type are not supported' },
      ],
      example: { data: onboardingExample },
      async handler({ db, services, params: { organizationId, sourceId }, query, openBody, signal }) {
        const mediaType = sourceType(query);
        const described = { id: sourceId, kind: query.kind, fileName: query.fileName, mediaType };
        const put = (file?: ReceivedFile) => {
          const stored = file && { sizeBytes: file.size, sha256: file.sha256, storageKey: file.key };
          const source = { ...described, department: query.department ?? null, ...stored };
          return call(db, 'onboarding_source_put', { organizationId, source }, sourcePutResult);
        };
        // Nobody's bytes are taken for an onboarding that takes none.
        await put();
        const key = contextKey(organizationId, 'sources');
        const limit = { maxBytes: SOURCE_MAX_BYTES, tooLargeCode: 'request_failed' };
        const source = isTextType(mediaType) ? utf16ToUtf8(openBody()) : openBody();
        const upload = { key, path: judgedName(query), source, signal, ...limit };
        const { onboarding, stored } = await storeAndRecord(services.storage, upload, (file) => {
          checkFoundType(file, mediaType);
          return put(file);
        }).catch((error: unknown) => {
          throw error instanceof BrokenTextError
            ? invalid('body', 'is not valid UTF-16 text', 'content_differs')
            : error;
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
      summary: 'Delete a source of an onboarding',
      description:
        'Deletes the stored bytes and the findings that cite the source as well. In `review` the onboarding returns to `collecting`. A repeated call is 404.',
      params,
      response: { data: onboardingSchema },
      errors: [
        { ...missing, when: 'the organization has no onboarding, or the onboarding has no source with this id' },
        notPermitted,
      ],
      example: { data: onboardingExample },
      async handler({ db, services, log, params: { organizationId, sourceId } }) {
        const args = { organizationId, sourceId };
        const { onboarding, removedKeys } = await call(db, 'onboarding_source_delete', args, removalResult);
        await deleteStored(services.storage, removedKeys, log);
        return onboarding;
      },
    }),
  ];
}
