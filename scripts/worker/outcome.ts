import { ApiError } from './api.ts';
import { type Outcome, readPlan, readVerdict } from './result.ts';
import type { Run } from './steps.ts';

const MAX_TRIES = 8;

/** The outcome that the command wrote was refused: the run fails with this message, and is tried again. */
export class OutcomeError extends Error {
  override name = 'OutcomeError';
}

async function outcomeOf({ claim, workspace }: Run): Promise<Outcome | null> {
  if (claim.mode === 'plan') return readPlan(workspace.planFile);
  if (claim.mode === 'verify') return readVerdict(workspace.verdictFile);
  return null;
}

/**
 * Hands in what the command of a plan or verify run decided, with the token of the run, for the task as it is now: where
 * it changes meanwhile, for what it is then. Without a file nothing is: the command may have done so by itself.
 * @throws ResultError, OutcomeError
 */
export async function handInOutcome(run: Run): Promise<void> {
  const { claim, held, tools, logs, executionToken } = run;
  const outcome = await outcomeOf(run);
  if (!outcome) return;
  const at = { organizationId: claim.organizationId, taskId: claim.task.id, token: executionToken };
  for (let tries = 1; ; tries += 1) {
    try {
      const { version, graphRevision } = await run.send((signal) => tools.api.taskAsAgent(at, { signal }));
      const { runId } = held.lease;
      const body = { runId, taskVersion: version, graphRevision, idempotencyKey: runId, outcome };
      await run.send((signal) => tools.api.stageOutcome(at, body, { signal }));
      break;
    } catch (error) {
      if (!(error instanceof ApiError) || (error.status !== 409 && error.status !== 400)) throw error;
      // Tasks below may start and end all the time, and each changes what this was made from.
      if (error.reason === 'stale' && tries < MAX_TRIES) continue;
      throw new OutcomeError(error.message);
    }
  }
  const what = outcome.kind === 'plan' ? `a plan of ${outcome.operations.length} operations` : outcome.verdict;
  logs.note({
    category: outcome.kind === 'plan' ? 'planning' : 'verification',
    status: 'completed',
    label: `Handed in: ${what}`,
  });
  tools.say(`${claim.task.identifier}  handed in: ${what}`);
}
