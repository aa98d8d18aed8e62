import { z } from 'zod';
import { taskRef, uuid } from '../fields/ids.ts';
import { instant } from '../fields/instant.ts';
import { ids, times } from '../http/openapi/example_values.ts';
import { TASK_KINDS } from './schema.ts';
import { newTaskSpecSchema, taskSpecPatchSchema } from './spec.ts';

// An integer of Postgres.
export const MAX_VERSION = 2_147_483_647;

export const title = z.string().trim().min(1).max(200);
export const priority = z.int().min(-1000).max(1000);
export const profileKey = z
  .string()
  .max(63)
  .regex(/^[a-z0-9]+(?:-[a-z0-9]+)*$/, 'must be a profile key');

/** Body of a task's creation, for owners and agents alike. */
export const newTaskSchema = z
  .strictObject({
    title,
    kind: z.enum(TASK_KINDS).optional().describe('Default `task`. Only initiatives have tasks below them.'),
    parentId: uuid.optional().describe('The initiative that the task belongs to. Default: none, the task is a root.'),
    ownerAgentProfileId: uuid.optional().describe('The profile that works on the task.'),
    ownerProfileKey: profileKey
      .optional()
      .describe(
        'The same profile by its key. Default: the profile of the run that creates the task, otherwise the operator.',
      ),
    priority: priority.optional().describe('Higher priorities run first. Default 0.'),
    spec: newTaskSpecSchema.optional(),
    dependsOn: z
      .array(taskRef)
      .max(100)
      .optional()
      .describe('Prerequisites: tasks that complete before this one starts.'),
    dedupeKey: z
      .string()
      .min(1)
      .max(200)
      .optional()
      .describe('While a task with this key is open, creating another returns that one. Default: the id of the task.'),
    scheduledAt: instant.optional().describe('The task is blocked until then.'),
    dueAt: instant.optional().describe('For people and sorting; nothing happens at that time.'),
    sourceChatId: uuid.optional().describe('The chat that the task comes from.'),
    sourceMessageId: uuid
      .optional()
      .describe('The message that the task comes from; of `sourceChatId` if both are given.'),
  })
  .refine((task) => !(task.ownerAgentProfileId && task.ownerProfileKey), {
    path: ['ownerProfileKey'],
    message: 'give ownerAgentProfileId or ownerProfileKey, not both',
  })
  .meta({ id: 'NewTask' });

/** Body of a task's PATCH: a JSON merge patch with the version it was made from. */
export const taskPatchSchema = z
  .strictObject({
    expectedVersion: z
      .int()
      .min(1)
      .max(MAX_VERSION)
      .describe('`version` of the task that the change is based on. 409 if the task has changed since.'),
    title: title.optional(),
    priority: priority.nullable().optional(),
    spec: taskSpecPatchSchema.optional(),
    ownerAgentProfileId: uuid.optional(),
    ownerProfileKey: profileKey.optional(),
    scheduledAt: instant.nullable().optional(),
    dueAt: instant.nullable().optional(),
  })
  .refine((task) => !(task.ownerAgentProfileId && task.ownerProfileKey), {
    path: ['ownerProfileKey'],
    message: 'give ownerAgentProfileId or ownerProfileKey, not both',
  })
  .meta({ id: 'TaskPatch', description: 'A JSON merge patch (RFC 7396): null restores a default.' });

/** An edge between tasks. */
export const dependencySchema = z
  .object({
    id: uuid,
    taskId: uuid.describe('The task that waits.'),
    dependsOnTaskId: uuid.describe('Its prerequisite.'),
    required: z.boolean().describe('False: the edge is shown in the graph and blocks nothing.'),
  })
  .meta({ id: 'TaskDependency', example: { id: ids.dependency } });

export const newDependencySchema = z
  .strictObject({
    dependsOn: taskRef,
    required: z.boolean().default(true).describe('False: the edge is shown in the graph and blocks nothing.'),
  })
  .meta({ id: 'NewTaskDependency' });

/** Parts of responses that differ from the usual example of a task. */
export const newTaskResponseExample = {
  status: 'blocked',
  phase: 'execute',
  version: 1,
  agentRunCount: 0,
  consumedAgentRunCount: 0,
  state: { blockers: [{ kind: 'dependency', taskId: ids.prerequisite }], activeRunIds: [] },
  startedAt: null,
  updatedAt: times.created,
};

export const newTaskExample = {
  title: 'Write the weekly sales report',
  parentId: ids.initiative,
  ownerProfileKey: 'growth',
  priority: 5,
  spec: {
    objective: 'Summarize sales.csv by region in report.json, with the total number of orders.',
    inputs: [{ kind: 'inline', path: 'sales.csv', text: 'region,orders\nnorth,412\nsouth,388\n' }],
    acceptanceCriteria: [
      {
        kind: 'output_file',
        path: 'report.json',
        checks: [{ kind: 'json_pointer', pointer: '/totals/orders', operator: 'eq', value: 800 }],
      },
    ],
  },
  dependsOn: ['T-11'],
  sourceChatId: ids.chat,
};
