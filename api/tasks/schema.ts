import { sql } from 'slonik';
import { z } from 'zod';
import { mapping } from '../../engine/mapping.ts';
import { nullableTimestamp, timestamp } from '../fields/timestamp.ts';
import { keyColumns } from '../http/pagination.ts';
import { taskSpecSchema } from './spec.ts';

export const TASK_KINDS = ['task', 'initiative'] as const;
export const TASK_STATUSES = ['pending', 'blocked', 'running', 'waiting', 'completed', 'failed', 'cancelled'] as const;
export const TASK_PHASES = ['plan', 'execute', 'verify', 'closed'] as const;

const blockerSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('dependency'), taskId: z.string() }),
  z.object({ kind: z.literal('children') }),
  z.object({ kind: z.literal('schedule'), until: z.iso.datetime() }),
  z.object({ kind: z.literal('human'), inboxItemId: z.string() }),
  z.object({ kind: z.literal('budget') }),
  z.object({ kind: z.literal('profile') }),
]);

export const fileEvidenceSchema = z.object({
  kind: z.literal('file'),
  runId: z.string(),
  path: z.string(),
  uri: z.string(),
  size: z.int(),
  sha256: z.string(),
  mediaType: z.string(),
});

const noteEvidenceSchema = z.object({ kind: z.literal('note'), text: z.string() });
/** What a check or a verdict rests on. */
export const evidenceSchema = z.discriminatedUnion('kind', [fileEvidenceSchema, noteEvidenceSchema]);

export const checkSchema = z.object({
  criterionIndex: z.int().describe('For the verdict of an agent on the whole: one after the last criterion.'),
  evaluator: z.string().describe('`backend`, or `agent` for a verdict.'),
  status: z.enum(['passed', 'failed']),
  summary: z.string(),
  evidence: z.array(evidenceSchema),
});

const completionSchema = z.object({
  version: z.int(),
  taskVersion: z.int(),
  taskGraphRevision: z.int(),
  completionRevision: z.int(),
  runIds: z.array(z.string()),
  disposition: z.enum(['passed', 'failed', 'accepted']).describe('accepted: by a person, although it was refused.'),
  checks: z.array(checkSchema),
});

/** The result of a task or run: `completed` with its artifacts, why it waits, or what a plan or verify run came to. */
export const taskResultSchema = z
  .object({
    kind: z.enum(['completed', 'waiting', 'needs_input', 'planned', 'verification']),
    summary: z.string().optional(),
    artifacts: z.array(fileEvidenceSchema.extend({ name: z.string().optional() })).optional(),
    completion: completionSchema.optional(),
    until: z.string().optional(),
    reason: z.string().optional(),
    question: z.string().optional(),
    options: z.array(z.string()).optional(),
    tasks: z
      .array(z.object({ key: z.string(), taskId: z.string(), identifier: z.string() }))
      .optional()
      .describe('Of a plan run: the tasks that its plan made.'),
    verdict: z.enum(['passed', 'failed']).optional(),
    evidence: z.array(evidenceSchema).optional(),
  })
  .meta({ id: 'TaskResult' });

const childSchema = z.object({
  id: z.string(),
  identifier: z.string(),
  kind: z.enum(TASK_KINDS),
  title: z.string(),
  status: z.enum(TASK_STATUSES),
  phase: z.enum(TASK_PHASES),
  ownerAgentProfileId: z.string(),
  summary: z.string().optional(),
  artifacts: z.array(z.looseObject({ runId: z.string(), path: z.string() })).optional(),
  error: z.looseObject({ code: z.string(), message: z.string() }).optional(),
});

