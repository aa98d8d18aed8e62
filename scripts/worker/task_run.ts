import { ApiError, type Claim, isRetryable } from './api.ts';
import type { CommandEnd } from './command.ts';
import type { TaskRun, WorkerContext } from './context.ts';
import { formatSeconds } from './duration.ts';
import { fetchInputs } from './inputs.ts';
import type { HeldLease } from './lease.ts';
import { sendUnderLease, workUnderLease } from './leased_work.ts';
import { afterFailure, refusalText, waitLines } from './next_steps.ts';
import { logShipper } from './progress.ts';
import { redactText } from './redact.ts';
import {
  failureReport,
  firstLine,
  HARNESS,
  NEVER,
  type Report,
  reportOf,
  sendReport,
  workspaceUriOf,
} from './report.ts';
import { retry } from './retry.ts';
import { runTaskCommand } from './task_command.ts';
import { makeFolders, removeWorkspace, workspaceAt } from './workspace.ts';

function taskRunOf(claim: Claim, held: HeldLease, executionToken: string, worker: WorkerContext): TaskRun {
  const name = claim.task.identifier;
  const logs = logShipper({
    redact: (text) => redactText(text, held.lease.secrets ?? []),
    print: (line) => worker.print(`${name}  ${line}`),
    send: (entries) =>
      retry(() => worker.api.logs(held.lease, entries, { signal: NEVER }), {
        isRetryable,
        deadline: held.deadline,
        signal: NEVER,
      }),
  });
  return {
    claim,
    held,
    logs,
    executionToken,
    worker,
    send: sendUnderLease(held, name, worker),
    workspace: workspaceAt(worker.options.scratch, held.lease.runId),
  };
}

/** Does the work of the run. @throws ApiError 409 when the lease is lost: then nothing can be reported. */
async function work(run: TaskRun): Promise<{ report: Report; command?: CommandEnd }> {
  const { held, worker } = run;
  let command: CommandEnd | undefined;
  try {
    const body = { harness: HARNESS, model: worker.options.model, workspaceUri: workspaceUriOf(held.lease) };
    await run.send((signal) => worker.api.running(held.lease, body, { signal }));
    await makeFolders(run.workspace);
    await fetchInputs(run);
    command = await runTaskCommand(run);
    // A command that was killed has no result of its own: the lease says why.
    held.signal.throwIfAborted();
    return { report: await reportOf(run, command), command };
  } catch (error) {
    if (error instanceof ApiError && error.status === 409) throw error;
    if (held.ended() === 'lost') throw new ApiError(409, 'run_lease_expired', 'lease_lost', 'the lease is over');
    if (!held.signal.aborted)
      worker.print(`${run.claim.task.identifier}  ${error instanceof Error ? error.message : error}`);
    return { report: failureReport(error, held), ...(command ? { command } : {}) };
  }
}

async function perform(run: TaskRun): Promise<boolean> {
  const { worker, held, claim } = run;
  const begun = performance.now();
  try {
    const { report, command } = await work(run);
    const status = await sendReport(run, report, command);
    const refused = report.kind === 'complete' && status === 'failed' ? `: ${await refusalText(run)}` : '';
    const why = report.kind === 'fail' ? `: ${firstLine(report.message)}` : refused;
    const print = (line: string) => worker.print(`${claim.task.identifier}  ${line}`);
    const waits = status === 'succeeded' ? waitLines(report, claim) : [];
    for (const line of waits) print(line);
    const ended = waits.length > 0 ? 'the run ended, and the task waits' : `${status}${why}`;
    print(`${ended} (${formatSeconds(performance.now() - begun)})`);
    if (status === 'failed') for (const line of await afterFailure(report, run)) print(line);
    return status === 'succeeded';
  } finally {
    await held.release();
    if (!worker.options.keep) await removeWorkspace(run.workspace);
  }
}

/**
 * One run of a task from its start to its report. Never throws: whatever goes wrong is printed, and reported while the
 * lease holds. True when the run succeeded.
 */
export function performTaskRun(claim: Claim, worker: WorkerContext): Promise<boolean> {
  const { identifier, agentRunCount, title } = claim.task;
  return workUnderLease(claim, identifier, worker, (held, executionToken) => {
    // Attempts count the starts of one request; a person counts the runs of the task.
    worker.print(`${identifier}  started (run ${(agentRunCount ?? 0) + 1}): ${title}`);
    return perform(taskRunOf(claim, held, executionToken, worker));
  });
}
