import { z } from 'zod';
import { acceptanceCriterionSchema } from '../../engine/acceptance/index.ts';
import { CONTEXT_SCOPES } from '../../engine/context/index.ts';
import { filePath, requireLayout } from '../fields/file_path.ts';
import { uuid } from '../fields/ids.ts';

const inlineInput = z.strictObject({
  kind: z.literal('inline'),
  path: filePath,
  text: z.string().max(200_000).describe('The content of the file, stored as UTF-8.'),
  mediaType: z
    .string()
    .max(200)
    .regex(/^[\w.+-]+\/[\w.+-]+$/, 'must be a media type such as text/csv')
    .optional(),
});
const uploadInput = z
  .strictObject({ kind: z.literal('upload'), path: filePath })
  .describe('A file that `PUT …/tasks/{taskRef}/inputs/{path}` stored.');
const artifactInput = z
  .strictObject({
    kind: z.literal('artifact'),
    runId: uuid,
    artifactIndex: z.int().min(0).max(10_000).describe('Position in `output.result.artifacts` of the run, from 0.'),
    path: filePath,
  })
  .describe('A file that another run made.');
const attachmentInput = z
  .strictObject({
    kind: z.literal('attachment'),
    chatId: uuid,
    attachmentId: uuid,
    path: filePath.describe('Where the run finds the file, whatever the attachment is called.'),
  })
  .describe(
    'An attachment of a chat of the organization. It is deleted with the chat, 30 days after the chat was archived; runs that had it list it with `available: false` from then on.',
  );
const contextFileInput = z
  .strictObject({
    kind: z.literal('context_file'),
    path: filePath.describe('`path` in the list of context files. The run finds the file under the same path.'),
  })
  .describe(
    "A document of the published context: the one of the owner profile's department, else the one of the organization's scope. For an owner without a department all scopes are searched, the organization's first. A run gets the revision that is published when it starts.",
  );

/** What a run of the task is given. */
export const taskInputSchema = z
  .discriminatedUnion('kind', [inlineInput, uploadInput, artifactInput, attachmentInput, contextFileInput])
  .meta({
    id: 'TaskInput',
    description:
      'A file for the runs of the task. It is looked up when a run starts, and the run keeps that version. An input that does not exist then, or belongs to another organization, is listed with `available: false` and does not delay the run.',
  });

/** What a run is given beside the inputs of its task: `task.json`, and files below these. */
const GIVEN = {
  taken: ['task.json'],
  folders: ['outputs', 'context', ...CONTEXT_SCOPES.map((scope) => `context/${scope}`)],
};

/** One output may be the matter of several criteria. */
function outputPaths(criteria: readonly Readonly<{ kind: string; path?: unknown }>[]): (string | undefined)[] {
  const seen = new Set<unknown>();
  return criteria.map(({ kind, path }) => {
    if (kind !== 'output_file' || typeof path !== 'string' || seen.has(path)) return undefined;
    seen.add(path);
    return path;
  });
}

const count = (maximum: number) => z.int().min(1).max(maximum);

export const taskBudgetSchema = z.strictObject({
  maxAgentRuns: count(100_000).describe(
    'Most runs of the task and of all tasks below it. Default 10; for initiatives 500.',
  ),
  maxAttemptsPerPhase: count(100).describe('Most starts of one run request. Default 3.'),
  maxReplans: z.int().min(0).max(100).describe('Most replans of an initiative. Default 2.'),
  maxCostMinorUnits: count(1_000_000_000_000)
    .optional()
    .describe(
      'Most cost of all runs of the task and of the tasks below it, in minor units of the currency that workers report in. At the limit no further run starts, and a person is asked. Runs that report no cost do not count: see `state.spend`. Default: no limit.',
    ),
  maxTokens: count(1_000_000_000_000)
    .optional()
    .describe('The same limit for input and output tokens together. Default: no limit.'),
});

const specFields = {
  objective: z.string().max(20_000).describe('What the agent is to achieve.'),
  inputs: z
    .array(taskInputSchema)
    .max(100)
    .superRefine((inputs, context) =>
      requireLayout(
        inputs.map(({ path }) => path),
        context,
        GIVEN,
      ),
    ),
  acceptanceCriteria: z
    .array(acceptanceCriterionSchema)
    .max(50)
    .superRefine((criteria, context) => requireLayout(outputPaths(criteria), context)),
  verification: z.enum(['backend', 'agent']).meta({
    id: 'TaskVerification',
    description:
      'Who verifies the result. `backend`, the default: the acceptance criteria alone. `agent`: once these pass, a run with mode `verify` by another profile than the one that executed the task.',
  }),
  verifierProfileKey: z
    .string()
    .max(63)
    .regex(/^[a-z0-9]+(?:-[a-z0-9]+)*$/, 'must be a profile key')
    .describe(
      'Key of the profile that verifies. Default, also if it names the executor: the operator. 400 if no profile but the executor is left.',
    ),
};

/** `spec` of a task that is created: what is left out has the defaults. */
export const newTaskSpecSchema = z
  .strictObject({
    objective: specFields.objective.optional(),
    inputs: specFields.inputs.optional(),
    acceptanceCriteria: specFields.acceptanceCriteria.optional(),
    verification: specFields.verification.optional(),
    verifierProfileKey: specFields.verifierProfileKey.optional(),
    budget: taskBudgetSchema.partial().optional(),
  })
  .meta({ id: 'NewTaskSpec', description: 'What the agent is to do, with what, and how the result is checked.' });

/** `spec` in a merge patch: null brings a default back. */
export const taskSpecPatchSchema = z
  .strictObject({
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
  })
  .meta({ id: 'TaskSpecPatch', description: 'Part of a JSON merge patch (RFC 7396): null restores a default.' });

/** `spec` as it goes out. */
export const taskSpecSchema = z
  .looseObject({
    objective: z.string(),
    inputs: z
      .array(z.looseObject({ kind: z.string(), path: z.string() }))
      .describe('As in `TaskInput`. The task graph leaves out `text`.'),
    acceptanceCriteria: z.array(z.looseObject({ kind: z.string() })).describe('As in `AcceptanceCriterion`.'),
    verification: specFields.verification.optional(),
    verifierProfileKey: z.string().optional(),
    budget: z.looseObject({
      maxAgentRuns: z.int(),
      maxAttemptsPerPhase: z.int(),
      maxReplans: z.int(),
      maxCostMinorUnits: z.int().optional(),
      maxTokens: z.int().optional(),
    }),
  })
  .meta({
    id: 'TaskSpec',
    description: 'What the task was created with, completed by the defaults.',
    example: {
      objective: 'Summarize sales.csv by region in report.json, with the total number of orders.',
      inputs: [{ kind: 'upload', path: 'sales.csv' }],
      acceptanceCriteria: [
        {
          kind: 'output_file',
          path: 'report.json',
          checks: [{ kind: 'json_pointer', pointer: '/totals/orders', operator: 'eq', value: 800 }],
        },
      ],
      budget: { maxAgentRuns: 10, maxAttemptsPerPhase: 3, maxReplans: 2 },
    },
  });
