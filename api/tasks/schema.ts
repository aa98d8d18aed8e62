import { sql } from 'slonik';
import { z } from 'zod';
import { mapping } from '../../engine/mapping.ts';
import { uuid } from '../fields/ids.ts';
import { nullableTimestamp, timestamp } from '../fields/timestamp.ts';
import { digests, ids, times } from '../http/openapi/example_values.ts';
import { keyColumns } from '../http/pagination.ts';
import { taskSpecSchema } from './spec.ts';

export const TASK_KINDS = ['task', 'initiative'] as const;
export const TASK_STATUSES = ['pending', 'blocked', 'running', 'waiting', 'completed', 'failed', 'cancelled'] as const;
export const TASK_PHASES = ['plan', 'execute', 'verify', 'closed'] as const;
export const taskStatus = z.enum(TASK_STATUSES).meta({ id: 'TaskStatus' });
export const taskPhase = z.enum(TASK_PHASES).meta({ id: 'TaskPhase' });

const blockerSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('dependency'), taskId: uuid }).describe('A prerequisite that is not completed.'),
  z.object({ kind: z.literal('children') }).describe('Tasks below it are open.'),
  z.object({ kind: z.literal('schedule'), until: z.iso.datetime() }).describe('`scheduledAt` lies ahead.'),
  z.object({ kind: z.literal('human'), inboxItemId: uuid }).describe('A question in the inbox waits for an answer.'),
  z.object({ kind: z.literal('action'), actionId: uuid }).describe('An action is not over.'),
  z.object({ kind: z.literal('budget') }).describe('A budget is used up.'),
  z.object({ kind: z.literal('profile') }).describe('The owner or verifier profile is disabled.'),
]);

export const fileEvidenceSchema = z.object({
  kind: z.literal('file'),
  runId: uuid,
  path: z.string(),
  uri: z.string(),
  size: z.int().describe('Size in bytes.'),
  sha256: z.string().describe('SHA-256 in hex.'),
  mediaType: z.string(),
});

const noteEvidenceSchema = z.object({ kind: z.literal('note'), text: z.string() });
/** What a check or a verdict rests on. */
export const evidenceSchema = z
  .discriminatedUnion('kind', [fileEvidenceSchema, noteEvidenceSchema])
  .meta({ id: 'Evidence', description: 'A stored file, or a note.' });

export const checkSchema = z
  .object({
    criterionIndex: z
      .int()
      .describe('Position in `spec.acceptanceCriteria`, from 0. The verdict of an agent comes after the last one.'),
    evaluator: z.string().describe('`backend`, or `agent` for a verdict.'),
    status: z.enum(['passed', 'failed']),
    summary: z.string(),
    evidence: z.array(evidenceSchema),
  })
  .meta({ id: 'TaskCheck', description: 'One acceptance criterion as it was evaluated.' });

const reportExample = {
  kind: 'file',
  runId: ids.run,
  path: 'report.json',
  uri: `org://${ids.organization}/runs/${ids.run}/outputs/report.json`,
  size: 2_481,
  sha256: digests.report,
  mediaType: 'application/json',
};

const completionSchema = z.object({
  version: z.int().describe('Version of this format.'),
  taskVersion: z.int().describe('`version` of the task that was completed.'),
  taskGraphRevision: z.int(),
  completionRevision: z.int().describe('Rises with each evaluation of the task.'),
  runIds: z.array(uuid).describe('The runs whose files were evaluated.'),
  disposition: z
    .enum(['passed', 'failed', 'accepted'])
    .describe('`accepted`: a person accepted the result although checks failed.'),
  checks: z.array(checkSchema),
});

