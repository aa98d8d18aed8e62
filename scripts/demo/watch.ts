import { setTimeout as sleep } from 'node:timers/promises';
import type { DemoTask, OwnerApi } from './owner_api.ts';
import type { Print } from './worker.ts';

const POLL_INTERVAL_MS = 200;
const FINAL_STATUSES = ['completed', 'failed', 'cancelled', 'blocked'];

/** The demo cannot go on; the message says why and what to check. */
export class DemoError extends Error {
  override name = 'DemoError';
}

/**
 * Follows a task until it ends, and prints each change, also why a result was refused.
 * @throws DemoError when it is not completed by `deadline` (`performance.now()`), or ends otherwise.
 */
export async function watchTask(
  api: OwnerApi,
  organizationId: string,
  task: DemoTask,
  options: Readonly<{ print: Print; deadline: number; signal: AbortSignal }>,
): Promise<DemoTask> {
  const { print, deadline, signal } = options;
  let status = '';
  const printedRuns = new Set<string>();
  for (;;) {
    signal.throwIfAborted();
    const now = await api.getTask(organizationId, task.id);
    // Failed runs are read after the task: the next run may succeed before the next poll.
    for (const run of (await api.failedRuns(organizationId, task.id)).toReversed()) {
      const checks = run.output?.result?.completion?.checks ?? [];
      const failures = checks.filter((check) => check.status === 'failed').map((check) => check.summary);
      if (failures.length > 0 && !printedRuns.has(run.id)) {
        print(`${now.identifier}  the result was refused: ${failures.join('; ')}`);
        printedRuns.add(run.id);
      }
    }
    if (now.status !== status) print(`${now.identifier}  is ${now.status}`);
    status = now.status;
    if (status === 'completed') return now;
    if (FINAL_STATUSES.includes(status)) {
      throw new DemoError(
        `${now.identifier} is ${status} instead of completed. Does another worker take tasks of this organization? Stop it and run the demo again.`,
      );
    }
    if (performance.now() > deadline) {
      throw new DemoError(`${now.identifier} is still ${status}. Is dispatch stopped, or the API overloaded?`);
    }
    await sleep(POLL_INTERVAL_MS, undefined, { signal }).catch(() => {});
  }
}
