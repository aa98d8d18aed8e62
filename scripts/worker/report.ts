import { createHash, randomUUID } from 'node:crypto';
import { ApiError, isRetryable, type Lease } from './api.ts';
import type { CommandEnd } from './command.ts';
import type { TaskRun, WorkerContext } from './context.ts';
import type { HeldLease } from './lease.ts';
import { OutcomeError, stageOutcome } from './outcome.ts';
import { uploadOutputs } from './outputs.ts';
import { type CommandResult, ResultError, readResult, readUsage, type Usage } from './result_files.ts';
import { retry } from './retry.ts';
import { WorkspaceError } from './workspace.ts';

export const HARNESS = 'reference-worker';

/** A run is reported also when it was cancelled or stopped: only the end of the lease aborts these calls. */
export const NEVER = new AbortController().signal;

/** What a command that made files says, with them. */
type CompletedResult = Readonly<{ kind: 'completed'; summary: string; artifacts: readonly { path: string }[] }>;

/** What is reported of a run. */
export type Report =
  | Readonly<{ kind: 'complete'; result: CommandResult | CompletedResult }>
  | Readonly<{ kind: 'fail'; code: string; message: string; retryable: boolean }>;

/** What is reported of a command that failed, with what it last said of it. */
export function commandFailure(
  { exitCode, signal, errors }: CommandEnd,
  { lease }: HeldLease,
  { gate }: WorkerContext,
) {
  const how = signal ?? `exit status ${exitCode}`;
  const said = errors.text(lease.secrets ?? []);
  const why = said === '' ? how : `${how}:\n${said}`;
  if (gate.fails(exitCode)) {
    return {
      kind: 'fail',
      code: 'command_not_found',
      message: `The command cannot be started, ${why}`,
      retryable: true,
    } as const;
  }
  return { kind: 'fail', code: 'command_failed', message: `The command ended with ${why}`, retryable: true } as const;
}

/** Uploads what a command made. Its result file decides what is reported; without one its exit status does. */
export async function reportOf(run: TaskRun, end: CommandEnd): Promise<Report> {
  if (end.timedOut) {
    const message = `The command took longer than ${run.worker.options.timeoutMs / 1000} s`;
    return { kind: 'fail', code: 'command_timeout', message, retryable: true };
  }
  const result = await readResult(run.workspace.resultFile);
  if (result.kind === 'failed') return { ...result, kind: 'fail' };
  if (end.exitCode !== 0) return commandFailure(end, run.held, run.worker);
  const files = await uploadOutputs(run);
  if (result.kind !== 'completed') return { kind: 'complete', result };
  await stageOutcome(run);
  const uploaded = files.length === 1 ? '1 file' : `${files.length} files`;
  const summary = result.summary ?? `The command succeeded and uploaded ${uploaded}.`;
  return { kind: 'complete', result: { kind: 'completed', summary, artifacts: files.map(({ path }) => ({ path })) } };
}

/** What is reported of a run whose work failed. */
export function failureReport(error: unknown, held: HeldLease): Report {
  if (held.ended() === 'cancelled') {
    return { kind: 'fail', code: 'cancelled', message: 'The run was cancelled', retryable: false };
  }
  if (held.ended() === 'stopped') {
    return { kind: 'fail', code: 'worker_stopped', message: 'The worker was stopped', retryable: true };
  }
  const fail = (code: string, message: string): Report => {
    return { kind: 'fail', code, message: message.slice(0, 500), retryable: true };
  };
  if (error instanceof WorkspaceError) return fail('workspace_failed', error.message);
  if (error instanceof OutcomeError) return fail('outcome_refused', error.message);
  if (error instanceof ResultError) return fail('result_invalid', error.message);
  if (error instanceof ApiError) return fail('worker_error', error.message);
  // The message of a system error names paths of this machine: it stays here.
  const name = error instanceof Error && 'code' in error ? error.code : error instanceof Error ? error.name : 'unknown';
  return fail('worker_error', `The worker failed (${name})`);
}

/** The rest is what the command said, which is on the screen already. */
export const firstLine = (text: string): string => text.split('\n', 1)[0]?.replace(/:$/, '') ?? '';

export function workspaceUriOf({ organizationId, runId }: Lease): string {
  return `org://${organizationId}/runs/${runId}/workspace`;
}

function receiptsOf(command: string, end: CommandEnd | undefined): object[] {
  if (!end) return [];
  const commandHash = createHash('sha256').update(command).digest('hex');
  const status = end.exitCode === 0 ? 'succeeded' : 'failed';
  return [{ kind: 'command', id: randomUUID(), commandHash, status, exitCode: end.exitCode ?? 128 }];
}

/** Sends a report until it gets a response; a result that is refused as malformed becomes a failure. */
export async function sendReport(run: TaskRun, report: Report, end: CommandEnd | undefined): Promise<string> {
  const { held, worker, logs } = run;
  const noUsage: Usage = { inputTokens: 0, outputTokens: 0, toolCalls: 0 };
  const usage = await readUsage(run.workspace.usageFile).catch(() => noUsage);
  await logs.flush();
  const common = { usage, harness: HARNESS, logState: logs.logState() };
  const options = { isRetryable, deadline: held.deadline, signal: NEVER };
  const call = { signal: NEVER };
  if (report.kind === 'fail') {
    const { kind: _, ...error } = report;
    return retry(() => worker.api.fail(held.lease, { error, ...common }, call), options);
  }
  const output = { kind: 'task_result', result: report.result };
  const receipts = receiptsOf(worker.options.command, end);
  const body = { output, receipts, workspaceUri: workspaceUriOf(held.lease), ...common };
  try {
    return await retry(() => worker.api.complete(held.lease, body, call), options);
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 400) throw error;
    const refused: Report = {
      kind: 'fail',
      code: 'result_refused',
      message: error.message.slice(0, 500),
      retryable: true,
    };
    return sendReport(run, refused, end);
  }
}
