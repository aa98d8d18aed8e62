import { z } from 'zod';
import { actionSchema } from '../actions/schema.ts';
import { storedUuid } from '../fields/ids.ts';

const fileSchema = z.object({
  fileId: storedUuid,
  name: z.string(),
  contentType: z.string(),
  sizeBytes: z.int(),
  sha256: z.string(),
});

export const executionSchema = z
  .discriminatedUnion('kind', [
    z.object({
      kind: z.literal('result'),
      data: z.json().describe('What the provider responds with.'),
      nextCursor: z.string().nullable().describe('`cursor` of the next page; null: there is none.'),
      files: z.array(fileSchema).describe('What the tool has read, under the path of the invocation.'),
    }),
    z.object({ kind: z.literal('action'), action: actionSchema }),
  ])
  .meta({ id: 'ToolExecution' });
