import { z } from 'zod';
import { canonicalJson, canonicalSha256 } from '../../engine/canonical_json.ts';
import type { Queries } from '../../engine/db/call.ts';
import { Problem } from '../../engine/db/problem.ts';
import { type ReceiptKey, signedReceipt } from '../../engine/receipts/index.ts';
import { getAction } from './list.ts';
import { type Action, actionSchema, reconciledExample } from './schema.ts';
import type { ACTION_STATUSES } from './states.ts';

const OPEN: readonly (typeof ACTION_STATUSES)[number][] = ['awaiting_approval', 'approved', 'executing', 'unknown'];
/** A longer result is left out of its receipt, which has its digest: the action has it. */
const MAX_RESULT_BYTES = 65_536;

const { shape } = actionSchema;

/** A receipt, for the document alone: the engine writes and checks its text. */
export const receiptSchema = z
  .object({
    action: z.looseObject({ id: shape.id }).describe('The action without what stands below.'),
    decision: shape.decision,
    result: z.object({
      status: shape.status,
      endedAt: shape.updatedAt,
      execution: shape.execution.describe('A `result` over 64 KiB is null.'),
      resultSha256: z.string().nullable().describe('Of the result as RFC 8785 writes it.'),
      reconciliation: shape.reconciliation,
      reason: shape.reason,
    }),
    keyId: z.string().describe('`kid` of the key.'),
    algorithm: z.literal('Ed25519'),
    signature: z.string().describe('Base64url, over the RFC 8785 form of all the rest.'),
  })
  .meta({ id: 'ActionReceipt' });

function contentOf({ decision, execution, reconciliation, reason, status, updatedAt, ...action }: Action) {
  const found = execution?.result ?? null;
  const isShort = Buffer.byteLength(canonicalJson(found)) <= MAX_RESULT_BYTES;
  const result = {
    status,
    endedAt: updatedAt,
    execution: execution && { ...execution, result: isShort ? found : null },
    resultSha256: found === null ? null : canonicalSha256(found),
    reconciliation,
    reason,
  };
  return { action, decision, result };
}

export const receiptExample = {
  ...contentOf(reconciledExample),
  keyId: 'kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k',
  algorithm: 'Ed25519',
  signature: 'wCQ8o0T7eZ0nX1kJv3yq5mLh2sRfUdGb9iPa6Yt4EwKxNcVjMzBqLrTuHgFdSaWeRtYuIoP1234567890abcDg',
} satisfies z.input<typeof receiptSchema>;

/**
 * The signed receipt of an action that is over, as RFC 8785 text: the same bytes each time while the same key signs.
 * @throws Problem 404 `organization_not_found` or `action_not_found`; 409 `state_conflict` (`not_final`, `deployment_setting`)
 */
export async function actionReceipt(
  db: Queries,
  [key]: readonly ReceiptKey[],
  organizationId: string,
  actionId: string,
): Promise<string> {
  const action = await getAction(db, organizationId, actionId);
  if (OPEN.includes(action.status)) {
    const message = `is ${action.status}, and has a receipt when it is over`;
    throw new Problem(409, 'state_conflict', `The action is ${action.status}`, [
      { path: 'actionId', code: 'not_final', message },
    ]);
  }
  if (key === undefined) {
    throw new Problem(409, 'state_conflict', 'This deployment signs no receipts.', [
      { path: 'RECEIPT_KEYS', code: 'deployment_setting', message: 'is not set' },
    ]);
  }
  return signedReceipt(contentOf(action), key);
}
