import { z } from 'zod';
import { call, type Queries } from '../../engine/db/call.ts';
import { uuid } from '../fields/ids.ts';
import { timestamp } from '../fields/timestamp.ts';
import { ids } from '../http/openapi/example_values.ts';
import { TASK_KINDS, taskError, taskPhase, taskStatus } from './schema.ts';

const ACTORS = ['person', 'platform_operator', 'worker', 'time', 'backend', 'task'] as const;
type Actor = (typeof ACTORS)[number];

/** A cause as `app.task_causes` writes it, but for its instants. */
const causeFields = {
  taskId: uuid.optional().describe('The prerequisite.'),
  originTaskId: uuid.optional().describe('The task whose failure is the reason; this task itself if it failed.'),
  open: z.int().optional().describe('Number of open tasks below.'),
  inboxItemId: uuid.optional().describe('The item to decide about.'),
  actionId: uuid.optional(),
  title: z.string().optional().describe('Title of that item.'),
  agentProfileId: uuid.optional().describe('The owner or verifier profile.'),
  key: z.string().optional().describe('Key of that profile.'),
  status: z.string().optional().describe('Status of that profile, or of the action.'),
  runId: uuid.optional(),
  reason: z
    .string()
    .optional()
    .describe('With `waiting`: as its run said. With `profile`: `verifier` if the verifier is missing.'),
  attempt: z.int().optional().describe('Number of the next attempt.'),
  held: z.int().optional().describe('Claims and runs that use capacity now.'),
  capacity: z.int().optional().describe('Most claims and runs at once.'),
  budgets: z
    .array(
      z.object({
        taskId: uuid,
        identifier: z.string(),
        budget: z.string().describe('Its name in `spec.budget`.'),
        used: z.int(),
        allowed: z.int(),
      }),
    )
    .optional()
    .describe('Those that are used up, of this task or above it.'),
  error: taskError.optional(),
};
const KINDS = {
  dependency: 'task',
  children: 'task',
  schedule: 'time',
  human: 'person',
  action: 'person',
  budget: 'person',
  profile: 'person',
  waiting: 'time',
  backoff: 'time',
  onboarding: 'person',
  stopped: 'person',
  suspended: 'platform_operator',
  organization_capacity: 'worker',
  profile_capacity: 'worker',
  worker: 'worker',
  claimed: 'worker',
  running: 'worker',
  dispatch: 'backend',
  failed: 'person',
  cancelled: 'person',
} as const satisfies Record<string, Actor>;
const KIND_NAMES = Object.keys(KINDS) as [keyof typeof KINDS, ...(keyof typeof KINDS)[]];

const causeSchema = z
  .object({
    kind: z
      .enum(KIND_NAMES)
      .describe(
        'A blocker of the task (`dependency`, `children`, `schedule`, `human`, `action`, `budget`, `profile`); or its run request: `backoff` after a failure, held by the `onboarding`, dispatch `stopped`, organization `suspended`, no free `organization_capacity` or `profile_capacity`, ready for a `worker`, `claimed`, `running`, or due in the backend (`dispatch`). `waiting`: as its run asked. `failed`, `cancelled`: it is over.',
      ),
    actor: z
      .enum(ACTORS)
      .describe(
        'What resolves the cause: a person (with an answer, a decision, a profile, a budget, a retry, by resuming dispatch), a platform operator, a worker, time, the backend, or another task here.',
      ),
    message: z.string().describe('The cause in words.'),
    until: z.iso.datetime().optional(),
    since: z.iso.datetime().optional(),
    ...causeFields,
  })
  .meta({
    id: 'TaskCause',
    description: 'Why a task is not running. `kind` says which fields it has.',
    example: {
      kind: 'human',
      actor: 'person',
      message: 'T-12 waits for an answer in the inbox: Should the report count returns as negative sales?',
      inboxItemId: ids.inboxItem,
      title: 'Should the report count returns as negative sales?',
    },
  });
