import type { ChatClaim } from './api.ts';
import { replyByCommand } from './chat_command.ts';
import { replyByModel } from './chat_model.ts';
import { sendTurnReport, type TurnReport, turnFailureReport } from './chat_report.ts';
import { replyWriter } from './chat_writer.ts';
import type { ChatTurn, WorkerContext } from './context.ts';
import { formatSeconds } from './duration.ts';
import type { HeldLease } from './lease.ts';
import { sendUnderLease, workUnderLease } from './leased_work.ts';
import { firstLine, HARNESS, workspaceUriOf } from './report.ts';

/** Marks the run as running, and writes the whole reply. @throws ApiError 409 when the lease is lost */
async function reply(turn: ChatTurn): Promise<TurnReport> {
  const { held, writer, worker, send } = turn;
  try {
    const body = { harness: HARNESS, model: worker.options.model, workspaceUri: workspaceUriOf(held.lease) };
    await send((signal) => worker.api.running(held.lease, body, { signal }));
    const conversation = await send((signal) => worker.api.conversation(held.lease, { signal }));
    const { llm } = worker.options;
    const report = await (llm ? replyByModel(turn, conversation, llm) : replyByCommand(turn, conversation));
    await writer.end();
    // A command that was killed has no result of its own: the lease says why.
    held.signal.throwIfAborted();
    if (report.kind === 'complete' && !report.parts && writer.empty())
      return { ...report, kind: 'fail', code: 'reply_empty', message: 'There was no reply', retryable: true };
    return report;
  } catch (error) {
    // Nothing may be written after the report.
    await writer.end().catch(() => {});
    return turnFailureReport(writer.signal.aborted ? writer.signal.reason : error, held);
  }
}

function turnOf(
  claim: ChatClaim,
  name: string,
  executionToken: string,
  held: HeldLease,
  worker: WorkerContext,
): ChatTurn {
  const send = sendUnderLease(held, name, worker);
  const writer = replyWriter({
    send: (revision, append) => send((signal) => worker.api.appendToMessage(held.lease, revision, append, { signal })),
    onCancelled: held.cancel,
    secrets: held.lease.secrets ?? [],
  });
  const signal = AbortSignal.any([held.signal, writer.signal]);
  return { name, claim, held, writer, executionToken, worker, signal, send };
}

async function perform(turn: ChatTurn): Promise<boolean> {
  const { worker, name } = turn;
  const begun = performance.now();
  const report = await reply(turn);
  const status = await sendTurnReport(turn, report);
  const why = report.kind === 'fail' ? `: ${firstLine(report.message)}` : '';
  worker.print(`${name}  ${status}${why} (${formatSeconds(performance.now() - begun)})`);
  return status === 'succeeded';
}

/**
 * One chat turn from its start to its report. Never throws: whatever goes wrong is printed, and reported while the lease
 * holds. True when the message got its reply.
 */
export function performTurn(claim: ChatClaim, worker: WorkerContext): Promise<boolean> {
  const name = `chat ${claim.chat.chatId.slice(-8)}`;
  return workUnderLease(claim, name, worker, (held, executionToken) => {
    worker.print(`${name}  started: ${claim.chat.title}`);
    return perform(turnOf(claim, name, executionToken, held, worker));
  });
}
