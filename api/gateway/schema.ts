import { z } from 'zod';
import { Problem } from '../../engine/db/problem.ts';
import { actionSchema } from '../actions/schema.ts';
import { storedUuid } from '../fields/ids.ts';
import { dateTime } from '../fields/timestamp.ts';
import { ids } from '../http/openapi/example_values.ts';

export const fileExample = {
  fileId: ids.attachment,
  name: 'offer.pdf',
  contentType: 'application/pdf',
  sizeBytes: 48_213,
  sha256: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
};

export const fileSchema = z
  .object({
    fileId: storedUuid,
    name: z.string(),
    contentType: z.string(),
    sizeBytes: z.int(),
    sha256: z.string().describe('Of the bytes, in hex.'),
  })
  .meta({ id: 'InvocationFile' });

export const uploadSchema = z
  .object({
    uploadUrl: z.string(),
    method: z.literal('PUT'),
    headers: z.record(z.string(), z.string()).describe('To be sent with the bytes.'),
    expiresAt: dateTime,
  })
  .meta({ id: 'InvocationUpload' });

export const forbiddenUpload = () =>
  new Problem(403, 'forbidden', 'This URL takes no upload, or no longer: begin the upload again for another one.');

export const executionSchema = z
  .discriminatedUnion('kind', [
    z.object({
      kind: z.literal('result'),
      data: z.unknown(),
      nextCursor: z.string().nullable().describe('`cursor` of the next page.'),
      files: z.array(fileSchema),
    }),
    z.object({ kind: z.literal('action'), action: actionSchema }),
  ])
  .meta({
    id: 'ToolExecution',
    examples: [{ kind: 'result', data: { orders: [{ id: '5512' }] }, nextCursor: null, files: [] }],
  });
