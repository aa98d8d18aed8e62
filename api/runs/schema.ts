import { sql } from 'slonik';
import { z } from 'zod';
import { mapping } from '../../engine/mapping.ts';
import { uuid } from '../fields/ids.ts';
import { nullableTimestamp, timestamp } from '../fields/timestamp.ts';
import { ids } from '../http/openapi/example_values.ts';
import { keyColumns } from '../http/pagination.ts';
import { taskResultSchema } from '../tasks/schema.ts';

export const RUN_KINDS = ['task', 'chat'] as const;
export const RUN_MODES = ['plan', 'execute', 'verify'] as const;
export const runMode = z.enum(RUN_MODES).meta({ id: 'RunMode' });
export const RUN_STATUSES = ['starting', 'running', 'succeeded', 'failed', 'cancelled', 'expired'] as const;
export const INPUT_ROLES = ['instructions', 'input'] as const;
export const LOG_STATES = ['not_recorded', 'recording', 'complete', 'truncated'] as const;

export const runErrorSchema = z
  .object({
    code: z.string(),
    message: z.string(),
    retryable: z.boolean().describe('True: the task is tried again while attempts are left.'),
  })
  .meta({ id: 'RunError' });

const profileSchema = z
  .object({
    id: uuid,
    key: z.string(),
    name: z.string(),
    kind: z.string(),
    department: z.string().nullable(),
    status: z.string(),
  })
  .meta({
    id: 'RunAgentProfile',
    example: {
      id: ids.growthProfile,
      key: 'growth',
      name: 'Growth',
      kind: 'department',
      department: 'growth',
      status: 'enabled',
    },
  });

export const runSchema = z
  .object({
    id: uuid,
    taskId: uuid,
    agentProfile: profileSchema,
    attempt: z.int().describe('Number of the attempt, counted by run request from 1.'),
    mode: runMode.describe('The phase of the task that the run works on.'),
    status: z
      .enum(RUN_STATUSES)
      .describe('`starting` and `running` are active; the others are final. `expired`: the worker lost its lease.'),
    logState: z.enum(LOG_STATES).describe('`truncated`: the log reached 10,000 entries.'),
    model: z.string().describe('As reported by the worker; before that, the model that the profile names.'),
    output: z
      .object({ kind: z.literal('task_result'), result: taskResultSchema })
      .nullable()
      .describe(
        'The result that the worker completed the run with. Null while the run is active, and if it ended otherwise.',
      ),
    error: runErrorSchema.nullable(),
    usage: z
      .object({
        inputTokens: z.int(),
        outputTokens: z.int(),
        toolCalls: z.int(),
        costMinorUnits: z.int().describe('In minor units of the currency that workers report in.'),
        costKnown: z.boolean().describe('False: the worker reported no cost, and `costMinorUnits` is meaningless.'),
      })
      .describe('As reported by the worker; zeros while the run is active.'),
    startedAt: z.iso.datetime(),
    finishedAt: z.iso.datetime().nullable(),
    createdAt: z.iso.datetime(),
    updatedAt: z.iso.datetime(),
  })
  .meta({
    id: 'Run',
    example: { id: ids.run, mode: 'execute', status: 'succeeded', logState: 'complete', error: null },
  });
export type Run = z.output<typeof runSchema>;

const runColumns = z.object({
  id: z.string(),
  task_id: z.string(),
  agent_profile: profileSchema,
  attempt: z.int(),
  mode: runMode,
  status: z.enum(RUN_STATUSES),
  log_state: z.enum(LOG_STATES),
  model: z.string(),
  // Written by our transitions alone, in the shape that goes out.
  output: z.custom<Run['output']>(),
  error: z.custom<Run['error']>(),
  input_tokens: z.int(),
  output_tokens: z.int(),
  tool_calls: z.int(),
  cost_minor_units: z.int(),
  cost_known: z.boolean(),
  started_at: timestamp,
  finished_at: nullableTimestamp,
  created_at: timestamp,
  updated_at: timestamp,
});

function toRun(row: z.output<typeof runColumns>): Run {
  return {
    id: row.id,
    taskId: row.task_id,
    agentProfile: row.agent_profile,
    attempt: row.attempt,
    mode: row.mode,
    status: row.status,
    logState: row.log_state,
    model: row.model,
    output: row.output,
    error: row.error,
    usage: {
      inputTokens: row.input_tokens,
      outputTokens: row.output_tokens,
      toolCalls: row.tool_calls,
      costMinorUnits: row.cost_minor_units,
      costKnown: row.cost_known,
    },
    startedAt: row.started_at,
    finishedAt: row.finished_at,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}

export const runRow = runColumns.pipe(mapping(toRun));
export const runPageRow = runColumns.extend(keyColumns).pipe(
  mapping((row) => ({
    cursor_key: row.cursor_key,
    cursor_id: row.cursor_id,
    cursor_rows: row.cursor_rows,
    run: toRun(row),
  })),
);

/** The columns that both need; `u` is the run, `p` its profile. */
export const runSelect = sql.fragment`
  u.id, u.task_id, jsonb_build_object('id', p.id, 'key', p.key, 'name', p.name, 'kind', p.kind,
    'department', p.department, 'status', p.status) as agent_profile,
  u.attempt, u.mode, u.status, u.log_state, coalesce(u.model, p.config #>> '{runtime,model}', '') as model,
  u.output, u.error, u.input_tokens, u.output_tokens, u.tool_calls, u.cost_minor_units, u.cost_known,
  u.started_at, u.finished_at, u.created_at, u.updated_at`;
