import { type AgentContext, agentContext } from './agent.ts';
import { call } from './call.ts';
import type { Exit } from './errors.ts';
import { git, gitCredential } from './git.ts';
import type { Called, CommandName, Target } from './options.ts';
import { tools } from './tools.ts';

type Command = (context: AgentContext, args: readonly string[]) => Promise<Exit>;

const COMMANDS: Partial<Readonly<Record<CommandName, Command>>> = {
  tools,
  call,
  git,
  'git-credential': gitCredential,
  // What it loads no other command needs.
  mcp: async (context) => (await import('./mcp.ts')).mcp(context),
};

/** Does a command that is for agents alone; undefined: it is none. @throws CommandError */
export function agentCommand(
  { name, args, values }: Called,
  target: Target,
  around: Pick<AgentContext, 'environment' | 'output' | 'stop'>,
): Promise<Exit> | undefined {
  const command = COMMANDS[name];
  if (!command) return undefined;
  return command(agentContext(name, target, { ...around, values }), args);
}
