import { printAction } from './action_text.ts';
import type { OwnerApi } from './api.ts';
import { OVER } from './call.ts';
import { CommandError, EXIT, type Exit, usageError } from './errors.ts';
import type { CommandName, Values } from './options.ts';
import { localTime, type Output } from './output.ts';
import { isUuid, shortId, theOne } from './references.ts';
import { type Action, actionSchema } from './schemas.ts';
import type { Ask, Stop } from './stop.ts';
import type { TaskCalls } from './task_calls.ts';

const MOST = 1_000;
const OUTCOMES = ['succeeded', 'failed', 'not_executed'];

export type ActionContext = Readonly<{
  api: OwnerApi;
  calls: TaskCalls;
  output: Output;
  values: Values;
  stop: Stop;
  ask: Ask | undefined;
  limit: number;
  /** Agents see those of their task or chat, and decide about none. */
  isAgent: boolean;
}>;
type Query = Readonly<Record<string, string | undefined>>;

const isTask = (ref: string) => /^[ti]-\d+$/i.test(ref);
const listed = ({ api, calls }: ActionContext, query: Query, limit: number): Promise<Action[]> =>
  api.list(actionSchema, `${calls.home}/actions`, query, limit);

/**
 * The action that `ref` means: its id, the end of it, or the task whose one action has this status.
 * @throws CommandError
 */
async function found(context: ActionContext, ref: string, status?: string): Promise<Action> {
  const { calls } = context;
  if (isUuid(ref)) return calls.action(ref);
  if (!isTask(ref)) return theOne(await listed(context, {}, MOST), ref, 'action');
  const { id, identifier } = await calls.get(ref);
  const [one, second] = await listed(context, { taskId: id, status }, 2);
  if (second) throw usageError(`${identifier} has several: name one as business-runner actions shows it`);
  if (one) return one;
  throw new CommandError(EXIT.notFound, `${identifier} has no action${status ? ` that is ${status}` : ''}`);
}

async function show({ calls, output, isAgent }: ActionContext, action: Action): Promise<void> {
  const { taskId } = action;
  const task = taskId === null ? undefined : (await calls.get(taskId)).identifier;
  printAction(output, action, { task, decides: !isAgent });
}

const decided = ({ api, calls }: ActionContext, { id }: Action, verb: string, body: object): Promise<Action> =>
  api.post(actionSchema, `${calls.home}/actions/${id}/${verb}`, body);

function tell({ output }: ActionContext, action: Action): void {
  if (output.json) output.value(action);
  else output.line(`${action.status}: ${action.summary}`);
}

/** What the approval came to: one that was approved before is as it became since, and not done by this call. */
function tellApproved({ output }: ActionContext, action: Action): Exit {
  const { status, summary } = action;
  if (output.json) output.value(action);
  else
    output.line(status === 'approved' ? `approved: ${summary}` : `approved before, and ${status} by now: ${summary}`);
  return OVER[status] ?? EXIT.done;
}

async function list(context: ActionContext): Promise<void> {
  const { calls, output, values, limit } = context;
  const { status, task } = values;
  const taskId = task === undefined ? undefined : isUuid(task) ? task : (await calls.get(task)).id;
  const actions = await listed(context, { status, taskId }, limit);
  if (output.json) return output.value(actions);
  const columns = [
    { title: 'ACTION', align: 'left' },
    { title: 'STATUS', align: 'left' },
    { title: 'RISK', align: 'left' },
    { title: 'SUMMARY', align: 'left', flexible: true },
    { title: 'CREATED', align: 'left' },
  ] as const;
  const rows = actions.map((one) => [shortId(one.id), one.status, one.risk, one.summary, localTime(one.createdAt)]);
  output.table({ columns, rows }, 'no actions');
}

async function showOne(context: ActionContext, [ref = '']: readonly string[]): Promise<void> {
  const action = await found(context, ref);
  if (context.output.json) context.output.value(action);
  else await show(context, action);
}

/** Approves what was shown: another version, or other arguments, are refused. */
async function approve(context: ActionContext, [ref = '']: readonly string[]): Promise<Exit> {
  const { output, values, stop, ask } = context;
  const action = await found(context, ref, 'awaiting_approval');
  if (!output.json) await show(context, action);
  if (!values.yes && action.status === 'awaiting_approval') {
    if (output.json || ask === undefined) throw usageError('actions approve: --yes is needed where nobody is asked');
    const isMeant = await ask('Approve this?', stop.signal);
    stop.signal.throwIfAborted();
    if (!isMeant) throw new CommandError(EXIT.refused, 'not approved: it still waits');
  }
  const { version: expectedVersion, argumentsSha256 } = action;
  const note = values.note === undefined ? {} : { note: values.note };
  return tellApproved(
    context,
    await decided(context, action, 'approve', { expectedVersion, argumentsSha256, ...note }),
  );
}

async function reject(context: ActionContext, [ref = '', reason = '']: readonly string[]): Promise<void> {
  tell(context, await decided(context, await found(context, ref, 'awaiting_approval'), 'reject', { reason }));
}

async function reconcile(context: ActionContext, [ref = '', outcome = '']: readonly string[]): Promise<void> {
  const { note } = context.values;
  if (!OUTCOMES.includes(outcome)) throw usageError(`actions reconcile: OUTCOME is one of ${OUTCOMES.join(', ')}`);
  if (note === undefined) throw usageError('actions reconcile: --note says how you know');
  tell(context, await decided(context, await found(context, ref, 'unknown'), 'reconcile', { outcome, note }));
}

/** What a terminal obeys is escaped as JSON escapes it: the signature is over what the text says. */
async function receipt(context: ActionContext, [ref = '']: readonly string[]): Promise<void> {
  const { api, calls, output } = context;
  output.text(`${await api.text(`${calls.home}/actions/${(await found(context, ref)).id}/receipt`)}\n`);
}

/** The other commands about actions, by their names. */
const ACTIONS: Partial<Record<CommandName, (context: ActionContext, args: readonly string[]) => Promise<void>>> = {
  actions: list,
  'actions list': list,
  'actions show': showOne,
  'actions reject': reject,
  'actions reconcile': reconcile,
  'actions receipt': receipt,
};

const OF_AGENTS: readonly CommandName[] = ['actions', 'actions list', 'actions show'];

/** @throws CommandError */
export async function onActions(context: ActionContext, name: CommandName, args: readonly string[]): Promise<Exit> {
  if (context.isAgent && !OF_AGENTS.includes(name)) {
    throw new CommandError(EXIT.forbidden, `${name} is for people: agents propose, and people decide`);
  }
  if (name === 'actions approve') return approve(context, args);
  await ACTIONS[name]?.(context, args);
  return EXIT.done;
}
