import { ApiError } from './api.ts';
import type { TaskRun } from './context.ts';
import { type Outcome, readPlan, readVerdict } from './result_files.ts';

const MAX_ATTEMPTS = 8;

/** The outcome that the command wrote was refused: the run fails with this message, and is tried again. */
export class OutcomeError extends Error {
  override name = 'OutcomeError';
}

async function readOutcome({ claim, workspace }: TaskRun): Promise<Outcome | null> {
  if (claim.mode === 'plan') return readPlan(workspace.planFile);
  if (claim.mode === 'verify') return readVerdict(workspace.verdictFile);
  return null;
}

/**
 * Stages what the command of a plan or verify run decided, with the token of the run, for the current version of the task;
 * a task that changes meanwhile is read again. Without a file nothing is staged: the command may have done so by itself.
 * @throws ResultError, OutcomeError
 */
export async function stageOutcome(run: TaskRun): Promise<void> {
  const { claim, held, worker, logs, executionToken } = run;
  const outcome = await readOutcome(run);
  if (!outcome) return;
  const at = {
    organizationId: claim.organizationId,
    taskId: claim.task.id,
    token: executionToken,
    secrets: held.lease.secrets ?? [],
  };
  for (let attempt = 1; ; attempt += 1) {
    try {
      const { version, graphRevision } = await run.send((signal) => worker.api.taskAsAgent(at, { signal }));
      const { runId } = held.lease;
      const body = { runId, taskVersion: version, graphRevision, idempotencyKey: runId, outcome };
      await run.send((signal) => worker.api.stageOutcome(at, body, { signal }));
      break;
    } catch (error) {
      if (!(error instanceof ApiError) || (error.status !== 409 && error.status !== 400)) throw error;
      // Subtasks start and end at any time, and each changes the graph that the outcome is based on.
      if (error.reason === 'stale' && attempt < MAX_ATTEMPTS) continue;
      throw new OutcomeError(error.message);
    }
  }
  const what = outcome.kind === 'plan' ? `a plan of ${outcome.operations.length} operations` : outcome.verdict;
  logs.note({
    category: outcome.kind === 'plan' ? 'planning' : 'verification',
    status: 'completed',
    label: `Submitted: ${what}`,
  });
  worker.print(`${claim.task.identifier}  submitted: ${what}`);
}
