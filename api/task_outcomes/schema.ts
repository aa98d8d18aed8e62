import { z } from 'zod';
import { mapping } from '../../engine/mapping.ts';
import { filePath } from '../fields/file_path.ts';
import { taskRef, uuid } from '../fields/ids.ts';
import { timestamp } from '../fields/timestamp.ts';
import { ids } from '../http/openapi/example_values.ts';
import { fileClaims, resultSchema } from '../runs/changes.ts';
import { MAX_VERSION, priority, profileKey, title } from '../tasks/changes.ts';
import { TASK_KINDS } from '../tasks/schema.ts';
import { newTaskSpecSchema, taskSpecPatchSchema } from '../tasks/spec.ts';

// Far above any maxPlanOperations that makes sense; the organization's own limit is kept by the database.
const MOST_OPERATIONS = 1000;

const planKey = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$/, 'must be 1 to 63 letters, digits, dots, hyphens or underscores')
  .describe('Name of the new task within the plan, for other operations.');
const keyOrRef = z.union([planKey, taskRef]).meta({
  id: 'PlannedTask',
  description: 'A task: the key of a new one, or the UUID or identifier of an existing one.',
});

const operationSchema = z.discriminatedUnion('op', [
  z.strictObject({
    op: z.literal('create_task'),
    key: planKey,
    parentKey: planKey
      .optional()
      .describe('Key of the new initiative that the task is below. Default: the initiative that is planned.'),
    kind: z.enum(TASK_KINDS).default('task'),
    title,
    ownerProfileKey: profileKey.optional().describe('Default: the owner of the initiative.'),
    priority: priority.optional(),
    spec: newTaskSpecSchema.optional(),
    dependsOn: z.array(keyOrRef).max(100).optional(),
  }),
  z.strictObject({ op: z.literal('add_dependency'), task: keyOrRef, dependsOn: keyOrRef }),
  z.strictObject({
    op: z.literal('update_task'),
    task: taskRef,
    title: title.optional(),
    priority: priority.optional(),
    spec: taskSpecPatchSchema.optional(),
  }),
  z.strictObject({ op: z.literal('cancel_task'), task: taskRef }),
]);

const evidenceSchema = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('file'), runId: uuid, path: filePath, ...fileClaims }),
  z.strictObject({ kind: z.literal('note'), text: z.string().min(1).max(2000) }),
]);

const [, waitingSchema, needsInputSchema] = resultSchema.options;

const outcomeSchema = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('plan'),
    operations: z.array(operationSchema).max(MOST_OPERATIONS).describe('All are applied, or none.'),
  }),
  z.strictObject({
    kind: z.literal('verification'),
    verdict: z.enum(['passed', 'failed']),
    summary: z.string().min(1).max(10_000),
    evidence: z.array(evidenceSchema).max(100).default([]),
  }),
  waitingSchema,
  needsInputSchema,
  z
    .strictObject({ kind: z.literal('execution'), result: resultSchema })
    .describe('With the service token only: the result with which the worker completes the run.'),
]);

const version = z.int().min(1).max(MAX_VERSION);

/** Body of POST …/tasks/{taskRef}/outcomes. */
export const newOutcomeSchema = z
  .strictObject({
    runId: uuid.describe('The active run of the task.'),
    taskVersion: version.describe('`version` of the task that the outcome is based on.'),
    graphRevision: version.describe('`graphRevision` of the task that the outcome is based on.'),
    idempotencyKey: z
      .string()
      .min(1)
      .max(200)
      .describe('Repeating the call with the same key and body returns the same outcome.'),
    outcome: outcomeSchema,
  })
  .meta({ id: 'NewTaskOutcome' });

/** A staged outcome as it goes out. */
export const outcomeStagedSchema = z
  .object({
    taskId: uuid,
    runId: uuid,
    kind: z.enum(['plan', 'verification', 'waiting', 'needs_input', 'execution']),
    taskVersion: z.int(),
    graphRevision: z.int(),
    idempotencyKey: z.string(),
    status: z.literal('staged').describe('The outcome is applied when the run completes.'),
    createdAt: z.iso.datetime(),
  })
  .meta({ id: 'TaskOutcome', example: { taskId: ids.initiative, kind: 'plan', taskVersion: 2, graphRevision: 1 } });

const outcomeRow = z
  .object({
    task_id: z.string(),
    run_id: z.string(),
    kind: outcomeStagedSchema.shape.kind,
    task_version: z.int(),
    graph_revision: z.int(),
    idempotency_key: z.string(),
    created_at: timestamp,
  })
  .pipe(
    mapping((row) => ({
      taskId: row.task_id,
      runId: row.run_id,
      kind: row.kind,
      taskVersion: row.task_version,
      graphRevision: row.graph_revision,
      idempotencyKey: row.idempotency_key,
      status: 'staged' as const,
      createdAt: row.created_at,
    })),
  );

/** What `app.task_outcome_stage` returns. */
export const outcomeResult = z.object({ outcome: outcomeRow });

export const newOutcomeExample = {
  runId: ids.run,
  taskVersion: 2,
  graphRevision: 1,
  idempotencyKey: 'outcome-of-run-01a21c46',
  outcome: {
    kind: 'plan',
    operations: [
      { op: 'create_task', key: 'sales', title: 'Export the orders of the week', ownerProfileKey: 'growth' },
      {
        op: 'create_task',
        key: 'report',
        title: 'Write the weekly sales report',
        ownerProfileKey: 'growth',
        dependsOn: ['sales'],
      },
    ],
  },
};
