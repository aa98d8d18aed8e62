import { open } from 'node:fs/promises';
import { z } from 'zod';
import { issueText } from '../../engine/issue_text.ts';

const MAX_BYTES = 256 * 1024;

/** A file that the command wrote is invalid; the run fails with this message. */
export class ResultError extends Error {
  override name = 'ResultError';
}

const resultSchema = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('completed'), summary: z.string().optional() }),
  z
    .strictObject({
      kind: z.literal('waiting'),
      until: z.string().optional(),
      actionIds: z.array(z.string()).optional(),
      reason: z.string(),
    })
    .refine(({ until, actionIds }) => (until === undefined) !== (actionIds === undefined), {
      error: 'needs exactly one of until and actionIds',
    }),
  z.strictObject({
    kind: z.literal('needs_input'),
    question: z.string(),
    options: z.array(z.string()).optional(),
  }),
  z.strictObject({ kind: z.literal('failed'), code: z.string(), message: z.string(), retryable: z.boolean() }),
]);
export type CommandResult = z.output<typeof resultSchema>;

const planSchema = z.strictObject({ operations: z.array(z.looseObject({ op: z.string() })) });
const verdictSchema = z.strictObject({
  verdict: z.enum(['passed', 'failed']),
  summary: z.string(),
  evidence: z.array(z.looseObject({ kind: z.string() })).optional(),
});
/** The outcome of a plan or verify run; the API validates its content. */
export type Outcome =
  | ({ kind: 'plan' } & z.output<typeof planSchema>)
  | ({ kind: 'verification' } & z.output<typeof verdictSchema>);

const count = z.int().min(0).optional();
const usageSchema = z.strictObject({
  inputTokens: count,
  outputTokens: count,
  toolCalls: count,
  costMinorUnits: count,
});
export type Usage = Readonly<{ inputTokens: number; outputTokens: number; toolCalls: number; costMinorUnits?: number }>;

/** The file as JSON, undefined when there is none. @throws ResultError */
async function readJson(file: string, name: string): Promise<unknown> {
  const handle = await open(file, 'r').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw new ResultError(`${name} cannot be read (${error.code})`);
  });
  if (!handle) return undefined;
  try {
    if ((await handle.stat()).size > MAX_BYTES) throw new ResultError(`${name} is larger than ${MAX_BYTES} bytes`);
    return JSON.parse(await handle.readFile('utf8'));
  } catch (error) {
    if (error instanceof SyntaxError) throw new ResultError(`${name} is not valid JSON: ${error.message}`);
    throw error;
  } finally {
    await handle.close();
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function check<S extends z.ZodType>(schema: S, value: unknown, name: string): z.output<S> {
  const parsed = schema.safeParse(value, { error: issueText });
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  const unknown = issue?.code === 'unrecognized_keys' ? issue.keys.slice(0, 1) : [];
  const field = [...(issue?.path ?? []), ...unknown].join('.');
  throw new ResultError(`${name}: ${field === '' ? 'it' : field} ${issue?.message ?? 'is not valid'}`);
}

/** RESULT_FILE by the schema; without the file the run is completed. @throws ResultError */
export async function readResultFile<S extends z.ZodType>(file: string, schema: S): Promise<z.output<S>> {
  const value = (await readJson(file, 'RESULT_FILE')) ?? {};
  return check(schema, isRecord(value) ? { kind: 'completed', ...value } : value, 'RESULT_FILE');
}

/** The same of a task. @throws ResultError */
export function readResult(file: string): Promise<CommandResult> {
  return readResultFile(file, resultSchema);
}

/** The plan in PLAN_FILE; null without one. @throws ResultError */
export async function readPlan(file: string): Promise<Outcome | null> {
  const value = await readJson(file, 'PLAN_FILE');
  return value === undefined ? null : { kind: 'plan', ...check(planSchema, value, 'PLAN_FILE') };
}

/** The verdict in VERDICT_FILE; null without one. @throws ResultError */
export async function readVerdict(file: string): Promise<Outcome | null> {
  const value = await readJson(file, 'VERDICT_FILE');
  return value === undefined ? null : { kind: 'verification', ...check(verdictSchema, value, 'VERDICT_FILE') };
}

/** The usage in USAGE_FILE; zeros without one. @throws ResultError */
export async function readUsage(file: string): Promise<Usage> {
  const given = check(usageSchema, (await readJson(file, 'USAGE_FILE')) ?? {}, 'USAGE_FILE');
  const { inputTokens = 0, outputTokens = 0, toolCalls = 0, costMinorUnits } = given;
  return { inputTokens, outputTokens, toolCalls, ...(costMinorUnits === undefined ? {} : { costMinorUnits }) };
}
