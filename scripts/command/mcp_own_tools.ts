import type { CallToolResult, Tool } from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';
import type { AgentContext } from './agent.ts';
import { MAX_TIMEOUT_S } from './call.ts';
import { contextOfRun, contextText } from './context.ts';
import { CommandError, EXIT } from './errors.ts';
import { type ClientCalls, said, toldAction } from './mcp_calls.ts';
import { actionSchema } from './schemas.ts';
import { integrationOf, integrationsOf } from './tools.ts';

/** A tool of the server itself. */
export type OwnTool = Readonly<{ tool: Tool; run: (args: unknown, signal: AbortSignal) => Promise<CallToolResult> }>;

const MOST_ACTIONS = 200;

function own<S extends z.ZodObject>(
  about: Readonly<{ name: string; description: string; input: S; readOnly?: boolean }>,
  run: (args: z.output<S>, signal: AbortSignal) => Promise<CallToolResult>,
): [string, OwnTool] {
  const { name, description, input, readOnly = true } = about;
  const inputSchema = z.toJSONSchema(input, { io: 'input' }) as Tool['inputSchema'];
  const tool: Tool = { name, description, inputSchema, annotations: { readOnlyHint: readOnly } };
  return [
    name,
    {
      tool,
      async run(args, signal) {
        const found = input.safeParse(args);
        if (found.success) return run(found.data, signal);
        const issues = found.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
        throw new CommandError(EXIT.data, `The arguments are not those of ${name} (${issues.join('; ')})`);
      },
    },
  ];
}

const nothing = z.strictObject({});
const callInput = z.strictObject({
  integration: z.string().describe('The key of the integration.'),
  tool: z.string().describe('The tool as list_integrations names it.'),
  arguments: z.record(z.string(), z.json()).default({}),
  cursor: z.string().optional().describe('nextCursor of the page before.'),
  repeat: z.boolean().optional().describe('Propose a write although an equal action is open or was done.'),
  retryOf: z.uuid().optional().describe('The action that failed and that this is another attempt at.'),
  files: z
    .record(z.string(), z.string())
    .optional()
    .describe('Files that the tool takes: paths on this machine by argument, up to 1 GiB each.'),
  timeoutSeconds: z.int().min(1).max(MAX_TIMEOUT_S).optional().describe('How long the provider may take.'),
});

/** What the command does, as tools by name. */
export function ownTools(context: AgentContext, calls: ClientCalls): ReadonlyMap<string, OwnTool> {
  const { api, home, environment } = context;
  const reader = contextOfRun(environment);
  return new Map([
    own(
      {
        name: 'list_integrations',
        description: 'The integrations that this run may use, with their tools and the arguments of these.',
        input: z.strictObject({ integration: z.string().optional().describe('Only the one with this key.') }),
      },
      async ({ integration }) =>
        said(await (integration === undefined ? integrationsOf(context) : integrationOf(context, integration))),
    ),
    own(
      {
        name: 'call_tool',
        description: 'Calls a tool of an integration. A read has its result, a write becomes an action.',
        input: callInput,
        readOnly: false,
      },
      ({ integration: key, timeoutSeconds, ...call }, signal) =>
        calls.call({
          ...call,
          key,
          timeoutMs: timeoutSeconds === undefined ? undefined : timeoutSeconds * 1000,
          signal,
        }),
    ),
    own(
      {
        name: 'list_actions',
        description: 'The actions that this task or chat has proposed, newest first.',
        input: nothing,
      },
      async () => said(await api.list(actionSchema, `${home}/actions`, {}, MOST_ACTIONS)),
    ),
    own(
      {
        name: 'show_action',
        description: 'An action with its decision and its result.',
        input: z.strictObject({ id: z.uuid() }),
      },
      async ({ id }) => said(toldAction(await api.get(actionSchema, `${home}/actions/${id}`))),
    ),
    own(
      { name: 'list_context', description: 'The documents of the organization’s context.', input: nothing },
      async () => said((await reader.list()).map((file) => `${file.scope}/${file.path}`)),
    ),
    own(
      {
        name: 'read_context',
        description: 'A document of the context.',
        input: z.strictObject({ name: z.string().describe('As list_context names it.') }),
      },
      async ({ name }) => said(await contextText(reader, name)),
    ),
  ]);
}
