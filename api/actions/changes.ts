import { z } from 'zod';
import { ACTION_RECONCILIATIONS } from './states.ts';

const words = z.string().trim().min(1).max(2_000);

/** Body of the approval. */
export const approvalBody = z
  .strictObject({
    expectedVersion: z.int().min(1).max(2_147_483_647).optional().describe('409 if it is at another one.'),
    argumentsSha256: z
      .string()
      .regex(/^[0-9a-f]{64}$/, 'must be a SHA-256 in lower-case hex')
      .optional()
      .describe('Of the arguments that were seen. 409 if it has others.'),
    note: words.optional(),
  })
  .meta({ id: 'ActionApproval' });

export const rejectionBody = z.strictObject({ reason: words }).meta({ id: 'ActionRejection' });

export const reconciliationBody = z
  .strictObject({
    outcome: z.enum(ACTION_RECONCILIATIONS).describe('What became of it at the provider.'),
    note: words.describe('How that was found out.'),
  })
  .meta({ id: 'ActionReconciliation' });
