import { z } from 'zod';

const MAX_TIMEOUT_MS = 60_000;

/** Body of a call of a tool. */
export const executionBody = z
  .strictObject({
    tool: z.string().min(1).max(128),
    arguments: z.record(z.string(), z.json()),
    cursor: z.string().min(1).max(4_000).optional().describe('`nextCursor` of the page before.'),
    timeoutMs: z.int().min(1).max(MAX_TIMEOUT_MS).default(MAX_TIMEOUT_MS).describe('How long the provider may take.'),
    repeat: z.boolean().default(false).describe('Although an equal action is open or was done.'),
    retryOf: z.uuid().optional().describe('The action that this is another attempt at.'),
  })
  .meta({ id: 'ToolCall' });