type Cause = z.output<typeof causeSchema>;

const nodeFields = {
  id: uuid,
  identifier: z.string(),
  title: z.string(),
  kind: z.enum(TASK_KINDS),
  status: taskStatus,
  phase: taskPhase,
  distance: z.int().describe('Steps from the task that was asked for, which has 0.'),
  viaTaskId: uuid.nullable().describe('The task that waits for this one, on the shortest path.'),
};
const nodeSchema = z.object({ ...nodeFields, causes: z.array(causeSchema) }).meta({
  id: 'ExplainedTask',
  example: { id: ids.task, status: 'blocked', phase: 'execute', distance: 0, viaTaskId: null },
});
type Node = z.output<typeof nodeSchema>;

/** Why a task is not running. */
export const taskExplanationSchema = z
  .object({
    taskId: uuid,
    identifier: z.string(),
    status: taskStatus,
    phase: taskPhase,
    summary: z.string().describe('In one sentence.'),
    causes: z.array(causeSchema).describe('Causes of the task itself. Empty if it is completed.'),
    rootCauses: z
      .array(z.object({ task: z.object({ id: uuid, identifier: z.string(), title: z.string() }), cause: causeSchema }))
      .describe('The causes that are not another task, of this task and of all tasks that it waits for.'),
    tasks: z
      .array(nodeSchema)
      .describe('The task and all tasks that it waits for, directly or through others, nearest first.'),
    truncated: z.boolean().describe('True if there are more than 100 tasks.'),
  })
  .meta({
    id: 'TaskExplanation',
    example: {
      status: 'blocked',
      phase: 'execute',
      summary: 'T-12 waits for an answer in the inbox: Should the report count returns as negative sales?.',
      rootCauses: [
        {
          task: { id: ids.task, identifier: 'T-12', title: 'Write the weekly sales report' },
          cause: {
            kind: 'human',
            actor: 'person',
            message: 'T-12 waits for an answer in the inbox: Should the report count returns as negative sales?',
            inboxItemId: ids.inboxItem,
            title: 'Should the report count returns as negative sales?',
          },
        },
      ],
      truncated: false,
    },
  });
type Explanation = z.output<typeof taskExplanationSchema>;

const causeRow = z.object({
  kind: z.enum(KIND_NAMES),
  until: timestamp.optional(),
  since: timestamp.optional(),
  ...causeFields,
});
type CauseRow = z.output<typeof causeRow>;
const explainResult = z.object({
  tasks: z.array(z.object({ ...nodeFields, causes: z.array(causeRow) })).min(1),
  truncated: z.boolean(),
});

function budgets(cause: CauseRow): string {
  return (cause.budgets ?? [])
    .map((one) => `${one.budget} of ${one.identifier}: ${one.used} of ${one.allowed}`)
    .join(', ');
}

