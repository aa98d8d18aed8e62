import { setTimeout as sleep } from 'node:timers/promises';
import { actionLines } from './action_text.ts';
import { UnavailableError } from './api.ts';
import type { Output } from './output.ts';
import type { Run, Task } from './schemas.ts';
import type { TaskCalls } from './task_calls.ts';
import { logLine, questionLines, runLines, styleOf } from './task_text.ts';

const FIRST_INTERVAL_MS = 300;
const INTERVAL_MS = 1_000;
/** Looks in which a task has not moved until the reason is worth a line: most go on by themselves. */
const STILL = 8;
const FINAL = ['completed', 'failed', 'cancelled'];
const ACTIVE = ['starting', 'running'];

/** Prints what is new of the runs of a task: their beginning, their log and their end. */
function runFollower(calls: TaskCalls, print: Output['progress']) {
  const logged = new Map<string, number | undefined>();
  const ended = new Set<string>();

  async function log(run: Run): Promise<void> {
    const entries = await calls.log(run, logged.get(run.id));
    for (const entry of entries) print(`  ${logLine(entry)}`, 'dim');
    const newest = entries.at(-1)?.sequence;
    if (newest !== undefined) logged.set(run.id, newest);
  }

  return async (task: Task): Promise<void> => {
    const runs = await calls.runs(task);
    for (const [index, run] of runs.entries()) {
      if (ended.has(run.id)) continue;
      if (!logged.has(run.id)) {
        print(`run ${index + 1} started by ${run.agentProfile.name}`);
        logged.set(run.id, undefined);
      }
      await log(run);
      if (ACTIVE.includes(run.status)) continue;
      ended.add(run.id);
      const style = styleOf(run.status);
      for (const line of runLines(run, index + 1)) print(line, style);
    }
  };
}

/** Prints what becomes of the tasks below an initiative. */
function childFollower(calls: TaskCalls, print: Output['progress']) {
  const known = new Map<string, string>();
  return async ({ id }: Task): Promise<void> => {
    for (const child of await calls.list({ parentId: id, sortDirection: 'asc' }, 200)) {
      if (known.get(child.id) === child.status) continue;
      print(`  ${child.identifier}  ${known.has(child.id) ? '' : `${child.title}: `}is ${child.status}`);
      known.set(child.id, child.status);
    }
  };
}

/** Prints the questions that block a task, each once. */
function questionFollower(calls: TaskCalls, output: Output, print: Output['progress']) {
  const asked = new Set<string>();
  return async ({ state, identifier }: Task): Promise<void> => {
    for (const { inboxItemId } of state.blockers) {
      if (inboxItemId === undefined || asked.has(inboxItemId)) continue;
      asked.add(inboxItemId);
      const [first = '', ...rest] = questionLines(output, await calls.question(inboxItemId), identifier);
      print(`${identifier} asks: ${first}`, 'yellow');
      for (const line of rest) print(`  ${line}`);
    }
  };
}

/** Prints the actions that block a task, each once in every state, and how a person decides about them. */
function actionFollower(calls: TaskCalls, output: Output, print: Output['progress']) {
  const known = new Map<string, string>();
  return async ({ state, identifier }: Task): Promise<void> => {
    for (const { actionId } of state.blockers) {
      if (actionId === undefined) continue;
      const action = await calls.action(actionId);
      if (known.get(actionId) === action.status) continue;
      known.set(actionId, action.status);
      const [first = '', ...rest] = actionLines(output, action);
      print(`${identifier} waits for an action: ${first}`, rest.length > 0 ? 'yellow' : undefined);
      for (const line of rest) print(`  ${line}`);
    }
  };
}

/**
 * Follows a task until it is over, and prints what happens. An API that is away is waited for.
 * @throws CommandError of a call that is refused, and the reason of `signal`
 */
export async function waitForTask(calls: TaskCalls, output: Output, begun: Task, signal: AbortSignal): Promise<Task> {
  const print: Output['progress'] = (line, style) => output.progress(line, style);
  const followers = [
    runFollower(calls, print),
    questionFollower(calls, output, print),
    actionFollower(calls, output, print),
  ];
  if (begun.kind === 'initiative') followers.push(childFollower(calls, print));
  let status = '';
  let still = 0;
  let away = false;

  async function look(): Promise<Task> {
    const task = await calls.get(begun.id);
    still = task.status === status ? still + 1 : 0;
    const tell = () => print(`${task.identifier} is ${task.status}`, styleOf(task.status));
    // Its runs are read after it: what they say came later, save for the end.
    const isOver = FINAL.includes(task.status);
    if (still === 0 && !isOver) tell();
    for (const follow of followers) await follow(task);
    if (still === 0 && isOver) tell();
    status = task.status;
    if (still === STILL && status !== 'running') for (const line of await calls.why(begun.id)) print(`  ${line}`);
    return task;
  }

  for (let looks = 0; ; looks += 1) {
    signal.throwIfAborted();
    try {
      const task = await look();
      if (away) print('it responds again');
      away = false;
      if (FINAL.includes(task.status)) return task;
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof UnavailableError)) throw error;
      if (!away) print(error.message, 'yellow');
      away = true;
    }
    await sleep(looks < 20 ? FIRST_INTERVAL_MS : INTERVAL_MS, undefined, { signal }).catch(() => {});
  }
}
