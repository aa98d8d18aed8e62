import { decisionCalls } from './action_text.ts';
import type { OwnerApi } from './api.ts';
import { CommandError, EXIT, usageError } from './errors.ts';
import type { Values } from './options.ts';
import { localTime, type Output, wrapped } from './output.ts';
import { isUuid, shortId, theOne } from './references.ts';
import { type InboxItem, inboxItemSchema } from './schemas.ts';
import type { TaskCalls } from './task_calls.ts';
import { askedText, questionLines } from './task_text.ts';

const MOST = 1_000;

export type InboxContext = Readonly<{ api: OwnerApi; calls: TaskCalls; output: Output; values: Values }>;

const itemsOf = ({ api, calls }: InboxContext, status: string | undefined, limit: number) =>
  api.list(inboxItemSchema, `${calls.home}/human-inbox`, { status }, limit);

function printItem(output: Output, item: InboxItem, task: string | undefined): void {
  const id = shortId(item.id);
  output.line(
    [id, task, item.kind, item.status === 'open' ? '' : item.status, localTime(item.createdAt)]
      .filter(Boolean)
      .join('  '),
    'bold',
  );
  const print = (text: string) => {
    for (const line of wrapped(text, output.columns, '  ')) output.line(line);
  };
  if (item.status === 'open' && item.kind === 'question') {
    const lines = questionLines(output, item, id);
    for (const line of lines.slice(0, -1)) print(line);
    output.line(`  ${lines.at(-1)}`, 'dim');
    return;
  }
  print(askedText(item));
  if (item.status === 'open' && item.actionId) {
    for (const call of decisionCalls(output, item.kind, item.actionId)) output.line(`  ${call}`, 'dim');
  }
  if (item.status === 'open' && item.kind === 'notification') {
    if (item.purpose === 'failure' && task) output.line(`  ${output.call(`task retry ${task}`)}`, 'dim');
    output.line(`  ${output.call(`inbox acknowledge ${id}`)}`, 'dim');
  }
}

export async function inboxList(context: InboxContext, limit: number): Promise<void> {
  const { calls, output, values } = context;
  const items = await itemsOf(context, values.status, limit);
  if (output.json) return output.value(items);
  if (items.length === 0) return output.line('nothing waits for you');
  const names = new Map<string, string>();
  for (const [index, item] of items.entries()) {
    const { taskId } = item;
    if (taskId !== null && !names.has(taskId)) names.set(taskId, (await calls.get(taskId)).identifier);
    if (index > 0) output.line();
    printItem(output, item, names.get(taskId ?? ''));
  }
}

/** The open item of this kind that `ref` means: its id, the end of it, or the task that it is about. */
async function openItem(context: InboxContext, ref: string, kind: string): Promise<string> {
  if (isUuid(ref)) return ref;
  const open = await itemsOf(context, 'open', MOST);
  if (!/^[ti]-\d+$/i.test(ref)) return theOne(open, ref, 'open inbox item').id;
  const task = await context.calls.get(ref);
  const [one, second] = open.filter((item) => item.taskId === task.id && item.kind === kind);
  if (second) throw usageError(`${task.identifier} has several: name one as business-runner inbox shows it`);
  if (one) return one.id;
  throw new CommandError(EXIT.notFound, `${task.identifier} has no open ${kind}`);
}

export async function inboxRespond(context: InboxContext, ref: string, response: string): Promise<void> {
  const { api, calls, output, values } = context;
  const id = await openItem(context, ref, 'question');
  const note = values.note === undefined ? {} : { note: values.note };
  const item = await api.post(inboxItemSchema, `${calls.home}/human-inbox/${id}/respond`, { response, ...note });
  if (output.json) output.value(item);
  else output.line(`responded: ${item.title}`);
}

export async function inboxAcknowledge(context: InboxContext, ref: string): Promise<void> {
  const { api, calls, output } = context;
  const id = await openItem(context, ref, 'notification');
  const item = await api.post(inboxItemSchema, `${calls.home}/human-inbox/${id}/acknowledge`);
  if (output.json) output.value(item);
  else output.line(`acknowledged: ${item.title}`);
}
