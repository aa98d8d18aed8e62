import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { printAction } from './action_text.ts';
import type { AgentContext } from './agent.ts';
import { saveFiles } from './call_downloads.ts';
import { storeFiles } from './call_files.ts';
import { CommandError, EXIT, type Exit, usageError } from './errors.ts';
import { type Values, wholeNumber } from './options.ts';
import { isUuid } from './references.ts';
import { type Action, type Execution, executionSchema } from './schemas.ts';
import { argumentsOf, integrationOf, typesOf } from './tools.ts';

export const MAX_TIMEOUT_S = 60;

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

/** `name=value` → both; a name may not be empty. @throws CommandError */
function pairOf(option: string, given: string): [name: string, value: string] {
  const at = given.indexOf('=');
  if (at > 0) return [given.slice(0, at), given.slice(at + 1)];
  throw usageError(`--${option} takes NAME=VALUE, not ${JSON.stringify(given)}`);
}

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

/** Where a call goes. The same name and call again has the same result, whatever was lost. */
export type CallPlace = Readonly<{ key: string; invocationId: string; signal?: AbortSignal | undefined }>;

/** Calls a tool through the gateway. @throws CommandError; the reason of the signal */
export function execute(
  { capabilities }: Pick<AgentContext, 'capabilities'>,
  { key, invocationId, signal }: CallPlace,
  call: ToolCall,
): Promise<Execution> {
  const path = `/invocations/${invocationId}/execute`;
  return capabilities.call(key, (gateway) => gateway.post(executionSchema, path, call), { signal });
}

/** A result whose files are saved, with the path of each. */
export function withPaths(execution: Execution, saved: readonly string[]): Execution {
  if (execution.kind !== 'result' || saved.length === 0) return execution;
  const files = execution.files.map((file, index) => ({ ...file, path: saved[index] }));
  return { ...execution, files };
}

/** What an agent can do about an action that is not over. */
export function waitingText({ id }: Pick<Action, 'id'>): string {
  return `nothing is done yet; a run that needs it ends by {"kind": "waiting", "reason": "…", "actionIds": ["${id}"]}`;
}

/** How a command ends that is about an action in this state, where it is over. */
export const OVER: Readonly<Record<string, Exit>> = {
  succeeded: EXIT.done,
  failed: EXIT.failed,
  rejected: EXIT.failed,
  expired: EXIT.failed,
  cancelled: EXIT.failed,
  not_executed: EXIT.failed,
};

export const isOver = ({ status }: Pick<Action, 'status'>): boolean => OVER[status] !== undefined;

/** How long the provider may take, where that is said. @throws CommandError */
export function timeoutMsOf({ timeout }: Values): number | undefined {
  const seconds = wholeNumber('timeout', timeout, { minimum: 1, maximum: MAX_TIMEOUT_S });
  return seconds === undefined ? undefined : seconds * 1000;
}

/** Calls a tool: prints what it says, or the action that it became. */
export async function call(context: AgentContext, [key = '', tool = '']: readonly string[]): Promise<Exit> {
  const { output, values } = context;
  const { invocation: invocationId = randomUUID(), cursor, repeat, 'retry-of': retryOf } = values;
  if (!isUuid(invocationId)) throw usageError('--invocation takes a UUID');
  const timeoutMs = timeoutMsOf(values);
  const whole = values.arguments === undefined ? {} : parsedArguments(values.arguments);
  const args = { ...whole, ...(await typedArguments(context, key, tool)) };
  const given = (values.file ?? []).map((one) => pairOf('file', one));
  const files = await storeFiles(context, { key, invocationId }, given);
  const asked = { tool, arguments: args, cursor, timeoutMs, repeat, retryOf, ...files };
  const execution = await execute(context, { key, invocationId }, asked);
  const saved =
    execution.kind === 'result' && values.to !== undefined
      ? await saveFiles(context, { key, invocationId, files: execution.files, folder: values.to })
      : [];
  if (output.json) output.value(withPaths(execution, saved));
  if (execution.kind === 'result') {
    if (output.json) return EXIT.done;
    output.value(execution.data);
    for (const [index, { name, sizeBytes }] of execution.files.entries()) {
      output.progress(`file ${name} (${sizeBytes} bytes): ${saved[index] ?? '--to FOLDER saves it'}`);
    }
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
