import { z } from 'zod';
import { acceptanceCriterionSchema, isOutputPath } from '../../engine/acceptance/index.ts';
import { uuid } from '../fields/ids.ts';

/** A relative path with forward slashes, as inputs and outputs have. */
export const filePath = z
  .string()
  .min(1)
  .max(1000)
  .refine(
    isOutputPath,
    'must be a relative path of at most 1000 bytes without empty, . or .. parts, backslashes or control characters',
  );

const inlineInput = z.strictObject({
  kind: z.literal('inline'),
  path: filePath,
  text: z.string().max(200_000).describe('The content itself, as UTF-8.'),
  mediaType: z
    .string()
    .max(200)
    .regex(/^[\w.+-]+\/[\w.+-]+$/, 'must be a media type such as text/csv')
    .optional(),
});
const uploadInput = z.strictObject({ kind: z.literal('upload'), path: filePath });
const artifactInput = z.strictObject({
  kind: z.literal('artifact'),
  runId: uuid,
  artifactIndex: z.int().min(0).max(10_000),
  path: filePath,
});
const attachmentInput = z
  .strictObject({
    kind: z.literal('attachment'),
    chatId: uuid,
    attachmentId: uuid,
    path: filePath.describe('Where the run finds it; the file name of the attachment does not matter.'),
  })
  .describe(
    'An attachment of a chat of the organization. When the chat is removed, 30 days after it was archived, its attachments go too: runs that were given one list it with `available: false` from then on.',
  );
const contextFileInput = z
  .strictObject({
    kind: z.literal('context_file'),
    path: filePath.describe(
      'Of the document in its scope, as the list of context files shows it; the run finds it under the same path.',
    ),
  })
  .describe(
    "A document of the published context: that of the owner profile's department if it has one with this path, else that of the organization's scope. For an owner of no department all scopes count, the organization's first. A run has the revision that was published when it started.",
  );

/** What a run of the task is given (decisions 4). */
export const taskInputSchema = z
  .discriminatedUnion('kind', [inlineInput, uploadInput, artifactInput, attachmentInput, contextFileInput])
  .describe(
    'Looked up when a run starts, and fixed for it: what is not there then (or is of another organization) is listed with `available: false`, and does not hold up the run.',
  );

const count = (maximum: number) => z.int().min(1).max(maximum);

export const taskBudgetSchema = z.strictObject({
  maxAgentRuns: count(100_000).describe('Runs of the task, or of all tasks below an initiative. 10; initiatives 500.'),
  maxAttemptsPerPhase: count(100).describe('Starts of one run request. 3.'),
  maxReplans: z.int().min(0).max(100).describe('Replans of an initiative. 2.'),
  maxCostMinorUnits: count(1_000_000_000_000)
    .optional()
    .describe(
      'Cost of all runs of the task and those below it, as their usage reports it; reached, nothing more is started and a person is asked. Runs that do not report a cost count for nothing here: see `state.spend`. No limit.',
    ),
  maxTokens: count(1_000_000_000_000).optional().describe('The same for their input and output tokens. No limit.'),
});

const specFields = {
  objective: z.string().max(20_000),
  inputs: z.array(taskInputSchema).max(100),
  acceptanceCriteria: z.array(acceptanceCriterionSchema).max(50),
  verification: z
    .enum(['backend', 'agent'])
    .describe(
      'Who judges the result. `backend` (default): the acceptance criteria alone. `agent`: when they pass, a run of mode verify of another profile than the one that made it.',
    ),
  verifierProfileKey: z
    .string()
    .max(63)
    .regex(/^[a-z0-9]+(?:-[a-z0-9]+)*$/, 'must be a profile key')
    .describe(
      'The profile that verifies. Left out, or the executor itself: the operator. 400 where nobody but the executor is left.',
    ),
};

/** `spec` of a task that is created: what is left out has the defaults. */
export const newTaskSpecSchema = z.strictObject({
  objective: specFields.objective.optional(),
  inputs: specFields.inputs.optional(),
  acceptanceCriteria: specFields.acceptanceCriteria.optional(),
  verification: specFields.verification.optional(),
  verifierProfileKey: specFields.verifierProfileKey.optional(),
  budget: taskBudgetSchema.partial().optional(),
});

/** `spec` in a merge patch: null brings a default back. */
export const taskSpecPatchSchema = z.strictObject({
  objective: specFields.objective.nullable().optional(),
  inputs: specFields.inputs.nullable().optional(),
  acceptanceCriteria: specFields.acceptanceCriteria.nullable().optional(),
  verification: specFields.verification.nullable().optional(),
  verifierProfileKey: specFields.verifierProfileKey.nullable().optional(),
  budget: z
    .strictObject({
      maxAgentRuns: taskBudgetSchema.shape.maxAgentRuns.nullable().optional(),
      maxAttemptsPerPhase: taskBudgetSchema.shape.maxAttemptsPerPhase.nullable().optional(),
      maxReplans: taskBudgetSchema.shape.maxReplans.nullable().optional(),
      maxCostMinorUnits: taskBudgetSchema.shape.maxCostMinorUnits.nullable(),
      maxTokens: taskBudgetSchema.shape.maxTokens.nullable(),
    })
    .nullable()
    .optional(),
});

/** `spec` as it goes out. */
export const taskSpecSchema = z
  .looseObject({
    objective: z.string(),
    inputs: z.array(z.looseObject({ kind: z.string(), path: z.string() })),
    acceptanceCriteria: z.array(z.looseObject({ kind: z.string() })),
    budget: z.looseObject({
      maxAgentRuns: z.int(),
      maxAttemptsPerPhase: z.int(),
      maxReplans: z.int(),
      maxCostMinorUnits: z.int().optional(),
      maxTokens: z.int().optional(),
    }),
  })
  .meta({ id: 'TaskSpec' });
