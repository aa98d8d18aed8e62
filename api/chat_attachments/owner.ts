import { call } from '../../engine/db/call.ts';
import { Problem } from '../../engine/db/problem.ts';
import { chatAttachmentKey, type Storage } from '../../engine/storage/index.ts';
import { organizationId, uuid } from '../fields/ids.ts';
import { type ReceivedFile, storeAndRecord } from '../files/stored_file.ts';
import { actorOf } from '../http/actor.ts';
import { sendBytes } from '../http/bytes.ts';
import { type Endpoint, endpoint } from '../http/endpoint.ts';
import {
  ATTACHMENT_MAX_BYTES,
  attachmentNotFound,
  attachmentQuery,
  attachmentResult,
  chatAttachmentSchema,
  checkFoundType,
  expectedType,
  getAttachmentBytes,
} from './schema.ts';

const params = {
  organizationId,
  chatId: uuid.describe('The chat.'),
  attachmentId: uuid.describe('Chosen by the client, unique in the chat.'),
};

/** Attachments of chats, for people. */
export function chatAttachmentEndpoints(): readonly Endpoint[] {
  return [
    endpoint({
      method: 'put',
      path: '/organizations/{organizationId}/chats/{chatId}/attachments/{attachmentId}',
      audience: 'owner',
      tag: 'Chats',
      operationId: 'putChatAttachment',
      costly: true,
      summary: 'Upload an attachment',
      description:
        'The extension determines the media type: .md, .markdown, .txt, .csv, .json, .yaml, .yml, .toml, .pdf, .png, .jpg, .jpeg, .webp or .gif. The bytes have to match it: UTF-8 text, or the signature of the type; otherwise the call is 400. The backend determines size and digest. Repeating the upload with the same bytes returns the same record; with other bytes it is 409. A message refers to the attachment in `attachmentIds`.',
      params,
      query: attachmentQuery,
      body: {
        stream: true,
        mediaTypes: ['application/octet-stream'],
        maxBytes: ATTACHMENT_MAX_BYTES,
        tooLargeCode: 'attachment_invalid',
      },
      response: { status: 201, data: chatAttachmentSchema },
      errors: [
        { status: 404, code: 'chat_not_found', when: 'the chat does not exist in this organization' },
        {
          status: 409,
          code: 'attachment_not_allowed',
          when: 'the chat is archived or the onboarding chat, has 1,000 attachments, or has other bytes under this id',
        },
      ],
      async handler({ db, services, params: place, query, caller, openBody, signal }) {
        const type = expectedType(query);
        const put = (file: ReceivedFile | null) =>
          call(
            db,
            'chat_attachment_put',
            {
              organizationId: place.organizationId,
              chatId: place.chatId,
              attachmentId: place.attachmentId,
              fileName: query.fileName,
              mediaType: type,
              sizeBytes: file?.size,
              sha256: file?.sha256,
              storageKey: file?.key,
              actor: actorOf(caller),
            },
            attachmentResult,
          );
        // Nobody's bytes are taken for a chat that takes none.
        await put(null);
        const key = chatAttachmentKey(place.organizationId, place.chatId);
        const limit = { maxBytes: ATTACHMENT_MAX_BYTES, tooLargeCode: 'attachment_invalid' };
        const upload = { key, path: query.fileName, source: openBody(), signal, ...limit };
        const { attachment, stored, storageKey } = await storeAndRecord(services.storage, upload, (file) => {
          checkFoundType(file, type);
          return put(file);
        });
        if (attachment === null || storageKey === null) throw new Error('a stored attachment was not recorded');
        if (!stored) {
          await repair(services.storage, storageKey, attachment.sizeBytes, key, signal);
          await services.storage.delete(key);
        }
        return attachment;
      },
    }),
    endpoint({
      method: 'get',
      path: '/organizations/{organizationId}/chats/{chatId}/attachments/{attachmentId}/content',
      audience: 'owner',
      tag: 'Chats',
      operationId: 'getChatAttachment',
      summary: 'Download an attachment',
      description: 'Supports byte ranges and `If-None-Match`.',
      params,
      response: {
        stream: true,
        mediaType: 'application/octet-stream',
        ranges: true,
        description: 'The bytes as they were stored. `X-Media-Type` is their media type.',
      },
      errors: [{ status: 404, code: 'attachment_not_found', when: 'the chat has no attachment with this id' }],
      async handler({ db, services, params: place, req, res, signal }) {
        const file = await getAttachmentBytes(db, place.organizationId, place.chatId, place.attachmentId);
        await sendBytes(req, res, { ...file, storage: services.storage, signal }).catch(bytesMissing);
      },
    }),
  ];
}

/** Puts the bytes of `copy`, which are the same, where those of the record were lost: runs may name that place too. */
async function repair(storage: Storage, key: string, size: number, copy: string, signal: AbortSignal): Promise<void> {
  const there = await storage.stat(key);
  if (there?.size !== size) await storage.put(key, await storage.get(copy, { signal }), { signal });
}

function bytesMissing(error: unknown): never {
  throw error instanceof Problem && error.status === 404 ? attachmentNotFound() : error;
}
