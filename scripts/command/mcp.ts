import { once } from 'node:events';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import type { AgentContext } from './agent.ts';
import { CommandError, EXIT, type Exit } from './errors.ts';
import { type ClientCalls, clientCalls, said } from './mcp_calls.ts';
import { ownTools } from './mcp_own_tools.ts';
import { providerTools } from './mcp_provider_tools.ts';

const INSTRUCTIONS = `Tools of the organization that this run works for. Tools that write change nothing by themselves: they propose an
action, which a person may have to approve. A run that needs its result ends as "waiting" with the ids of its actions. Files that a read
brings are saved, and "path" says where. A tool that takes files is called by call_tool, with their paths.`;

/** The functions of the command as tools: our own, and each tool of an integration under its own name. */
export function mcpServer(context: AgentContext, calls: ClientCalls): Server {
  const server = new Server(
    { name: 'business-runner', version: '1.0.0' },
    { capabilities: { tools: {} }, instructions: INSTRUCTIONS },
  );
  const own = ownTools(context, calls);
  const ofProviders = providerTools(context, calls);

  server.setRequestHandler(ListToolsRequestSchema, async () => ({
    tools: [...[...own.values()].map(({ tool }) => tool), ...(await ofProviders.list())],
  }));
  server.setRequestHandler(CallToolRequestSchema, async ({ params }, { signal }) => {
    const { name, arguments: args = {} } = params;
    try {
      const one = own.get(name);
      return one ? await one.run(args, signal) : await ofProviders.call(name, args, signal);
    } catch (error) {
      // What was refused is for the model to read; anything else is an error of ours.
      if (!(error instanceof CommandError)) throw error;
      return { ...said(error.message), isError: true };
    }
  });
  return server;
}

/** What the library could not do, in a line; of an input that is no message it says so in many. */
function complaint(error: Error): string {
  if (error instanceof SyntaxError) return 'a line of the input is no JSON';
  return 'issues' in error ? 'a line of the input is no message of JSON-RPC 2.0' : error.message;
}

/**
 * Serves the tools over the standard streams until the input ends. Nothing else writes to the standard output.
 * @throws CommandError where a line is longer than the library takes
 */
export async function mcp(context: AgentContext): Promise<Exit> {
  const { output, stop } = context;
  const { signal } = stop;
  const calls = clientCalls(context);
  const server = mcpServer(context, calls);
  server.onerror = (error) => output.progress(`business-runner: ${complaint(error)}`);
  const given = new Promise<'too long'>((resolve) => {
    server.onclose = () => resolve('too long');
  });
  const ended = once(process.stdin, 'end', { signal }).catch(() => {});
  await server.connect(new StdioServerTransport());
  const over = await Promise.race([ended, given]);
  // Its calls that are on end with it.
  await server.close();
  await calls.close();
  signal.throwIfAborted();
  if (over === 'too long') throw new CommandError(EXIT.data, 'a line of the input is too long to be a message');
  return EXIT.done;
}
