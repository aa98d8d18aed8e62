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
      data: z.json(),
      nextCursor: z.string().nullable().describe('`cursor` of the next page.'),
      files: z.array(fileSchema),
    }),
    z.object({ kind: z.literal('action'), action: actionSchema }),
  ])
  .meta({
    id: 'ToolExecution',
    examples: [{ kind: 'result', data: { orders: [{ id: '5512' }] }, nextCursor: null, files: [] }],
  });
