import { z } from 'zod';
import { readTicket } from '../../engine/gateway/index.ts';
import { StorageTooLargeError } from '../../engine/storage/index.ts';
import { UPLOAD_MAX_BYTES } from '../files/stored_file.ts';
import { declaredLength } from '../http/body.ts';
import { type Endpoint, endpoint } from '../http/endpoint.ts';
import { invalid } from '../http/errors.ts';
import { forbiddenUpload } from './schema.ts';

export const UPLOADS = '/internal/uploads';

/** Where an upload goes whose storage has no address of its own. The URL is all that it takes; what it holds is looked at when it is completed. */
export function uploadEndpoints(): readonly Endpoint[] {
  return [
    endpoint({
      method: 'put',
      path: `${UPLOADS}/{ticket}`,
      audience: 'public',
      tag: 'Gateway',
      operationId: 'putUpload',
      summary: 'Take the bytes of an upload that was begun',
      params: { ticket: z.string() },
      secretPath: true,
      body: { stream: true, mediaTypes: ['*/*'], maxBytes: UPLOAD_MAX_BYTES },
      response: { data: z.object({ sizeBytes: z.int(), sha256: z.string() }) },
      errors: [{ status: 403, code: 'forbidden', when: 'the URL is none of ours, or its time is over' }],
      async handler({ services, params, req, openBody, signal }) {
        const ticket = await readTicket(services.config.integrations.encryptionKeys, params.ticket);
        if (!ticket) throw forbiddenUpload();
        const { key, size, contentType, sha256 } = ticket;
        const wrongSize = () => invalid('body', `must have the ${size} bytes that are declared`, 'size_differs');
        if (req.get('content-type')?.trim().toLowerCase() !== contentType) {
          throw invalid('Content-Type', `must be ${contentType}, as declared`, 'type_differs');
        }
        if ((declaredLength(req) ?? size) !== size) throw wrongSize();
        const stored = await services.storage
          .put(key, openBody(), { maxBytes: size, signal })
          .catch((error: unknown) => {
            throw error instanceof StorageTooLargeError ? wrongSize() : error;
          });
        if (stored.size === size && stored.sha256 === sha256) return { sizeBytes: stored.size, sha256 };
        await services.storage.delete(key);
        throw stored.size === size
          ? invalid('body', 'has another digest than is declared', 'digest_differs')
          : wrongSize();
      },
    }),
  ];
}
