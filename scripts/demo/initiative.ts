import { readFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { DemoTask, OwnerApi } from './owner_api.ts';
import { EXAMPLES, exampleCommand } from './tasks.ts';
import { DemoError } from './watch.ts';

/** What the demo's worker runs to plan the initiative, and for each task of its plan. */
export const INITIATIVE_COMMAND = exampleCommand('quarter_letter.mjs');

const EVERY_MS = 200;
const OVER = ['completed', 'failed', 'cancelled'];

/** An initiative: its agent decides which tasks lead there, and is handed what they need. */
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
 * Follows the initiative and the tasks below it until it is completed, and answers what it asks, as a person would.
 * Returns the tasks below it.
 * @throws DemoError when it is not completed by `deadline` (`performance.now()`), or ends otherwise
 */
export async function watchInitiative(
  api: OwnerApi,
  organizationId: string,
  initiative: DemoTask,
  options: Readonly<{ say: (line: string) => void; deadline: number; signal: AbortSignal }>,
): Promise<readonly DemoTask[]> {
  const { say, deadline, signal } = options;
  const statuses = new Map<string, string>();

  function tell(task: DemoTask, known: readonly DemoTask[]): void {
    if (statuses.get(task.id) === task.status) return;
    const waits = task.state.blockers.map(
      ({ kind, taskId }) => known.find(({ id }) => id === taskId)?.identifier ?? kind,
    );
    const why = task.status === 'blocked' ? `, waits for ${waits.join(' and ')}` : '';
    say(`${task.identifier}  ${statuses.has(task.id) ? '' : `${task.title}: `}is ${task.status}${why}`);
    statuses.set(task.id, task.status);
  }

  async function answer(known: readonly DemoTask[]): Promise<void> {
    for (const item of await api.openQuestions(organizationId)) {
      const task = known.find(({ id }) => id === item.taskId);
      const [option] = item.options;
      if (!task || option === undefined) continue;
      say(`${task.identifier}  asks: ${item.body} (${item.options.join(', ')})`);
      await api.respond(organizationId, item.id, option);
      say(`${task.identifier}  you answer: ${option}`);
    }
  }

  for (;;) {
    signal.throwIfAborted();
    const now = await api.getTask(organizationId, initiative.id);
    const below = await api.listTasks(organizationId, initiative.id);
    for (const task of [now, ...below]) tell(task, below);
    if (now.status === 'completed') return below;
    if (OVER.includes(now.status)) throw new DemoError(`${now.identifier} is ${now.status} instead of completed.`);
    if (performance.now() > deadline) {
      throw new DemoError(`${now.identifier} is still ${now.status}. Is dispatch stopped, or the API overloaded?`);
    }
    await answer(below);
    await sleep(EVERY_MS, undefined, { signal }).catch(() => {});
  }
}
