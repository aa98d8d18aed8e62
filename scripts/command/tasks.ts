import { EXIT, type Exit } from './errors.ts';
import { newTask } from './new_task.ts';
import type { Values } from './options.ts';
import { localTime, type Output } from './output.ts';
import type { LogEntry, Run, Task } from './schemas.ts';
import type { Stop } from './stop.ts';
import type { TaskCalls } from './task_calls.ts';
import { printAnswers, printRun, printTask } from './task_text.ts';
import { waitForTask } from './task_wait.ts';

/** A command about tasks. */
export type TaskContext = Readonly<{ calls: TaskCalls; output: Output; values: Values; stop: Stop }>;

async function show({ calls, output }: TaskContext, task: Task): Promise<void> {
  if (output.json) return output.value(task);
  await printTask(calls, output, task, await calls.runs(task));
}

/** Follows a task, then shows it. */
async function follow(context: TaskContext, begun: Task): Promise<Exit> {
  const { calls, output, stop } = context;
  stop.goesOn(`${begun.identifier} continues: ${output.call(`task wait ${begun.identifier}`)}`);
  const task = await waitForTask(calls, output, begun, stop.signal);
  output.progress('');
  await show(context, task);
  return task.status === 'completed' ? EXIT.done : EXIT.failed;
}

export async function taskCreate(context: TaskContext, title: string): Promise<Exit> {
  const { calls, output, values } = context;
  const task = await calls.create(newTask(title, values));
  if (values.wait) {
    output.progress(`${task.identifier} created: ${task.title}`);
    return follow(context, task);
  }
  if (output.json) output.value(task);
  else {
    output.line(task.identifier);
    output.progress(`created; ${output.call(`task wait ${task.identifier}`)} follows it`);
  }
  return EXIT.done;
}

export async function taskList({ calls, output, values }: TaskContext, limit: number): Promise<Exit> {
  const tasks = await calls.list({ status: values.status }, limit);
  const columns = [
    { title: 'TASK', align: 'left' },
    { title: 'STATUS', align: 'left' },
    { title: 'TITLE', align: 'left', flexible: true },
    { title: 'RUNS', align: 'right' },
    { title: 'CREATED', align: 'left' },
  ] as const;
  const rows = tasks.map((task) => [
    task.identifier,
    task.status,
    task.title,
    String(task.agentRunCount),
    localTime(task.createdAt),
  ]);
  if (output.json) output.value(tasks);
  else output.table({ columns, rows }, `no tasks: ${output.call('task create TITLE')}`);
  return EXIT.done;
}

export async function taskShow(context: TaskContext, ref: string): Promise<Exit> {
  await show(context, await context.calls.get(ref));
  return EXIT.done;
}

export async function taskWait(context: TaskContext, ref: string): Promise<Exit> {
  return follow(context, await context.calls.get(ref));
}

export async function taskCancel(context: TaskContext, ref: string): Promise<Exit> {
  const { calls, output } = context;
  const task = await calls.cancel(ref);
  if (output.json) output.value(task);
  else output.line(`${task.identifier} is ${task.status}`);
  return EXIT.done;
}

export async function taskRetry(context: TaskContext, ref: string): Promise<Exit> {
  const { calls, output, values } = context;
  const task = await calls.retry(ref);
  if (values.wait) return follow(context, task);
  if (output.json) output.value(task);
  else output.line(`${task.identifier} is ${task.status}`);
  return EXIT.done;
}

export async function taskLogs({ calls, output }: TaskContext, ref: string): Promise<Exit> {
  const task = await calls.get(ref);
  const logs: { run: Run; log: LogEntry[] }[] = [];
  for (const run of await calls.runs(task)) logs.push({ run, log: await calls.log(run) });
  if (output.json) output.value(logs);
  else if (logs.length === 0) {
    const [why = '', ...more] = await calls.why(ref);
    output.line(`no run of ${ref} has started: ${why}`);
    for (const line of more) output.line(line);
  } else {
    for (const [index, { run, log }] of logs.entries()) {
      printRun(output, run, index + 1, log);
      printAnswers(output, task, run, logs[index + 1]?.run);
    }
  }
  return EXIT.done;
}
