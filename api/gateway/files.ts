import { call } from '../../engine/db/call.ts';
import { beginUpload, completeUpload, findFiles, storedFileSchema } from '../../engine/gateway/index.ts';
import { signatureProblem } from '../../engine/media_types.ts';
import { invocationKey } from '../../engine/storage/index.ts';
import { uuid } from '../fields/ids.ts';
import { type ReceivedFile, storeAndRecord } from '../files/stored_file.ts';
import { baseUrl } from '../http/base_url.ts';
import { sendBytes } from '../http/bytes.ts';
import type { GatewayCaller } from '../http/caller.ts';
import { type Endpoint, endpoint } from '../http/endpoint.ts';
import { invalid } from '../http/errors.ts';
import { fileBody, fileQuery } from './changes.ts';
import { INVOCATION, invocationParams } from './invocations.ts';
import { fileExample, fileSchema, uploadSchema } from './schema.ts';
import { UPLOADS } from './uploads.ts';

const PATH = `${INVOCATION}/files/{fileId}` as const;
const params = { ...invocationParams, fileId: uuid.describe('Of an upload, chosen by the caller.') };
const shared = { audience: 'gateway', tag: 'Gateway', params } as const;
/** Beyond it an upload has a URL of its own. */
const PUT_MAX_BYTES = 33_554_432;

const unknown = { status: 404, code: 'not_found', when: 'the invocation has no such file' } as const;
const differs = {
  status: 409,
  code: 'state_conflict',
  when: 'another file has this id, or the execution has 1,000 files',
} as const;
const declaredExample = {
  name: 'offer.pdf',
  contentType: 'application/pdf',
  sizeBytes: 48_213,
  sha256: fileExample.sha256,
};

/** A file of an invocation, by whoever has the capability. */
function fileCall<P>(caller: GatewayCaller, place: P) {
  return { organizationId: caller.organizationId, tokenHash: caller.tokenHash, ...place };
}

/** Files of invocations: what a write sends, and what a read brought. */
export function invocationFileEndpoints(): readonly Endpoint[] {
  return [
    endpoint({
      ...shared,
      method: 'get',
      path: PATH,
      operationId: 'getInvocationFile',
      summary: 'Download a file of an invocation',
      description: 'One that was stored, or that a read brought. Supports byte ranges and `If-None-Match`.',
      response: {
        stream: true,
        mediaType: 'application/octet-stream',
        ranges: true,
        description: 'The bytes. `X-Media-Type` is their media type.',
      },
      errors: [unknown],
      async handler({ services, params: { fileId, ...place }, caller, req, res, signal }) {
        const [file] = await findFiles(services, fileCall(caller, place), [fileId]);
        if (!file) throw new TypeError('a file that was asked for is found or refused');
        const { storageKey: key, sizeBytes: size, sha256, contentType: mediaType, name: fileName } = file;
        const { storage } = services;
        await sendBytes(req, res, { storage, key, size, sha256, mediaType, fileName, signal });
      },
    }),
    endpoint({
      ...shared,
      method: 'put',
      path: PATH,
      operationId: 'putInvocationFile',
      costly: true,
      summary: 'Store a file of an invocation',
      description:
        'At most 32 MiB; larger ones begin an upload. A call of a tool by this invocation names it in `files`. The same again responds with the same.',
      query: fileQuery,
      body: { stream: true, mediaTypes: ['application/octet-stream'], maxBytes: PUT_MAX_BYTES },
      response: { status: 201, data: fileSchema },
      errors: [differs],
      example: { data: fileExample },
      async handler({ db, services, params: place, query, caller, openBody, signal }) {
        const { name, contentType } = query;
        const at = { ...fileCall(caller, place), begun: false };
        const store = (file: ReceivedFile | null) => {
          const stored = file && {
            name,
            contentType: contentType ?? file.mediaType,
            sizeBytes: file.size,
            sha256: file.sha256,
          };
          return call(
            db,
            'action_file_store',
            { ...at, file: stored, storageKey: file?.key ?? null },
            storedFileSchema,
          );
        };
        // Nobody's bytes are taken for a capability that is over.
        await store(null);
        const key = invocationKey(caller.organizationId, 'files');
        // A type that is declared is compared with the signature alone; else the name says which text it is.
        const path = contentType === undefined ? name : '';
        const upload = { key, path, source: openBody(), signal, maxBytes: PUT_MAX_BYTES };
        const { file, stored, uploadKey } = await storeAndRecord(services.storage, upload, (received) => {
          if (received.size === 0) throw invalid('body', 'must not be empty', 'too_small');
          const problem = contentType === undefined ? null : signatureProblem(contentType, received.mediaType);
          if (problem !== null) throw invalid('contentType', problem, 'content_differs');
          return store(received);
        });
        if (!stored) await services.storage.delete(key);
        if (uploadKey !== null) await services.storage.delete(uploadKey);
        if (file === null) throw new TypeError('a stored file has a record');
        return file;
      },
    }),
    endpoint({
      ...shared,
      method: 'post',
      path: `${PATH}/begin`,
      operationId: 'beginInvocationFile',
      summary: 'Begin the upload of a file',
      description:
        'Responds with a URL that takes the bytes for 15 minutes, by PUT with these headers; then complete it. The same again, also later, responds with another URL for the same file.',
      body: fileBody,
      response: { data: uploadSchema },
      errors: [
        {
          ...differs,
          when: `${differs.when}, or files lie on a disk and \`ENCRYPTION_KEYS\`, which sign the URL, are not set`,
        },
      ],
      example: {
        body: declaredExample,
        data: {
          uploadUrl: 'https://runner.example/internal/uploads/eyJhbGciOi…',
          method: 'PUT',
          headers: { 'Content-Type': 'application/pdf', 'Content-Length': '48213' },
        },
      },
      async handler({ services, params: place, body, caller, req }) {
        const base = baseUrl(services.config, req);
        const urlOf = (ticket: string) => `${base}${UPLOADS}/${ticket}`;
        const { url, headers, expiresAt } = await beginUpload(services, fileCall(caller, place), body, urlOf);
        return { uploadUrl: url, method: 'PUT', headers, expiresAt } as const;
      },
    }),
    endpoint({
      ...shared,
      method: 'post',
      path: `${PATH}/complete`,
      operationId: 'completeInvocationFile',
      costly: true,
      external: true,
      summary: 'Complete the upload of a file',
      description:
        'Compares the bytes with what was declared, and stores them where the URL changes nothing. Bytes that differ are removed. The same again responds with the same.',
      body: fileBody,
      response: { data: fileSchema },
      errors: [
        {
          status: 400,
          code: 'validation_failed',
          when: 'size, digest or type of the bytes differ; `issues` names which',
        },
        unknown,
        { status: 409, code: 'state_conflict', when: 'nothing was uploaded yet, or another file was declared' },
      ],
      example: { body: declaredExample, data: fileExample },
      async handler({ services, params: place, body, caller, signal, searchTokens }) {
        return completeUpload(services, fileCall(caller, place), body, { search: searchTokens(), signal });
      },
    }),
  ];
}
