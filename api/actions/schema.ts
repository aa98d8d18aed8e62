import { z } from 'zod';
import { TOOL_RISKS } from '../../engine/integration_states.ts';
import { mapping } from '../../engine/mapping.ts';
import { HIDDEN, withoutSecrets } from '../../engine/secret_values.ts';
import { storedUuid } from '../fields/ids.ts';
import { dateTime, nullableTimestamp, timestamp } from '../fields/timestamp.ts';
import { digests, ids, times } from '../http/openapi/example_values.ts';
import { keyColumns } from '../http/pagination.ts';
import { ACTION_DECISIONS, ACTION_KINDS, ACTION_RECONCILIATIONS, ACTION_STATUSES } from './states.ts';

export const actionStatus = z.enum(ACTION_STATUSES);
export const actionRisk = z.enum(TOOL_RISKS);

const coded = z.object({ code: z.string(), message: z.string() });
const file = z.object({
  argument: z.string(),
  name: z.string(),
  contentType: z.string(),
  sizeBytes: z.int(),
  sha256: z.string(),
});
const values = z.record(z.string(), z.unknown());

const decision = z
  .object({ outcome: z.enum(ACTION_DECISIONS), by: z.string(), note: z.string().nullable(), at: dateTime })
  .meta({ id: 'ActionDecision' });
const execution = z
  .object({
    attempts: z.int(),
    startedAt: dateTime,
    finishedAt: dateTime.nullable(),
    result: z.unknown(),
    error: coded.nullable(),
  })
  .meta({ id: 'ActionExecution' });
const reconciliation = z
  .object({ outcome: z.enum(ACTION_RECONCILIATIONS), note: z.string(), by: z.string(), at: dateTime })
  .meta({ id: 'ActionReconciled' });

export const actionSchema = z
  .object({
    id: storedUuid,
    organizationId: storedUuid,
    integrationId: storedUuid.describe('It may be deleted.'),
    integrationKey: z.string().describe('When it was proposed.'),
    provider: z.string(),
    agentProfileId: storedUuid,
    taskId: storedUuid.nullable(),
    runId: storedUuid,
    chatId: storedUuid.nullable(),
    messageId: storedUuid.nullable(),
    invocationId: z.string(),
    retryOf: storedUuid.nullable(),
    kind: z.enum(ACTION_KINDS),
    tool: z.string(),
    summary: z.string().describe('Whom, what, how much and where.'),
    risk: actionRisk,
    arguments: values.describe(`Values that the tool marks as secret are \`${HIDDEN}\`.`),
    argumentsSha256: z.string(),
    files: z.array(file),
    status: actionStatus,
    version: z.int(),
    requiresApproval: z.boolean(),
    decision: decision.nullable(),
    execution: execution.nullable(),
    reconciliation: reconciliation.nullable(),
    reason: coded.nullable().describe('Why it was cancelled, expired or sent back.'),
    expiresAt: dateTime.describe('If nobody decides.'),
    createdAt: dateTime,
    updatedAt: dateTime,
  })
  .meta({ id: 'Action' });
export type Action = z.output<typeof actionSchema>;

