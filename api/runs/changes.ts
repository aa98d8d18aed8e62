import { createHash } from 'node:crypto';
import canonicalize from 'canonicalize';
import { z } from 'zod';
import { uuid } from '../fields/ids.ts';
import { instant } from '../fields/instant.ts';
import { logicalUri } from '../fields/logical_uri.ts';
import { TEXT_MAX, writtenParts } from '../messages/parts.ts';
import { LOG_STATES } from './schema.ts';

/** What every body of 4.13 carries. A token of any shape: one that does not fit is a lost lease, not a malformed request. */
export const leaseFields = {
  organizationId: uuid,
  leaseToken: z.string().min(1).max(300).describe('The fencing token that the pull handed out.'),
};

export const runId = uuid.describe('The run.');
const text = (maximum: number) => z.string().min(1).max(maximum);
const amount = z.int().min(0).max(1_000_000_000_000);

const usageSchema = z
  .strictObject({
    inputTokens: amount.optional(),
    outputTokens: amount.optional(),
    toolCalls: amount.optional(),
    costMinorUnits: amount.optional(),
    costKnown: z.boolean().optional().describe('Default: true when costMinorUnits is given.'),
  })
  .meta({ id: 'ReportedUsage' });

const receiptSchema = z.strictObject({
  kind: z.literal('command'),
  id: text(200),
  commandHash: z.string().regex(/^[0-9a-f]{64}$/, 'must be 64 lowercase hex characters'),
  status: text(50),
  exitCode: z.int().min(-2_147_483_648).max(2_147_483_647),
});

const artifactSchema = z.strictObject({
  kind: z.literal('file').optional(),
  path: text(1000),
  name: text(200).optional(),
  mediaType: z.string().max(200).optional().describe('What the worker takes it for; the bytes decide.'),
  size: z.int().min(0).optional().describe('When given, has to be that of the stored bytes.'),
  sha256: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .optional()
    .describe('When given, has to be that of the stored bytes.'),
});

export const resultSchema = z
  .discriminatedUnion('kind', [
    z.strictObject({
      kind: z.literal('completed'),
      summary: z.string().max(20_000),
      artifacts: z
        .array(artifactSchema)
        .max(1000)
        .default([])
        .describe('Stored outputs of this run, each by its path.'),
    }),
    z.strictObject({ kind: z.literal('waiting'), until: instant, reason: text(2000) }),
    z.strictObject({
      kind: z.literal('needs_input'),
      question: text(10_000),
      options: z.array(text(500)).max(20).default([]),
    }),
  ])
  .meta({ id: 'ReportedResult' });

const reportFields = {
  usage: usageSchema.optional(),
  harness: text(200).optional(),
  logState: z.enum(LOG_STATES).exclude(['recording']).optional(),
};

export const startBody = z
  .strictObject({
    ...leaseFields,
    runId: uuid.describe('Chosen by the worker; the same again repeats the call.'),
    workerId: text(200),
  })
  .meta({ id: 'RunStart' });

export const runningBody = z
  .strictObject({
    ...leaseFields,
    harness: text(200).optional(),
    model: text(200).optional(),
    workspaceUri: logicalUri.optional(),
  })
  .meta({ id: 'RunRunning' });

export const heartbeatBody = z.strictObject(leaseFields).meta({ id: 'RunHeartbeat' });

export const completeBody = z
  .strictObject({
    ...leaseFields,
    output: z.discriminatedUnion('kind', [
      z.strictObject({ kind: z.literal('task_result'), result: resultSchema }),
      z.strictObject({
        kind: z.literal('chat_message'),
        parts: writtenParts.optional().describe('The whole answer. Left out: what was written last.'),
        summary: text(20_000).optional().describe('What the chat is about so far.'),
        harnessSessionId: text(500).optional().describe('The session that the next turn goes on with.'),
      }),
    ]),
    ...reportFields,
    receipts: z.array(receiptSchema).max(1000).optional(),
    workspaceUri: logicalUri.optional(),
  })
  .meta({ id: 'RunComplete' });

export const messageBody = z
  .strictObject({
    ...leaseFields,
    baseRevision: z.int().min(1).max(2_147_483_647).describe('The revision that this one follows.'),
    parts: writtenParts.optional().describe('The answer as it is now, in place of what was there.'),
    append: text(TEXT_MAX).optional().describe('Instead: text behind the last text part.'),
  })
  .refine((body) => (body.parts === undefined) !== (body.append === undefined), {
    path: ['parts'],
    message: 'give either parts or append',
  })
  .meta({ id: 'RunMessage' });

export const failBody = z
  .strictObject({
    ...leaseFields,
    error: z.strictObject({ code: text(100), message: text(2000), retryable: z.boolean() }),
    ...reportFields,
  })
  .meta({ id: 'RunFail' });

/** Digest of a finishing call without its token: the same call again is told from a differing one by it. */
export function bodyHash(body: Readonly<Record<string, unknown>>): string {
  const { leaseToken: _, ...rest } = body;
  return createHash('sha256')
    .update(canonicalize(rest) ?? '')
    .digest('hex');
}
