import { z } from 'zod';
import { taskRef, uuid } from '../fields/ids.ts';
import { instant } from '../fields/instant.ts';
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

/** Body of a task's creation (decisions 4), for owners and agents alike. */
export const newTaskSchema = z
  .strictObject({
    title,
    kind: z.enum(TASK_KINDS).optional().describe('Default task. Only initiatives have tasks below them.'),
    parentId: uuid.optional(),
    ownerAgentProfileId: uuid.optional(),
    ownerProfileKey: profileKey
      .optional()
      .describe('Instead of ownerAgentProfileId. A run may leave out both: itself.'),
    priority: priority.optional().describe('Higher runs first. Default 0.'),
    spec: newTaskSpecSchema.optional(),
    dependsOn: z.array(taskRef).max(100).optional().describe('Tasks that have to complete first.'),
    dedupeKey: z
      .string()
      .min(1)
      .max(200)
      .optional()
      .describe('An open task with the same key is answered, and none is made. Default: the id of the task.'),
    scheduledAt: instant.optional().describe('Blocked until then.'),
    dueAt: instant.optional(),
    sourceChatId: uuid.optional().describe('The chat of this organization that it comes from.'),
    sourceMessageId: uuid.optional().describe('The message, of that chat when both are given.'),
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
      .describe('`version` of the task that this change was made from; stale: 409.'),
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
  .meta({ id: 'TaskPatch' });

/** An edge between tasks (decisions 4). */
export const dependencySchema = z
  .object({
    id: z.string(),
    taskId: z.string(),
    dependsOnTaskId: z.string(),
    required: z.boolean(),
  })
  .meta({ id: 'TaskDependency' });

export const newDependencySchema = z
  .strictObject({
    dependsOn: taskRef,
    required: z.boolean().default(true).describe('False: shown in the graph, blocks nothing.'),
  })
  .meta({ id: 'NewTaskDependency' });

export const newTaskExample = {
  title: 'Report on the sales of October',
  ownerProfileKey: 'growth',
  priority: 10,
  spec: {
    objective: 'Sum up sales.csv by region into report.json',
    inputs: [{ kind: 'inline', path: 'sales.csv', text: 'region,amount\nnorth,12.50\n' }],
    acceptanceCriteria: [
      {
        kind: 'output_file',
        path: 'report.json',
        checks: [{ kind: 'json_pointer', pointer: '/total', operator: 'eq', value: '12.50' }],
      },
    ],
  },
};
