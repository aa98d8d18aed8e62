import { once } from 'node:events';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { CallToolRequestSchema, type CallToolResult, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import type { AgentContext } from './agent.ts';
import { CommandError, EXIT, type Exit } from './errors.ts';
import { ownTools } from './mcp_own_tools.ts';
import { providerTools } from './mcp_provider_tools.ts';

const INSTRUCTIONS = `Tools of the organization that this run works for. Tools that write change nothing by themselves: they propose an
action, which a person may have to approve. A run that needs its result ends as "waiting" with the ids of its actions.`;

function said(value: unknown): CallToolResult {
  return { content: [{ type: 'text', text: typeof value === 'string' ? value : JSON.stringify(value, null, 2) }] };
}

/** The functions of the command as tools: our own, and each tool of an integration under its own name. */
export function mcpServer(context: AgentContext): Server {
  const server = new Server(
    { name: 'business-runner', version: '1.0.0' },
    { capabilities: { tools: {} }, instructions: INSTRUCTIONS },
  );
  const own = ownTools(context);
  const ofProviders = providerTools(context);

  server.setRequestHandler(ListToolsRequestSchema, async () => ({
    tools: [...[...own.values()].map(({ tool }) => tool), ...(await ofProviders.list())],
  }));
  server.setRequestHandler(CallToolRequestSchema, async ({ params }) => {
    const { name, arguments: args = {} } = params;
    try {
      const one = own.get(name);
      return said(one ? await one.run(args) : await ofProviders.call(name, args));
    } catch (error) {
      // What was refused is for the model to read; anything else is an error of ours.
      if (!(error instanceof CommandError)) throw error;
      return { ...said(error.message), isError: true };
    }
  });
  return server;
}

/** Serves the tools over the standard streams until the input ends. Nothing else writes to the standard output. */
export async function mcp(context: AgentContext): Promise<Exit> {
  const { signal } = context.stop;
  const server = mcpServer(context);
  const ended = once(process.stdin, 'end', { signal }).catch(() => {});
  await server.connect(new StdioServerTransport());
  await ended;
  await server.close();
  signal.throwIfAborted();
  return EXIT.done;
}