/** A row of `app.actions` with its files, as `app.action_record` writes it. */
const actionRow = z
  .object({
    organization_id: z.string(),
    id: z.string(),
    integration_id: z.string(),
    integration_key: z.string(),
    provider: z.string(),
    agent_profile_id: z.string(),
    task_id: z.string().nullable(),
    run_id: z.string(),
    chat_id: z.string().nullable(),
    message_id: z.string().nullable(),
    invocation_id: z.string(),
    retry_of: z.string().nullable(),
    kind: z.enum(ACTION_KINDS),
    tool: z.string(),
    summary: z.string(),
    risk: actionRisk,
    arguments: values,
    arguments_schema: values.nullable(),
    arguments_sha256: z.string(),
    files: z.array(file),
    status: actionStatus,
    version: z.int(),
    requires_approval: z.boolean(),
    decision: z.enum(ACTION_DECISIONS).nullable(),
    decided_by: z.string().nullable(),
    decision_note: z.string().nullable(),
    decided_at: nullableTimestamp,
    execution_attempts: z.int(),
    execution_started_at: nullableTimestamp,
    execution_finished_at: nullableTimestamp,
    result: z.unknown(),
    error: coded.nullable(),
    reconciliation: z.enum(ACTION_RECONCILIATIONS).nullable(),
    reconciliation_note: z.string().nullable(),
    reconciled_by: z.string().nullable(),
    reconciled_at: nullableTimestamp,
    reason: coded.nullable(),
    expires_at: timestamp,
    created_at: timestamp,
    updated_at: timestamp,
  })
  .pipe(
    mapping(
      (row): Action => ({
        id: row.id,
        organizationId: row.organization_id,
        integrationId: row.integration_id,
        integrationKey: row.integration_key,
        provider: row.provider,
        agentProfileId: row.agent_profile_id,
        taskId: row.task_id,
        runId: row.run_id,
        chatId: row.chat_id,
        messageId: row.message_id,
        invocationId: row.invocation_id,
        retryOf: row.retry_of,
        kind: row.kind,
        tool: row.tool,
        summary: row.summary,
        risk: row.risk,
        arguments: withoutSecrets(row.arguments, row.arguments_schema) as Action['arguments'],
        argumentsSha256: row.arguments_sha256,
        files: row.files,
        status: row.status,
        version: row.version,
        requiresApproval: row.requires_approval,
        decision:
          row.decision && row.decided_by !== null && row.decided_at
            ? { outcome: row.decision, by: row.decided_by, note: row.decision_note, at: row.decided_at }
            : null,
        execution: row.execution_started_at
          ? {
              attempts: row.execution_attempts,
              startedAt: row.execution_started_at,
              finishedAt: row.execution_finished_at,
              result: row.result,
              error: row.error,
            }
          : null,
        reconciliation:
          row.reconciliation && row.reconciliation_note !== null && row.reconciled_by !== null && row.reconciled_at
            ? {
                outcome: row.reconciliation,
                note: row.reconciliation_note,
                by: row.reconciled_by,
                at: row.reconciled_at,
              }
            : null,
        reason: row.reason,
        expiresAt: row.expires_at,
        createdAt: row.created_at,
        updatedAt: row.updated_at,
      }),
    ),
  );

/** What a transition of an action returns. */
export const actionResult = z.object({ action: actionRow });
export const actionPageRow = z.object({ action: actionRow, ...keyColumns });

export const actionExample = {
  id: ids.action,
  organizationId: ids.organization,
  integrationId: ids.integration,
  integrationKey: 'web-shop',
  provider: 'lemon-squeezy',
  agentProfileId: ids.growthProfile,
  taskId: ids.task,
  runId: ids.run,
  chatId: null,
  messageId: null,
  invocationId: 'refund-order-5512',
  retryOf: null,
  kind: 'provider_write',
  tool: 'lemon_squeezy.orders.refund',
  summary: 'Refund order 5512 of a…@lampstudio.example: 49.00 EUR',
  risk: 'high',
  arguments: { orderId: '5512', amount: 4_900 },
  argumentsSha256: digests.command,
  files: [],
  status: 'awaiting_approval',
  version: 1,
  requiresApproval: true,
  decision: null,
  execution: null,
  reconciliation: null,
  reason: null,
  expiresAt: '2026-12-04T09:15:02.640Z',
  createdAt: '2026-11-27T09:15:02.640Z',
  updatedAt: '2026-11-27T09:15:02.640Z',
} satisfies Action;

const decidedAt = times.finished;
const by = 'auth0|64f1b2c9e0a4';

export const approvedExample = {
  ...actionExample,
  status: 'approved',
  version: 2,
  decision: { outcome: 'approved', by, note: 'The customer sent it back.', at: decidedAt },
  updatedAt: decidedAt,
} satisfies Action;

export const rejectedExample = {
  ...actionExample,
  status: 'rejected',
  version: 2,
  decision: { outcome: 'rejected', by, note: 'The order was never paid.', at: decidedAt },
  updatedAt: decidedAt,
} satisfies Action;

export const reconciledExample = {
  ...approvedExample,
  status: 'succeeded',
  version: 5,
  execution: {
    attempts: 1,
    startedAt: '2026-11-27T09:20:44.018Z',
    finishedAt: '2026-11-27T09:28:02.771Z',
    result: null,
    error: null,
  },
  reconciliation: {
    outcome: 'succeeded',
    note: 'The shop shows the refund.',
    by,
    at: '2026-11-27T10:05:13.720Z',
  },
  updatedAt: '2026-11-27T10:05:13.720Z',
} satisfies Action;
