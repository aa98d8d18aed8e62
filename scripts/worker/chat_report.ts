import { ApiError, isRetryable } from './api.ts';
import { ReplyTooLongError } from './chat_writer.ts';
import type { ChatTurn } from './context.ts';
import type { HeldLease } from './lease.ts';
import { failureReport, HARNESS, NEVER, workspaceUriOf } from './report.ts';
import type { Usage } from './result_files.ts';
import { retry } from './retry.ts';

/** What is reported of a turn. `parts`, where given, replace what was written. */
export type TurnReport = Readonly<
  (
    | { kind: 'complete'; parts?: readonly object[]; summary?: string; harnessSessionId?: string }
    | { kind: 'fail'; code: string; message: string; retryable: boolean }
  ) & { usage?: Usage }
>;

const REFUSED = { kind: 'fail', code: 'reply_refused', retryable: false } as const;

/** What is reported of a turn that failed. @throws ApiError 409 when its lease is lost: then nothing can be reported. */
export function turnFailureReport(error: unknown, held: HeldLease): TurnReport {
  if (error instanceof ApiError && error.status === 409) throw error;
  if (held.ended() === 'lost') throw new ApiError(409, 'run_lease_expired', 'lease_lost', 'the lease is over');
  if (held.ended() === null && error instanceof ReplyTooLongError)
    return { kind: 'fail', code: 'reply_too_long', message: error.message, retryable: false };
  if (held.ended() === null && error instanceof ApiError && error.status === 400)
    return { ...REFUSED, message: error.message.slice(0, 500) };
  const report = failureReport(error, held);
  if (report.kind !== 'fail') throw new Error('a failure is reported as a failure');
  return report;
}

/** Sends a report until it gets a response; a reply that is refused as malformed becomes a failure. */
export async function sendTurnReport(turn: ChatTurn, report: TurnReport): Promise<string> {
  const { held, worker } = turn;
  const { kind, usage, ...fields } = report;
  const common = { harness: HARNESS, ...(usage ? { usage } : {}) };
  const options = { isRetryable, deadline: held.deadline, signal: NEVER };
  const call = { signal: NEVER };
  if (kind === 'fail') return retry(() => worker.api.fail(held.lease, { error: fields, ...common }, call), options);
  const workspaceUri = workspaceUriOf(held.lease);
  const body = { output: { ...fields, kind: 'chat_message' }, workspaceUri, ...common };
  try {
    return await retry(() => worker.api.complete(held.lease, body, call), options);
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 400) throw error;
    return sendTurnReport(turn, { ...REFUSED, message: error.message.slice(0, 500), ...(usage ? { usage } : {}) });
  }
}
