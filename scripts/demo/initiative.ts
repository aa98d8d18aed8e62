import { readFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { DemoTask, OwnerApi } from './owner_api.ts';
import { EXAMPLES, exampleCommand } from './tasks.ts';
import { DemoError } from './watch.ts';
import type { Print } from './worker.ts';

/** The demo's worker runs this to plan the initiative, and for each task of the plan. */
export const INITIATIVE_COMMAND = exampleCommand('quarter_letter.mjs');

const POLL_INTERVAL_MS = 200;
const FINAL_STATUSES = ['completed', 'failed', 'cancelled'];

/** An initiative: its agent plans the tasks that reach the objective, from the same inputs. */
export function demoInitiative() {
  return {
    title: 'A letter about the third quarter',
    kind: 'initiative',
    ownerProfileKey: 'operator',
    spec: {
      objective: 'Find out in sales.csv what is worth telling, and write a letter about it. Ask whom it is for.',
      inputs: [
        {
          kind: 'inline',
          path: 'sales.csv',
          text: readFileSync(path.join(EXAMPLES, 'sales.csv'), 'utf8'),
          mediaType: 'text/csv',
        },
      ],
    },
  };
}

/**
 * Follows an initiative and its subtasks until it is completed, and answers its questions as a person would. Returns the
 * subtasks.
 * @throws DemoError when it is not completed by `deadline` (`performance.now()`), or ends otherwise
 */
export async function watchInitiative(
  api: OwnerApi,
  organizationId: string,
  initiative: DemoTask,
  options: Readonly<{ print: Print; deadline: number; signal: AbortSignal }>,
): Promise<readonly DemoTask[]> {
  const { print, deadline, signal } = options;
  const statuses = new Map<string, string>();

  function printStatus(task: DemoTask, known: readonly DemoTask[]): void {
    if (statuses.get(task.id) === task.status) return;
    const waits = task.state.blockers.map(
      ({ kind, taskId }) => known.find(({ id }) => id === taskId)?.identifier ?? kind,
    );
    const why = task.status === 'blocked' ? `, waits for ${waits.join(' and ')}` : '';
    print(`${task.identifier}  ${statuses.has(task.id) ? '' : `${task.title}: `}is ${task.status}${why}`);
    statuses.set(task.id, task.status);
  }

  async function answer(known: readonly DemoTask[]): Promise<void> {
    for (const item of await api.openQuestions(organizationId)) {
      const task = known.find(({ id }) => id === item.taskId);
      const [option] = item.options;
      if (!task || option === undefined) continue;
      print(`${task.identifier}  asks: ${item.body} (${item.options.join(', ')})`);
      await api.respond(organizationId, item.id, option);
      print(`${task.identifier}  you answer: ${option}`);
    }
  }

  for (;;) {
    signal.throwIfAborted();
    const now = await api.getTask(organizationId, initiative.id);
    const subtasks = await api.listTasks(organizationId, initiative.id);
    for (const task of [now, ...subtasks]) printStatus(task, subtasks);
    if (now.status === 'completed') return subtasks;
    if (FINAL_STATUSES.includes(now.status))
      throw new DemoError(`${now.identifier} is ${now.status} instead of completed.`);
    if (performance.now() > deadline) {
      throw new DemoError(`${now.identifier} is still ${now.status}. Is dispatch stopped, or the API overloaded?`);
    }
    await answer(subtasks);
    await sleep(POLL_INTERVAL_MS, undefined, { signal }).catch(() => {});
  }
}
