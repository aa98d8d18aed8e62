import { type ActionContext, onActions } from './actions.ts';
import { agentHome } from './agent.ts';
import { agentCommand } from './agent_commands.ts';
import { ownerApi } from './api.ts';
import { ask as askInChat } from './ask.ts';
import { contextList, contextOfOrganization, contextOfRun, contextShow } from './context.ts';
import { CommandError, EXIT, type Exit } from './errors.ts';
import { type InboxContext, inboxAcknowledge, inboxList, inboxRespond } from './inbox.ts';
import { type Called, type CommandName, type Target, wholeNumber } from './options.ts';
import { organizationCreate, organizationList, organizationPath } from './organizations.ts';
import type { Output } from './output.ts';
import { type Ask, MAX_TIMEOUT_S, type Stop } from './stop.ts';
import { taskCalls } from './task_calls.ts';
import {
  type TaskContext,
  taskCancel,
  taskCreate,
  taskList,
  taskLogs,
  taskRetry,
  taskShow,
  taskWait,
} from './tasks.ts';

const TASKS: Partial<Readonly<Record<CommandName, (context: TaskContext, ref: string) => Promise<Exit>>>> = {
  'task create': taskCreate,
  'task show': taskShow,
  'task wait': taskWait,
  'task logs': taskLogs,
  'task cancel': taskCancel,
  'task retry': taskRetry,
};

async function onInbox(context: InboxContext, { name, args: [item = '', text = ''] }: Called, limit: number) {
  if (name === 'inbox respond') await inboxRespond(context, item, text);
  else if (name === 'inbox acknowledge') await inboxAcknowledge(context, item);
  else await inboxList(context, limit);
  return EXIT.done;
}

export type Around = Readonly<{ stop: Stop; ask: Ask | undefined; environment: NodeJS.ProcessEnv }>;

/** Does what was called. @throws CommandError */
export async function run(called: Called, target: Target, output: Output, around: Around): Promise<Exit> {
  const { stop, ask, environment } = around;
  const { name, args, values } = called;
  const [first = ''] = args;
  const ofAgents = agentCommand(called, target, { environment, output, stop });
  if (ofAgents) return ofAgents;
  const limit = wholeNumber('limit', values.limit, { minimum: 1, maximum: 10_000 }) ?? 20;
  const seconds = wholeNumber('timeout', values.timeout, { minimum: 1, maximum: MAX_TIMEOUT_S });
  if (seconds !== undefined) stop.after(seconds);
  const { isAgent } = target;
  if (isAgent && !/^(?:actions|context)\b/.test(name)) {
    throw new CommandError(
      EXIT.forbidden,
      `${name} is for people: unset BUSINESS_RUNNER_TOKEN, which is that of a run`,
    );
  }
  const api = ownerApi({ ...target, as: isAgent ? 'agent' : 'owner' }, stop.signal);
  if (name === 'org create') await organizationCreate(api, output, first, values);
  if (name === 'org list') await organizationList(api, output, limit);
  if (name.startsWith('org ')) return EXIT.done;
  const home = isAgent ? agentHome(target) : await organizationPath(api, target.organization);
  if (name.startsWith('context')) {
    const reader = isAgent ? contextOfRun(environment) : contextOfOrganization(api, home);
    await (name === 'context show' ? contextShow(reader, output, first) : contextList(reader, output));
    return EXIT.done;
  }
  if (name === 'ask') return askInChat({ api, home, output, values, stop }, first);
  const calls = taskCalls(api, home);
  if (name.startsWith('inbox')) return onInbox({ api, calls, output, values }, called, limit);
  if (name.startsWith('actions')) {
    const context: ActionContext = { api, calls, output, values, stop, ask, limit, isAgent };
    return onActions(context, name, args);
  }
  const context = { calls, output, values, stop };
  return TASKS[name]?.(context, first) ?? taskList(context, limit);
}