const stateSchema = z
  .object({
    blockers: z.array(blockerSchema).describe('Why a blocked task cannot run.'),
    activeRunIds: z.array(z.string()),
    contract: z
      .object({
        failures: z.int(),
        verdicts: z.int().optional().describe('Verdicts that refused a result.'),
        runId: z.string(),
        checks: z.array(checkSchema),
      })
      .optional()
      .describe('The checks that the last result failed, for the next run to mend.'),
    replan: z
      .looseObject({
        reason: z.enum(['child_failed', 'none_completed', 'verdict_failed']),
        taskId: z.string().optional().describe('The task whose failure is the reason.'),
        error: z.looseObject({ code: z.string(), message: z.string() }).optional(),
      })
      .optional()
      .describe('Why an initiative is planned again.'),
    verification: z
      .object({ runId: z.string().optional(), result: taskResultSchema })
      .optional()
      .describe('In phase verify: the result that is judged, and the run that made it.'),
    children: z
      .array(childSchema)
      .optional()
      .describe('What a pull hands out for a plan or verify run: the tasks directly below, and what came of them.'),
    answers: z.array(z.looseObject({})).optional().describe('What people answered, for the next run.'),
    spend: z
      .object({
        costMinorUnits: z.int().describe('What its runs and those below it have reported.'),
        tokens: z.int(),
        costKnown: z.boolean().describe('False: the cost is at least this, because some have not reported theirs.'),
        unknownCostRuns: z.int().describe('How many, those that are not finished among them.'),
      })
      .optional()
      .describe('Where it, or a task of its hierarchy, has a spend limit.'),
    waiting: z.object({ until: z.iso.datetime(), reason: z.string().nullable() }).optional(),
    failureOriginId: z
      .string()
      .optional()
      .describe('The task whose failure failed or cancelled this one; a retry acts on it.'),
    error: z.looseObject({ code: z.string(), message: z.string() }).optional().describe('Why the task failed.'),
  })
  .meta({ id: 'TaskState' });

/** Contract 2.9. */
export const taskSchema = z
  .object({
    id: z.string(),
    organizationId: z.string(),
    identifier: z.string(),
    identifierScope: z.string(),
    identifierNumber: z.int(),
    parentId: z.string().nullable(),
    rootTaskId: z.string().nullable(),
    depth: z.int(),
    ownerAgentProfileId: z.string(),
    sourceChatId: z.string().nullable(),
    sourceMessageId: z.string().nullable(),
    kind: z.enum(TASK_KINDS),
    status: z.enum(TASK_STATUSES),
    phase: z.enum(TASK_PHASES),
    title: z.string(),
    priority: z.int(),
    version: z.int(),
    graphRevision: z.int(),
    agentRunCount: z.int(),
    consumedAgentRunCount: z.int(),
    replanCount: z.int(),
    createdByRunId: z.string().nullable(),
    spec: taskSpecSchema,
    state: stateSchema,
    result: taskResultSchema.nullable(),
    dedupeKey: z.string(),
    scheduledAt: z.iso.datetime().nullable(),
    dueAt: z.iso.datetime().nullable(),
    startedAt: z.iso.datetime().nullable(),
    completedAt: z.iso.datetime().nullable(),
    createdAt: z.iso.datetime(),
    updatedAt: z.iso.datetime(),
  })
  .meta({ id: 'Task' });
export type Task = z.output<typeof taskSchema>;

/** A row of `app.tasks` with its root's `graph_revision`: from a list, or as a transition returns it. */
export const taskColumns = z.object({
  organization_id: z.string(),
  id: z.string(),
  identifier_scope: z.string(),
  identifier_number: z.int(),
  parent_id: z.string().nullable(),
  root_task_id: z.string(),
  depth: z.int(),
  owner_agent_profile_id: z.string(),
  source_chat_id: z.string().nullable(),
  source_message_id: z.string().nullable(),
  kind: z.enum(TASK_KINDS),
  status: z.enum(TASK_STATUSES),
  phase: z.enum(TASK_PHASES),
  title: z.string(),
  priority: z.int(),
  version: z.int(),
  graph_revision: z.int(),
  agent_run_count: z.int(),
  consumed_agent_run_count: z.int(),
  replan_count: z.int(),
  spend_limited: z.boolean(),
  spent_cost_minor_units: z.int(),
  spent_tokens: z.int(),
  cost_known_run_count: z.int(),
  created_by_run_id: z.string().nullable(),
  // Written by our transitions alone, in the shape that goes out.
  spec: z.custom<Task['spec']>(),
  blockers: z.custom<Task['state']['blockers']>(),
  contract: z.custom<NonNullable<Task['state']['contract']> | null>(),
  answers: z.custom<NonNullable<Task['state']['answers']>>(),
  replan: z.custom<(NonNullable<Task['state']['replan']> & { asked?: boolean; missed?: boolean }) | null>(),
  verification: z.custom<NonNullable<Task['state']['verification']> | null>(),
  children: z.custom<NonNullable<Task['state']['children']> | null>().optional(),
  error: z.custom<NonNullable<Task['state']['error']> | null>(),
  result: z.custom<Task['result']>(),
  active_run_id: z.string().nullable(),
  waiting_until: nullableTimestamp,
  waiting_reason: z.string().nullable(),
  failure_origin_id: z.string().nullable(),
  dedupe_key: z.string(),
  scheduled_at: nullableTimestamp,
  due_at: nullableTimestamp,
  started_at: nullableTimestamp,
  completed_at: nullableTimestamp,
  created_at: timestamp,
  updated_at: timestamp,
});

