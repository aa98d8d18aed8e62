import { z } from 'zod';
import { CALL_MS } from '../../engine/gateway/index.ts';
import { MEDIA_TYPE } from '../../engine/media_types.ts';
import { fileName } from '../fields/file_path.ts';
import { uuid } from '../fields/ids.ts';

/** Body of a call of a tool. */
export const executionBody = z
  .strictObject({
    tool: z.string().min(1).max(128),
    arguments: z.record(z.string(), z.unknown()),
    files: z
      .record(z.string().min(1).max(200), uuid)
      .optional()
      .describe('Ids of stored files of this invocation, by argument of the tool.'),
    cursor: z.string().min(1).max(4_000).optional().describe('`nextCursor` of the page before.'),
    timeoutMs: z.int().min(1).max(CALL_MS).default(CALL_MS).describe('How long the provider may take.'),
    repeat: z.boolean().default(false).describe('Although an equal action is open or was done.'),
    retryOf: z.uuid().optional().describe('The action that this is another attempt at.'),
  })
  .meta({ id: 'ToolCall' });

const contentType = z
  .string()
  .toLowerCase()
  .regex(MEDIA_TYPE, 'must be a media type without parameters, such as application/pdf');

/** Query of a file that is sent at once. */
export const fileQuery = {
  name: fileName.default('file').describe('The name under which the provider gets it.'),
  contentType: contentType
    .optional()
    .describe('Default: as found by the bytes. 400 where they have another signature.'),
};

/** What an upload is declared to be. */
export const fileBody = z
  .strictObject({
    name: fileName,
    contentType,
    sizeBytes: z.int().min(1).max(1_073_741_824),
    sha256: z.string().regex(/^[a-f0-9]{64}$/, 'must be a SHA-256 in lower-case hex'),
  })
  .meta({ id: 'InvocationFileDeclaration' });
