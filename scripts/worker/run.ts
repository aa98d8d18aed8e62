import { ApiError, type Claim, mayBeSentAgain } from './api.ts';
import { sender, workUnderLease } from './claimed.ts';
import type { CommandEnd } from './command.ts';
import { type Ending, endingOf, endingOfError, HARNESS, NEVER, report, workspaceUriOf } from './ending.ts';
import type { HeldLease } from './lease.ts';
import { logShipper } from './progress.ts';
import { retrying } from './retry.ts';
import { execute, fetchInputs, type Run, type RunTools, seconds } from './steps.ts';
import { makeFolders, removeWorkspace, workspaceAt } from './workspace.ts';

/** The run as its steps see it: their calls are sent again while the lease holds, and end when the run has to stop. */
function runOf(claim: Claim, held: HeldLease, executionToken: string, tools: RunTools): Run {
  const name = claim.task.identifier;
  const again = { again: mayBeSentAgain, deadline: held.deadline };
  const logs = logShipper({
    say: (line) => tools.say(`${name}  ${line}`),
    send: (entries) =>
      retrying(() => tools.api.logs(held.lease, entries, { signal: NEVER }), { ...again, signal: NEVER }),
  });
  return {
    claim,
    held,
    logs,
    executionToken,
    tools,
    send: sender(held, name, tools),
    workspace: workspaceAt(tools.options.scratch, held.lease.runId),
  };
}

/** From running to how it ends. @throws ApiError 409 when the lease is lost: then there is nothing to report to anyone. */
async function work(run: Run): Promise<{ ending: Ending; command?: CommandEnd }> {
  const { held, tools } = run;
  let command: CommandEnd | undefined;
  try {
    const body = { harness: HARNESS, model: tools.options.model, workspaceUri: workspaceUriOf(held.lease) };
    await run.send((signal) => tools.api.running(held.lease, body, { signal }));
    await makeFolders(run.workspace);
    await fetchInputs(run);
    command = await execute(run);
    // A killed command's end is not its own: the reason is the lease's.
    held.signal.throwIfAborted();
    return { ending: await endingOf(run, command), command };
  } catch (error) {
    if (error instanceof ApiError && error.status === 409) throw error;
    if (held.ended() === 'lost') throw new ApiError(409, 'run_lease_expired', 'lease_lost', 'the lease is over');
    if (!held.signal.aborted)
      tools.say(`${run.claim.task.identifier}  ${error instanceof Error ? error.message : error}`);
    return { ending: endingOfError(error, held), ...(command ? { command } : {}) };
  }
}

async function perform(run: Run): Promise<boolean> {
  const { tools, held, claim } = run;
  const begun = performance.now();
  try {
    const { ending, command } = await work(run);
    const status = await report(run, ending, command);
    const unmet =
      claim.mode === 'execute'
        ? 'the result does not meet the acceptance criteria'
        : `the ${claim.mode === 'plan' ? 'plan' : 'verdict'} is missing, or does not fit any more`;
    const refused = status === 'failed' ? `: ${unmet}` : '';
    const why = ending.kind === 'fail' ? `: ${ending.message}` : refused;
    tools.say(`${claim.task.identifier}  ${status}${why} (${seconds(performance.now() - begun)})`);
    return status === 'succeeded';
  } finally {
    await held.release();
    if (!tools.options.keep) await removeWorkspace(run.workspace);
  }
}

/**
 * One run from its start to its report. Throws nothing: whatever goes wrong is said, and reported where the lease still
 * holds. True when the run succeeded.
 */
export function performRun(claim: Claim, tools: RunTools): Promise<boolean> {
  const { identifier, agentRunCount, title } = claim.task;
  return workUnderLease(claim, identifier, tools, (held, executionToken) => {
    // Attempts count the starts of one request; a person counts the runs of the task.
    tools.say(`${identifier}  started (run ${(agentRunCount ?? 0) + 1}): ${title}`);
    return perform(runOf(claim, held, executionToken, tools));
  });
}