/** What a cause says of its task, after the task's name. */
function predicate(cause: CauseRow, names: ReadonlyMap<string, string>): string {
  const named = (id: string | undefined) => names.get(id ?? '') ?? 'another task';
  const by = (id: string | undefined) => (id === undefined ? 'by a person' : `by the failure of ${named(id)}`);
  switch (cause.kind) {
    case 'dependency':
      return `waits for ${named(cause.taskId)}`;
    case 'children':
      return cause.open ? `waits for ${cause.open} open below it` : 'has no tasks below it yet';
    case 'schedule':
      return `is scheduled for ${cause.until}`;
    case 'human':
      return `waits for an answer in the inbox: ${cause.title}`;
    case 'action':
      return cause.inboxItemId
        ? `waits until an owner decides about an action (${cause.status}): ${cause.title}`
        : `waits for an action (${cause.status}): ${cause.title}`;
    case 'budget':
      return `has used a budget up (${budgets(cause)}): raise it or cancel`;
    case 'profile':
      if (cause.reason === undefined) return `belongs to the disabled profile ${cause.key}`;
      return cause.key ? `is to be verified by the disabled profile ${cause.key}` : 'has nobody who may verify it';
    case 'waiting':
      return `waits until ${cause.until}, as its run has asked for${cause.reason ? `: ${cause.reason}` : ''}`;
    case 'backoff':
      return `is tried again at ${cause.until}, as attempt ${cause.attempt}${cause.error ? `, after: ${cause.error.message}` : ''}`;
    case 'onboarding':
      return 'is held back: the organization is not onboarded yet';
    case 'stopped':
      return `is held back: work dispatch is stopped since ${cause.since}`;
    case 'suspended':
      return 'is held back: the organization is suspended';
    case 'organization_capacity':
      return `is ready, but ${cause.held} of ${cause.capacity} runs of the organization are taken`;
    case 'profile_capacity':
      return `is ready, but ${cause.held} of ${cause.capacity} runs of the profile ${cause.key} are taken`;
    case 'worker':
      return `is ready since ${cause.since}, and no worker has taken it`;
    case 'claimed':
      return `was handed to a worker, which has until ${cause.until} to start it`;
    case 'running':
      return `is running since ${cause.since}`;
    case 'dispatch':
      return 'is about to be moved on by the backend';
    case 'failed':
      return cause.error ? `has failed: ${cause.error.message}` : `has failed ${by(cause.originTaskId)}`;
    case 'cancelled':
      return `was cancelled ${by(cause.originTaskId)}`;
  }
}

/** A cause that is another task is no end of the chain. */
function isRoot(node: Node, cause: Cause): boolean {
  if (cause.originTaskId !== undefined) return cause.originTaskId === node.id;
  return cause.actor !== 'task' || (cause.kind === 'children' && !cause.open);
}

function actorOf(cause: CauseRow, distance: number): Actor {
  // What waits for a cancelled task waits for ever, unless a person acts.
  if (cause.kind === 'cancelled' && distance > 0) return 'person';
  // An action that nobody has to decide about is being executed.
  if (cause.kind === 'action' && !cause.inboxItemId) return 'backend';
  return KINDS[cause.kind];
}

function toExplanation({ tasks, truncated }: z.output<typeof explainResult>): Explanation {
  const names = new Map(tasks.map((task) => [task.id, task.identifier]));
  const nodes = tasks.map((task): Node => {
    const described = (cause: CauseRow): Cause => ({
      ...cause,
      actor: actorOf(cause, task.distance),
      message: `${task.identifier} ${predicate(cause, names)}`,
    });
    return { ...task, causes: task.causes.map(described) };
  });
  const rootCauses = nodes.flatMap((node) =>
    node.causes
      .filter((cause) => isRoot(node, cause))
      .map((cause) => ({ task: { id: node.id, identifier: node.identifier, title: node.title }, cause })),
  );
  const [focus] = nodes as [Node];
  const [first, ...rest] = rootCauses;
  const more = rest.length === 0 ? '' : ` (and ${rest.length} more)`;
  return {
    taskId: focus.id,
    identifier: focus.identifier,
    status: focus.status,
    phase: focus.phase,
    summary: first ? `${first.cause.message}${more}.` : `${focus.identifier} is ${focus.status}.`,
    causes: focus.causes,
    rootCauses,
    tasks: nodes,
    truncated,
  };
}

/**
 * Why a task is not running: its causes and those of all that it waits for, from the rows and the function that dispatch.
 * @throws Problem 404 `task_not_found`
 */
export async function explainTask(db: Queries, organizationId: string, ref: string): Promise<Explanation> {
  const args = { organizationId, taskRef: ref };
  return toExplanation(await call(db, 'task_explain', args, explainResult));
}

export const EXPLAIN_DESCRIPTION =
  'Reads what dispatch reads: blockers, run request and free capacity. Tasks that it waits for are followed to the root causes: an open question, a used-up budget, a disabled profile, stopped dispatch, a failure, a time, or no worker.';
