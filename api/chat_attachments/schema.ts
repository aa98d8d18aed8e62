import path from 'node:path';
import { sql } from 'slonik';
import { z } from 'zod';
import type { Queries } from '../../engine/db/call.ts';
import { Problem } from '../../engine/db/problem.ts';
import { requireOrganization, scoped } from '../../engine/db/scope.ts';
import { mapping } from '../../engine/mapping.ts';
import { fileName } from '../fields/file_path.ts';
import { uuid } from '../fields/ids.ts';
import { dateTime, timestamp } from '../fields/timestamp.ts';
import type { ReceivedFile } from '../files/stored_file.ts';
import { invalid } from '../http/errors.ts';
import { ids } from '../http/openapi/example_values.ts';

/** 50 MB. */
export const ATTACHMENT_MAX_BYTES = 52_428_800;

export const chatAttachmentSchema = z
  .object({
    version: z.literal(1).describe('Version of this format.'),
    id: uuid.describe('Chosen by the client, unique in the chat.'),
    organizationId: uuid,
    chatId: uuid,
    fileName: z.string(),
    mediaType: z.string().describe('Determined from the file name and the bytes.'),
    sizeBytes: z.int(),
    sha256: z.string().describe('Of the bytes, in hex.'),
    createdAt: dateTime,
    uri: z.string(),
  })
  .meta({
    id: 'ChatAttachment',
    example: { id: ids.attachment, uri: `org://${ids.organization}/chats/${ids.chat}/attachments/${ids.attachment}` },
  });
export type ChatAttachment = z.output<typeof chatAttachmentSchema>;

/** A row of `app.chat_attachments`, as `to_jsonb` writes it. */
const attachmentRow = z
  .object({
    organization_id: z.string(),
    chat_id: z.string(),
    id: z.string(),
    file_name: z.string(),
    media_type: z.string(),
    size_bytes: z.int(),
    sha256: z.string(),
    created_at: timestamp,
  })
  .pipe(
    mapping(
      (row): ChatAttachment => ({
        version: 1,
        id: row.id,
        organizationId: row.organization_id,
        chatId: row.chat_id,
        fileName: row.file_name,
        mediaType: row.media_type,
        sizeBytes: row.size_bytes,
        sha256: row.sha256,
        createdAt: row.created_at,
        uri: `org://${row.organization_id}/chats/${row.chat_id}/attachments/${row.id}`,
      }),
    ),
  );

/** What `app.chat_attachment_put` returns. */
export const attachmentResult = z.object({
  attachment: attachmentRow.nullable(),
  stored: z.boolean(),
  storageKey: z.string().nullable(),
});

/** The allowed extensions (docs/interface.md 2.7) and the type of each. */
export const MEDIA_TYPE_OF: Readonly<Record<string, string>> = {
  '.md': 'text/markdown',
  '.markdown': 'text/markdown',
  '.txt': 'text/plain',
  '.csv': 'text/csv',
  '.json': 'application/json',
  '.yaml': 'application/yaml',
  '.yml': 'application/yaml',
  '.toml': 'application/toml',
  '.pdf': 'application/pdf',
  '.png': 'image/png',
  '.jpg': 'image/jpeg',
  '.jpeg': 'image/jpeg',
  '.webp': 'image/webp',
  '.gif': 'image/gif',
};
export const ATTACHMENT_EXTENSIONS = Object.keys(MEDIA_TYPE_OF);

/** Other names that browsers and systems have for the same types. */
const SAME: Readonly<Record<string, string>> = {
  'text/x-markdown': 'text/markdown',
  'application/csv': 'text/csv',
  'text/json': 'application/json',
  'text/yaml': 'application/yaml',
  'text/x-yaml': 'application/yaml',
  'application/x-yaml': 'application/yaml',
  'text/toml': 'application/toml',
  'text/x-toml': 'application/toml',
  'application/x-toml': 'application/toml',
  'application/x-pdf': 'application/pdf',
  'image/jpg': 'image/jpeg',
  'image/pjpeg': 'image/jpeg',
  // An animated PNG has the signature of a PNG, and is one to all who do not know better.
  'image/apng': 'image/png',
};