function toSpend(row: z.output<typeof taskColumns>): NonNullable<Task['state']['spend']> {
  const unknownCostRuns = row.consumed_agent_run_count - row.cost_known_run_count;
  return {
    costMinorUnits: row.spent_cost_minor_units,
    tokens: row.spent_tokens,
    costKnown: unknownCostRuns === 0,
    unknownCostRuns,
  };
}

function toState(row: z.output<typeof taskColumns>): Task['state'] {
  const { asked: _asked, missed: _missed, ...replan } = row.replan ?? {};
  const judged = row.phase === 'verify' && row.verification ? row.verification : null;
  return {
    blockers: row.blockers,
    activeRunIds: row.active_run_id === null ? [] : [row.active_run_id],
    ...(row.contract === null ? {} : { contract: row.contract }),
    ...(row.replan === null ? {} : { replan: replan as NonNullable<Task['state']['replan']> }),
    ...(judged === null
      ? {}
      : { verification: { ...(judged.runId ? { runId: judged.runId } : {}), result: judged.result } }),
    ...(row.children ? { children: row.children } : {}),
    ...(row.answers.length === 0 ? {} : { answers: row.answers }),
    ...(row.spend_limited ? { spend: toSpend(row) } : {}),
    ...(row.waiting_until === null ? {} : { waiting: { until: row.waiting_until, reason: row.waiting_reason } }),
    ...(row.failure_origin_id === null ? {} : { failureOriginId: row.failure_origin_id }),
    ...(row.error === null ? {} : { error: row.error }),
  };
}

export function toTask(row: z.output<typeof taskColumns>): Task {
  return {
    id: row.id,
    organizationId: row.organization_id,
    identifier: `${row.identifier_scope}-${row.identifier_number}`,
    identifierScope: row.identifier_scope,
    identifierNumber: row.identifier_number,
    parentId: row.parent_id,
    rootTaskId: row.root_task_id,
    depth: row.depth,
    ownerAgentProfileId: row.owner_agent_profile_id,
    sourceChatId: row.source_chat_id,
    sourceMessageId: row.source_message_id,
    kind: row.kind,
    status: row.status,
    phase: row.phase,
    title: row.title,
    priority: row.priority,
    version: row.version,
    graphRevision: row.graph_revision,
    agentRunCount: row.agent_run_count,
    consumedAgentRunCount: row.consumed_agent_run_count,
    replanCount: row.replan_count,
    createdByRunId: row.created_by_run_id,
    spec: row.spec,
    state: toState(row),
    result: row.result,
    dedupeKey: row.dedupe_key,
    scheduledAt: row.scheduled_at,
    dueAt: row.due_at,
    startedAt: row.started_at,
    completedAt: row.completed_at,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}

/** Rows of tasks as they come from Postgres → tasks as they go out. */
export const taskRow = taskColumns.pipe(mapping(toTask));
/** The same with the columns of a keyset. */
export const taskPageRow = taskColumns.extend(keyColumns).pipe(
  mapping((row) => ({
    cursor_key: row.cursor_key,
    cursor_id: row.cursor_id,
    cursor_rows: row.cursor_rows,
    task: toTask(row),
  })),
);

/** The columns that both need, save for the spec; `t` is the task, `r` its root. */
export const taskSelectWithoutSpec = sql.fragment`
  t.organization_id, t.id, t.identifier_scope, t.identifier_number, t.parent_id, t.root_task_id, t.depth,
  t.owner_agent_profile_id, t.source_chat_id, t.source_message_id, t.kind, t.status, t.phase, t.title, t.priority,
  t.version, r.graph_revision, t.agent_run_count, t.consumed_agent_run_count, t.replan_count, r.spend_limited, t.spent_cost_minor_units, t.spent_tokens, t.cost_known_run_count, t.created_by_run_id,
  t.blockers, t.contract, t.replan, t.verification, t.answers, t.error, t.result, t.active_run_id, t.waiting_until, t.waiting_reason,
  t.failure_origin_id, t.dedupe_key, t.scheduled_at, t.due_at, t.started_at, t.completed_at, t.created_at, t.updated_at`;
export const taskSelect = sql.fragment`${taskSelectWithoutSpec}, t.spec`;

/** What a transition of a task returns. */
export const taskAnswer = z.object({ task: taskRow });
