import { createHash } from 'node:crypto';
import canonicalize from 'canonicalize';
import { z } from 'zod';
import { filePath, requireLayout } from '../fields/file_path.ts';
import { uuid } from '../fields/ids.ts';
import { instant } from '../fields/instant.ts';
import { workspaceUri } from '../fields/workspace_uri.ts';
import { TEXT_MAX, writtenParts } from '../messages/parts.ts';
import { LOG_STATES } from './schema.ts';

/** What every body of a lease call carries. A token of any shape: one that does not fit is a lost lease, not a malformed request. */
export const leaseFields = {
  organizationId: uuid,
  leaseToken: z
    .string()
    .min(1)
    .max(300)
    .meta({ id: 'LeaseToken', description: 'The fencing token of the claim, as returned by the pull.' }),
};

export const runId = uuid.describe('The run.');
const text = (maximum: number) => z.string().min(1).max(maximum);
const amount = z.int().min(0).max(1_000_000_000_000);

const usageSchema = z
  .strictObject({
    inputTokens: amount.optional(),
    outputTokens: amount.optional(),
    toolCalls: amount.optional(),
    costMinorUnits: amount.optional().describe('In minor units of the currency that all workers report in.'),
    costKnown: z.boolean().optional().describe('Default: true if `costMinorUnits` is given.'),
  })
  .meta({ id: 'ReportedUsage', description: 'Total usage of the run.' });

const receiptSchema = z.strictObject({
  kind: z.literal('command'),
  id: text(200).describe('Unique in the run.'),
  commandHash: z.string().regex(/^[0-9a-f]{64}$/, 'must be 64 lowercase hex characters'),
  status: text(50),
  exitCode: z.int().min(-2_147_483_648).max(2_147_483_647),
});

/** What the sender may say of a stored file: the same fields that evidence goes out with. */
export const fileClaims = {
  uri: text(4000).optional().describe('If given, the one that evidence has; otherwise 400.'),
  mediaType: z
    .string()
    .max(200)
    .optional()
    .describe('What the sender believes; the backend determines it from the bytes.'),
  size: z.int().min(0).optional().describe('If given, equal to the size of the stored file; otherwise 400.'),
  sha256: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .optional()
    .describe('If given, equal to the digest of the stored file; otherwise 400.'),
};

const artifactSchema = z.strictObject({
  kind: z.literal('file').optional(),
  runId: uuid.optional().describe('If given, the run itself; otherwise 400.'),
  path: filePath,
  name: text(200).optional(),
  ...fileClaims,
});

export const resultSchema = z
  .discriminatedUnion('kind', [
    z.strictObject({
      kind: z.literal('completed'),
      summary: z.string().max(20_000),
      artifacts: z
        .array(artifactSchema)
        .max(1000)
        .superRefine((artifacts, context) =>
          requireLayout(
            artifacts.map(({ path }) => path),
            context,
          ),
        )
        .default([])
        .describe('Files that the run has stored, by `path`. 400 for one that it has not.'),
    }),
    z
      .strictObject({
        kind: z.literal('waiting'),
        until: instant.optional(),
        actionIds: z.array(uuid).min(1).max(50).optional(),
        reason: text(2000),
      })
      .refine(({ until, actionIds }) => (until === undefined) !== (actionIds === undefined), {
        error: 'exactly one of until and actionIds is required',
        path: ['until'],
      })
      .meta({ id: 'ReportedWait', description: 'Until a time, or until actions of the task are over.' }),
    z
      .strictObject({
        kind: z.literal('needs_input'),
        question: text(10_000),
        options: z.array(text(500)).max(20).default([]).describe('Suggested answers.'),
      })
      .meta({ id: 'ReportedQuestion', description: 'The run cannot go on without an answer of a person.' }),
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
    runId: uuid.describe('Chosen by the worker. The same id repeats the call.'),
    workerId: text(200),
  })
  .meta({ id: 'RunStart' });

export const runningBody = z
  .strictObject({
    ...leaseFields,
    harness: text(200).optional(),
    model: text(200).optional(),
    workspaceUri: workspaceUri.optional(),
  })
  .meta({ id: 'RunRunning' });

export const heartbeatBody = z
  .strictObject({
    ...leaseFields,
    waitMs: z
      .int()
      .min(0)
      .max(30_000)
      .default(0)
      .describe('How long to wait for a cancel of the run after the lease is renewed, in milliseconds.'),
  })
  .meta({ id: 'RunHeartbeat' });

export const completeBody = z
  .strictObject({
    ...leaseFields,
    output: z.discriminatedUnion('kind', [
      z.strictObject({ kind: z.literal('task_result'), result: resultSchema }),
      z.strictObject({
        kind: z.literal('chat_message'),
        parts: writtenParts.optional().describe('The whole reply. Default: what was written last.'),
        summary: text(20_000).optional().describe('Summary of the chat so far.'),
        harnessSessionId: text(500).optional().describe('The session of the runtime that the next turn continues.'),
      }),
    ]),
    ...reportFields,
    receipts: z.array(receiptSchema).max(1000).optional(),
    workspaceUri: workspaceUri.optional(),
  })
  .meta({ id: 'RunComplete' });

export const messageBody = z
  .strictObject({
    ...leaseFields,
    baseRevision: z
      .int()
      .min(1)
      .max(2_147_483_647)
      .describe('The revision that this one follows; 409 if it is not the current one.'),
    parts: writtenParts.optional().describe('The whole reply, replacing what was written before.'),
    append: text(TEXT_MAX).optional().describe('Instead of `parts`: text to append to the last text part.'),
  })
  .refine((body) => (body.parts === undefined) !== (body.append === undefined), {
    path: ['parts'],
    message: 'give either parts or append',
  })
  .meta({ id: 'RunMessage' });

export const failBody = z
  .strictObject({
    ...leaseFields,
    error: z.strictObject({
      code: text(100),
      message: text(4000),
      retryable: z.boolean().describe('True: the task is tried again while attempts are left.'),
    }),
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