/** The result of a task or run: `completed` with its artifacts, why it waits, or what a plan or verify run came to. */
export const taskResultSchema = z
  .object({
    kind: z.enum(['completed', 'waiting', 'needs_input', 'planned', 'verification']),
    summary: z.string().optional(),
    artifacts: z
      .array(fileEvidenceSchema.extend({ name: z.string().optional() }))
      .optional()
      .describe('With `completed`: the files that the run made.'),
    completion: completionSchema.optional().describe('With `completed`: how the acceptance criteria were evaluated.'),
    until: z.string().optional().describe('With `waiting`: when the task goes on.'),
    actionIds: z.array(uuid).optional().describe('With `waiting`, in place of `until`: what it waits for.'),
    reason: z.string().optional().describe('With `waiting`.'),
    question: z.string().optional().describe('With `needs_input`: what a person is asked.'),
    options: z.array(z.string()).optional().describe('With `needs_input`: suggested answers.'),
    tasks: z
      .array(z.object({ key: z.string(), taskId: uuid, identifier: z.string() }))
      .optional()
      .describe('With `planned`: the tasks that the plan created, by their key in it.'),
    verdict: z.enum(['passed', 'failed']).optional().describe('With `verification`.'),
    evidence: z.array(evidenceSchema).optional().describe('With `verification`.'),
  })
  .meta({
    id: 'TaskResult',
    example: {
      kind: 'completed',
      summary: 'The report covers four regions and 800 orders.',
      artifacts: [reportExample],
      completion: {
        version: 1,
        taskVersion: 3,
        taskGraphRevision: 4,
        completionRevision: 1,
        runIds: [ids.run],
        disposition: 'passed',
        checks: [
          {
            criterionIndex: 0,
            evaluator: 'backend',
            status: 'passed',
            summary: 'report.json passed 1 check.',
            evidence: [reportExample],
          },
        ],
      },
    },
  });

/** Why a task failed. */
export const taskError = z.looseObject({ code: z.string(), message: z.string() }).meta({ id: 'TaskError' });

const childSchema = z.object({
  id: uuid,
  identifier: z.string(),
  kind: z.enum(TASK_KINDS),
  title: z.string(),
  status: taskStatus,
  phase: taskPhase,
  ownerAgentProfileId: uuid,
  summary: z.string().optional(),
  artifacts: z.array(z.looseObject({ runId: uuid, path: z.string() })).optional(),
  error: taskError.optional(),
});

const stateSchema = z
  .object({
    blockers: z.array(blockerSchema).describe('Why a blocked task cannot run.'),
    activeRunIds: z.array(uuid).describe('The run that works on the task now, if any.'),
    contract: z
      .object({
        failures: z.int().describe('Results that failed a check.'),
        verdicts: z.int().optional().describe('Results that an agent refused.'),
        runId: uuid.describe('The run that made the result.'),
        checks: z.array(checkSchema),
      })
      .optional()
      .describe('The failed checks of the last result, for the next run to fix.'),
    replan: z
      .looseObject({
        reason: z.enum(['child_failed', 'none_completed', 'verdict_failed']),
        taskId: uuid.optional().describe('The task whose failure is the reason.'),
        error: taskError.optional(),
      })
      .optional()
      .describe('Why the initiative is planned again.'),
    verification: z
      .object({ runId: uuid.optional(), result: taskResultSchema })
      .optional()
      .describe('In phase `verify`: the result under verification, and the run that made it.'),
    children: z
      .array(childSchema)
      .optional()
      .describe('In a pull for a plan or verify run only: the tasks directly below, and their results.'),
    failures: z
      .array(z.object({ runId: uuid, mode: z.string(), status: z.string(), error: taskError }))
      .optional()
      .describe('In a pull only: how up to five earlier runs failed, the latest first.'),
    answers: z
      .array(z.looseObject({}))
      .optional()
      .describe('Answers of people, and what became of actions, for the next run.'),
    spend: z
      .object({
        costMinorUnits: z.int().describe('Cost reported by the runs of the task and of the tasks below it.'),
        tokens: z.int().describe('Input and output tokens.'),
        costKnown: z.boolean().describe('False: some runs have not reported a cost, so the real cost may be higher.'),
        unknownCostRuns: z.int().describe('Runs without a reported cost, active runs included.'),
      })
      .optional()
      .describe('Present if a task of the hierarchy has a spend limit.'),
    waiting: z
      .object({ until: z.iso.datetime(), reason: z.string().nullable() })
      .optional()
      .describe('With status `waiting`: until when, and why.'),
    failureOriginId: uuid
      .optional()
      .describe('The task whose failure made this one fail or be cancelled. A retry acts on that task.'),
    error: taskError.optional().describe('Why the task failed.'),
  })
  .meta({ id: 'TaskState', example: { blockers: [], activeRunIds: [] } });

