import { setTimeout as sleep } from 'node:timers/promises';
import type { DemoTask, OwnerApi } from './owner_api.ts';

const EVERY_MS = 200;
const OVER = ['completed', 'failed', 'cancelled', 'blocked'];

/** The task did not end well; the message says what a person can look at. */
export class DemoError extends Error {
  override name = 'DemoError';
}

/**
 * Follows a task until it is over, and says each change: also why a result was refused.
 * @throws DemoError when it is not completed by `deadline` (`performance.now()`), or ends otherwise.
 */
export async function watchTask(
  api: OwnerApi,
  organizationId: string,
  task: DemoTask,
  options: Readonly<{ say: (line: string) => void; deadline: number; signal: AbortSignal }>,
): Promise<DemoTask> {
  const { say, deadline, signal } = options;
  let status = '';
  const told = new Set<string>();
  for (;;) {
    signal.throwIfAborted();
    const now = await api.getTask(organizationId, task.id);
    // By its runs, after the task: the next run may mend it before anybody looks again.
    for (const run of (await api.failedRuns(organizationId, task.id)).toReversed()) {
      const checks = run.output?.result?.completion?.checks ?? [];
      const failures = checks.filter((check) => check.status === 'failed').map((check) => check.summary);
      if (failures.length > 0 && !told.has(run.id)) {
        say(`${now.identifier}  the result was refused: ${failures.join('; ')}`);
        told.add(run.id);
      }
    }
    if (now.status !== status) say(`${now.identifier}  is ${now.status}`);
    status = now.status;
    if (status === 'completed') return now;
    if (OVER.includes(status)) {
      throw new DemoError(
        `${now.identifier} is ${status} instead of completed. Does another worker take tasks of this organization? Stop it and run the demo again.`,
      );
    }
    if (performance.now() > deadline) {
      throw new DemoError(`${now.identifier} is still ${status}. Is dispatch stopped, or the API overloaded?`);
    }
    await sleep(EVERY_MS, undefined, { signal }).catch(() => {});
  }
}
