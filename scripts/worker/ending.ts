import { createHash, randomUUID } from 'node:crypto';
import { ApiError, type Lease, mayBeSentAgain } from './api.ts';
import type { CommandEnd } from './command.ts';
import type { HeldLease } from './lease.ts';
import { handInOutcome, OutcomeError } from './outcome.ts';
import { ResultError, readResult, readUsage, type Usage } from './result.ts';
import { retrying } from './retry.ts';
import { handIn, type Run } from './steps.ts';
import { WorkspaceError } from './workspace.ts';

export const HARNESS = 'reference-worker';

/** The end of a run is reported also when it was cancelled or stopped: nothing cuts these calls off but the lease. */
export const NEVER = new AbortController().signal;

/** How a run ends, as it is reported. */
export type Ending =
  | Readonly<{ kind: 'complete'; result: object }>
  | Readonly<{ kind: 'fail'; code: string; message: string; retryable: boolean }>;

/** The command's own word where it gave one, else its exit status. */
export async function endingOf(run: Run, end: CommandEnd): Promise<Ending> {
  if (end.timedOut) {
    const message = `The command took longer than ${run.tools.options.timeoutMs / 1000} s`;
    return { kind: 'fail', code: 'command_timeout', message, retryable: true };
  }
  const result = await readResult(run.workspace.resultFile);
  if (result.kind === 'failed') return { ...result, kind: 'fail' };
  if (end.exitCode !== 0) {
    const message = `The command ended with ${end.signal ?? `exit status ${end.exitCode}`}`;
    return { kind: 'fail', code: 'command_failed', message, retryable: true };
  }
  const files = await handIn(run);
  if (result.kind !== 'completed') return { kind: 'complete', result };
  await handInOutcome(run);
  const summary = result.summary ?? `The command succeeded and handed in ${files.length} files.`;
  return { kind: 'complete', result: { kind: 'completed', summary, artifacts: files.map(({ path }) => ({ path })) } };
}

/** What is reported where the work could not be done. */
export function endingOfError(error: unknown, held: HeldLease): Ending {
  if (held.ended() === 'cancelled') {
    return { kind: 'fail', code: 'cancelled', message: 'The run was cancelled', retryable: false };
  }
  if (held.ended() === 'stopped') {
    return { kind: 'fail', code: 'worker_stopped', message: 'The worker was stopped', retryable: true };
  }
  const fail = (code: string, message: string): Ending => {
    return { kind: 'fail', code, message: message.slice(0, 500), retryable: true };
  };
  if (error instanceof WorkspaceError) return fail('workspace_failed', error.message);
  if (error instanceof OutcomeError) return fail('outcome_refused', error.message);
  if (error instanceof ResultError) return fail('result_invalid', error.message);
  if (error instanceof ApiError) return fail('worker_error', error.message);
  // The message of a system error names paths of this machine, which are nobody else's business.
  const name = error instanceof Error && 'code' in error ? error.code : error instanceof Error ? error.name : 'unknown';
  return fail('worker_error', `The worker failed (${name})`);
}

export function workspaceUriOf({ organizationId, runId }: Lease): string {
  return `org://${organizationId}/runs/${runId}/workspace`;
}

function receiptsOf(command: string, end: CommandEnd | undefined): object[] {
  if (!end) return [];
  const commandHash = createHash('sha256').update(command).digest('hex');
  const status = end.exitCode === 0 ? 'succeeded' : 'failed';
  return [{ kind: 'command', id: randomUUID(), commandHash, status, exitCode: end.exitCode ?? 128 }];
}

/** Sends how it ended until it is answered; a result that is refused as malformed becomes a failure. */
export async function report(run: Run, ending: Ending, end: CommandEnd | undefined): Promise<string> {
  const { held, tools, logs } = run;
  const noUsage: Usage = { inputTokens: 0, outputTokens: 0, toolCalls: 0 };
  const usage = await readUsage(run.workspace.usageFile).catch(() => noUsage);
  await logs.flush();
  const common = { usage, harness: HARNESS, logState: logs.logState() };
  const again = { again: mayBeSentAgain, deadline: held.deadline, signal: NEVER };
  const call = { signal: NEVER };
  if (ending.kind === 'fail') {
    const { kind: _, ...error } = ending;
    return retrying(() => tools.api.fail(held.lease, { error, ...common }, call), again);
  }
  const output = { kind: 'task_result', result: ending.result };
  const receipts = receiptsOf(tools.options.command, end);
  const body = { output, receipts, workspaceUri: workspaceUriOf(held.lease), ...common };
  try {
    return await retrying(() => tools.api.complete(held.lease, body, call), again);
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 400) throw error;
    const refused: Ending = {
      kind: 'fail',
      code: 'result_refused',
      message: error.message.slice(0, 500),
      retryable: true,
    };
    return report(run, refused, end);
  }
}