export const taskSchema = z
  .object({
    id: uuid,
    organizationId: uuid,
    identifier: z.string().describe('Short name in the organization, such as T-12 for tasks and I-3 for initiatives.'),
    identifierScope: z.string().describe('`T` or `I`.'),
    identifierNumber: z.int().describe('Counted by organization and scope, from 1.'),
    parentId: uuid.nullable().describe('The initiative above the task; null for a root.'),
    rootTaskId: uuid.nullable().describe('The top of the hierarchy; a root names itself.'),
    depth: z.int().describe('Levels below the root, which has 0.'),
    ownerAgentProfileId: uuid.describe('The profile that works on the task.'),
    sourceChatId: uuid.nullable().describe('The chat that the task comes from.'),
    sourceMessageId: uuid.nullable().describe('The message that the task comes from.'),
    kind: z
      .enum(TASK_KINDS)
      .describe('`task` is executed. `initiative` is planned, and has tasks below it that do the work.'),
    status: taskStatus.describe(
      '`pending`: ready for a worker. `blocked`: see `state.blockers`. `running`: a run works on it. `waiting`: until `state.waiting.until`. These are open; the others are final, except for a retry.',
    ),
    phase: taskPhase.describe(
      'What the next run does: plan an initiative, execute, or verify a result. `closed`: nothing.',
    ),
    title: z.string(),
    priority: z.int().describe('Higher priorities run first.'),
    version: z.int().describe('Rises with every change of the task.'),
    graphRevision: z.int().describe('Rises when tasks or dependencies of the hierarchy are added or removed.'),
    agentRunCount: z.int().describe('Runs of the task itself.'),
    consumedAgentRunCount: z.int().describe('Runs of the task and of all tasks below it; `maxAgentRuns` limits them.'),
    replanCount: z.int().describe('How often the initiative was planned again; `maxReplans` limits it.'),
    createdByRunId: uuid.nullable().describe('The run that created the task.'),
    spec: taskSpecSchema,
    state: stateSchema,
    result: taskResultSchema.nullable().describe('Null until a run has finished with a result.'),
    dedupeKey: z.string().describe('Unique among the open tasks of the organization.'),
    scheduledAt: z.iso.datetime().nullable().describe('The task is blocked until then.'),
    dueAt: z.iso.datetime().nullable(),
    startedAt: z.iso.datetime().nullable().describe('When the first run started.'),
    completedAt: z.iso.datetime().nullable().describe('When the task was completed.'),
    createdAt: z.iso.datetime(),
    updatedAt: z.iso.datetime(),
  })
  .meta({
    id: 'Task',
    example: {
      id: ids.task,
      status: 'running',
      phase: 'execute',
      version: 2,
      graphRevision: 4,
      createdByRunId: null,
      state: { blockers: [], activeRunIds: [ids.run] },
      result: null,
      dedupeKey: ids.task,
      scheduledAt: null,
      completedAt: null,
      updatedAt: times.started,
    },
  });
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
  status: taskStatus,
  phase: taskPhase,
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
  failures: z.custom<NonNullable<Task['state']['failures']> | null>().optional(),
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
    ...(row.failures && row.failures.length > 0 ? { failures: row.failures } : {}),
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
export const taskCallResult = z.object({ task: taskRow });