const MEDIA_TYPE =
  /^([a-z0-9][a-z0-9!#$&^_.+-]{0,126}\/[a-z0-9][a-z0-9!#$&^_.+-]{0,126})[ \t]*(?:;[ \t]*charset[ \t]*=[ \t]*"?utf-?8"?[ \t]*)?$/;

const canonical = (mediaType: string) => SAME[mediaType] ?? mediaType;

/** The type that a client names, by its usual name and without a charset of UTF-8; undefined for what is none. */
export function canonicalType(mediaType: string): string | undefined {
  const given = MEDIA_TYPE.exec(mediaType.trim().toLowerCase())?.[1];
  return given === undefined ? undefined : canonical(given);
}

/** The same of a file with this name: Windows browsers with Office call a CSV file one of Excel. */
export function namedType({
  fileName,
  mediaType,
}: Readonly<{ fileName: string; mediaType: string }>): string | undefined {
  const given = canonicalType(mediaType);
  const isCsv = given === 'application/vnd.ms-excel' && path.extname(fileName).toLowerCase() === '.csv';
  return isCsv ? 'text/csv' : given;
}

/** The query of an upload. */
export const attachmentQuery = {
  fileName: fileName
    .refine(
      (text) => path.extname(text).toLowerCase() in MEDIA_TYPE_OF,
      `must end with ${ATTACHMENT_EXTENSIONS.join(', ')}`,
    )
    .describe('A name without slashes, with one of the allowed extensions. At most 255 characters.'),
  mediaType: z
    .string()
    .min(1)
    .max(300)
    .describe('The media type of the file. 400 if it does not match the file name and the bytes.'),
};

/** The type that the name stands for. @throws Problem 400 when the caller's type is another one */
export function expectedType(file: Readonly<{ fileName: string; mediaType: string }>): string {
  const type = MEDIA_TYPE_OF[path.extname(file.fileName).toLowerCase()] ?? '';
  if (namedType(file) !== type) {
    throw invalid('mediaType', `does not agree with the file name, which stands for ${type}`, 'media_type_differs');
  }
  return type;
}

/** Whether files of this type, one of the allowed ones, are text. */
export const isTextType = (mediaType: string) => mediaType.startsWith('text/') || /json|yaml|toml/.test(mediaType);

/** @throws Problem 400 when the bytes are not what the name says: another signature, or text that is not UTF-8 */
export function checkFoundType(found: Pick<ReceivedFile, 'mediaType' | 'textProblem'>, expected: string): void {
  if (canonical(found.mediaType) === expected) return;
  const problem = isTextType(expected) ? (found.textProblem ?? 'is not UTF-8 text') : null;
  throw invalid('body', problem ?? `does not have the signature of ${expected}`, 'content_differs');
}

export const attachmentBytesRow = z
  .object({
    file_name: z.string(),
    media_type: z.string(),
    size_bytes: z.int(),
    sha256: z.string(),
    storage_key: z.string(),
  })
  .pipe(
    mapping((row) => ({
      key: row.storage_key,
      size: row.size_bytes,
      sha256: row.sha256,
      mediaType: row.media_type,
      fileName: row.file_name,
    })),
  );

export const attachmentNotFound = () =>
  new Problem(404, 'attachment_not_found', 'There is no attachment with this id in this chat.');

/**
 * Where the bytes of an attachment lie, and how they are called.
 * @throws Problem 404 `organization_not_found` or `attachment_not_found`
 */
export async function getAttachmentBytes(db: Queries, organizationId: string, chatId: string, id: string) {
  const found = await db.maybeOne(
    scoped(
      organizationId,
      attachmentBytesRow,
      sql.fragment`
        select a.file_name, a.media_type, a.size_bytes, a.sha256, a.storage_key
        from app.chats c
        join app.chat_attachments a on a.organization_id = c.organization_id and a.chat_id = c.id
        where c.organization_id = scope.organization_id and c.id = ${chatId}::uuid and a.id = ${id}::uuid`,
    ),
  );
  if (found) return found;
  await requireOrganization(db, organizationId);
  throw attachmentNotFound();
}
