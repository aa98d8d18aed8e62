import { createHash, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { printAction } from './action_text.ts';
import type { AgentContext } from './agent.ts';
import { CommandError, EXIT, type Exit, usageError } from './errors.ts';
import { wholeNumber } from './options.ts';
import { isUuid } from './references.ts';
import { type Action, type Execution, executionSchema } from './schemas.ts';
import { argumentsOf, integrationOf, typesOf } from './tools.ts';

const MAX_TIMEOUT_S = 60;

/** A call of a tool, apart from where it is. */
export type ToolCall = Readonly<{
  tool: string;
  arguments: Readonly<Record<string, z.core.util.JSONType>>;
  cursor?: string | undefined;
  timeoutMs?: number | undefined;
  repeat?: boolean | undefined;
  retryOf?: string | undefined;
  files?: Readonly<Record<string, string>>;
}>;

const argumentsSchema = z.record(z.string(), z.json());
type Arguments = z.output<typeof argumentsSchema>;

/** @throws CommandError */
function parsedArguments(given: string): Arguments {
  const text = given === '-' ? readFileSync(0, 'utf8') : given;
  try {
    return argumentsSchema.parse(JSON.parse(text));
  } catch {
    throw new CommandError(EXIT.data, 'the arguments are no JSON object, such as {"limit": 5}');
  }
}

/** `name=value` → both; a name may not be empty. @throws CommandError */
function pairOf(option: string, given: string): [name: string, value: string] {
  const at = given.indexOf('=');
  if (at > 0) return [given.slice(0, at), given.slice(at + 1)];
  throw usageError(`--${option} takes NAME=VALUE, not ${JSON.stringify(given)}`);
}

/** A text, unless the tool takes something else by this name: then JSON. */
function typedValue(text: string, types: readonly string[]): z.core.util.JSONType {
  if (types.includes('string')) return text;
  try {
    return z.json().parse(JSON.parse(text));
  } catch {
    return text;
  }
}

async function typedArguments(context: AgentContext, key: string, tool: string): Promise<Arguments> {
  const given = context.values.arg ?? [];
  if (given.length === 0) return {};
  const { capabilities } = await integrationOf(context, key);
  const known = capabilities.find((one) => one.tool === tool);
  const schemas = known ? argumentsOf(known) : undefined;
  return Object.fromEntries(
    given.map((one) => {
      const [name, text] = pairOf('arg', one);
      return [name, typedValue(text, typesOf(schemas?.get(name) ?? { type: 'string' }))];
    }),
  );
}

/** The same bytes for the same argument of the same call are the same file, so that a repeat is one. */
function fileIdOf(invocationId: string, argument: string, bytes: Uint8Array): string {
  const digest = createHash('sha256').update(`${invocationId} ${argument} `).update(bytes).digest('hex');
  const [a, b, c, d, e] = [
    digest.slice(0, 8),
    digest.slice(8, 12),
    digest.slice(13, 16),
    digest.slice(17, 20),
    digest.slice(20, 32),
  ];
  return `${a}-${b}-8${c}-8${d}-${e}`;
}

/** Stores what the call sends along. Returns the ids by argument. @throws CommandError */
async function storeFiles(
  { capabilities, values }: AgentContext,
  key: string,
  invocationId: string,
): Promise<Pick<ToolCall, 'files'>> {
  const files: Record<string, string> = {};
  for (const given of values.file ?? []) {
    const [argument, file] = pairOf('file', given);
    const bytes = await readFile(file).catch((error: NodeJS.ErrnoException) => {
      throw new CommandError(EXIT.notFound, `${file} cannot be read (${error.code})`);
    });
    const fileId = fileIdOf(invocationId, argument, bytes);
    const at = `/invocations/${invocationId}/files/${fileId}?${new URLSearchParams({ name: path.basename(file) })}`;
    await capabilities.call(key, (gateway) => gateway.put(z.unknown(), at, bytes));
    files[argument] = fileId;
  }
  return Object.keys(files).length > 0 ? { files } : {};
}

/** Calls a tool through the gateway. The same id and call again has the same result, whatever was lost. @throws CommandError */
export function execute(
  { capabilities }: Pick<AgentContext, 'capabilities'>,
  key: string,
  call: ToolCall,
  invocationId: string = randomUUID(),
): Promise<Execution> {
  return capabilities.call(key, (gateway) =>
    gateway.post(executionSchema, `/invocations/${invocationId}/execute`, call),
  );
}

/** What an agent can do about an action that is not over. */
export function waitingText({ id }: Pick<Action, 'id'>): string {
  return `nothing is done yet; a run that needs it ends by {"kind": "waiting", "reason": "…", "actionIds": ["${id}"]}`;
}

const OVER: Readonly<Record<string, Exit>> = {
  succeeded: EXIT.done,
  failed: EXIT.failed,
  rejected: EXIT.failed,
  expired: EXIT.failed,
  cancelled: EXIT.failed,
  not_executed: EXIT.failed,
};

export const isOver = ({ status }: Pick<Action, 'status'>): boolean => OVER[status] !== undefined;

/** Calls a tool: prints what it says, or the action that it became. */
export async function call(context: AgentContext, [key = '', tool = '']: readonly string[]): Promise<Exit> {
  const { output, values } = context;
  const { invocation: invocationId = randomUUID(), cursor, repeat, 'retry-of': retryOf } = values;
  if (!isUuid(invocationId)) throw usageError('--invocation takes a UUID');
  const seconds = wholeNumber('timeout', values.timeout, { minimum: 1, maximum: MAX_TIMEOUT_S });
  const given = values.arguments === undefined ? {} : parsedArguments(values.arguments);
  const args = { ...given, ...(await typedArguments(context, key, tool)) };
  const files = await storeFiles(context, key, invocationId);
  const timeoutMs = seconds === undefined ? undefined : seconds * 1000;
  const asked = { tool, arguments: args, cursor, timeoutMs, repeat, retryOf, ...files };
  const execution = await execute(context, key, asked, invocationId);
  if (output.json) output.value(execution);
  if (execution.kind === 'result') {
    if (output.json) return EXIT.done;
    output.value(execution.data);
    for (const { fileId, name, sizeBytes } of execution.files)
      output.progress(`file ${name} (${sizeBytes} bytes): ${fileId}`);
    if (execution.nextCursor !== null) output.progress(`there is more: --cursor ${execution.nextCursor}`);
    return EXIT.done;
  }
  const { action } = execution;
  if (!output.json) {
    printAction(output, action, { decides: false });
    if (!isOver(action)) output.progress(waitingText(action));
  }
  return OVER[action.status] ?? EXIT.proposed;
}
