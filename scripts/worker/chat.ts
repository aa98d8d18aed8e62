import { ApiError, type ChatClaim, mayBeSentAgain } from './api.ts';
import { answerByCommand } from './chat_command.ts';
import { AnswerTooLongError, type AnswerWriter, answerWriter } from './chat_writer.ts';
import { type Send, sender, workUnderLease } from './claimed.ts';
import { endingOfError, HARNESS, NEVER, workspaceUriOf } from './ending.ts';
import type { HeldLease } from './lease.ts';
import { answerByModel } from './llm.ts';
import type { Usage } from './result.ts';
import { retrying } from './retry.ts';
import { type RunTools, seconds } from './steps.ts';

/** A chat turn under its lease, and where its answer is written. */
export type Turn = Readonly<{
  name: string;
  claim: ChatClaim;
  held: HeldLease;
  writer: AnswerWriter;
  executionToken: string;
  tools: RunTools;
  /** Aborted as soon as whatever makes the answer has to stop. */
  signal: AbortSignal;
  /** Sends a call again until it is answered or the lease is over. */
  send: Send;
}>;

/** How a turn ends. `parts`, where given, take the place of what was written. */
export type TurnEnd = Readonly<
  (
    | { kind: 'complete'; parts?: readonly object[]; summary?: string; harnessSessionId?: string }
    | { kind: 'fail'; code: string; message: string; retryable: boolean }
  ) & { usage?: Usage }
>;

const REFUSED = { kind: 'fail', code: 'answer_refused', retryable: false } as const;

/** Why a turn could not be answered. @throws ApiError 409 when its lease is lost: there is nothing to report to anyone. */
function endOfError(error: unknown, held: HeldLease): TurnEnd {
  if (error instanceof ApiError && error.status === 409) throw error;
  if (held.ended() === 'lost') throw new ApiError(409, 'run_lease_expired', 'lease_lost', 'the lease is over');
  if (held.ended() === null && error instanceof AnswerTooLongError)
    return { kind: 'fail', code: 'answer_too_long', message: error.message, retryable: false };
  if (held.ended() === null && error instanceof ApiError && error.status === 400)
    return { ...REFUSED, message: error.message.slice(0, 500) };
  const ending = endingOfError(error, held);
  if (ending.kind !== 'fail') throw new Error('an error ends no turn well');
  return ending;
}

/** From running to the end of the answer, all of it written. @throws ApiError 409 when the lease is lost */
async function answer(turn: Turn): Promise<TurnEnd> {
  const { held, writer, tools, send } = turn;
  try {
    const body = { harness: HARNESS, model: tools.options.model, workspaceUri: workspaceUriOf(held.lease) };
    await send((signal) => tools.api.running(held.lease, body, { signal }));
    const conversation = await send((signal) => tools.api.conversation(held.lease, { signal }));
    const { llm } = tools.options;
    const end = await (llm ? answerByModel(turn, conversation, llm) : answerByCommand(turn, conversation));
    await writer.end();
    // A killed command's end is not its own: the reason is the lease's.
    held.signal.throwIfAborted();
    if (end.kind === 'complete' && !end.parts && writer.empty())
      return { ...end, kind: 'fail', code: 'answer_empty', message: 'There was no answer', retryable: true };
    return end;
  } catch (error) {
    // Nothing is written after the end was reported.
    await writer.end().catch(() => {});
    return endOfError(writer.signal.aborted ? writer.signal.reason : error, held);
  }
}

/** Sends how the turn ended until it is answered; an answer that is refused as malformed becomes a failure. */
async function report(turn: Turn, end: TurnEnd): Promise<string> {
  const { held, tools } = turn;
  const { kind, usage, ...fields } = end;
  const common = { harness: HARNESS, ...(usage ? { usage } : {}) };
  const again = { again: mayBeSentAgain, deadline: held.deadline, signal: NEVER };
  const call = { signal: NEVER };
  if (kind === 'fail') return retrying(() => tools.api.fail(held.lease, { error: fields, ...common }, call), again);
  const workspaceUri = workspaceUriOf(held.lease);
  const body = { output: { ...fields, kind: 'chat_message' }, workspaceUri, ...common };
  try {
    return await retrying(() => tools.api.complete(held.lease, body, call), again);
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 400) throw error;
    return report(turn, { ...REFUSED, message: error.message.slice(0, 500), ...(usage ? { usage } : {}) });
  }
}

function turnOf(claim: ChatClaim, name: string, executionToken: string, held: HeldLease, tools: RunTools): Turn {
  const send = sender(held, name, tools);
  const writer = answerWriter({
    send: (revision, append) => send((signal) => tools.api.appendToMessage(held.lease, revision, append, { signal })),
    onCancelled: held.cancel,
  });
  const signal = AbortSignal.any([held.signal, writer.signal]);
  return { name, claim, held, writer, executionToken, tools, signal, send };
}

async function perform(turn: Turn): Promise<boolean> {
  const { tools, name } = turn;
  const begun = performance.now();
  const end = await answer(turn);
  const status = await report(turn, end);
  const why = end.kind === 'fail' ? `: ${end.message}` : '';
  tools.say(`${name}  ${status}${why} (${seconds(performance.now() - begun)})`);
  return status === 'succeeded';
}

/**
 * One chat turn from its start to its report. Throws nothing: whatever goes wrong is said, and reported where the lease
 * still holds. True when the message was answered.
 */
export function performTurn(claim: ChatClaim, tools: RunTools): Promise<boolean> {
  const name = `chat ${claim.chat.chatId.slice(-8)}`;
  return workUnderLease(claim, name, tools, (held, executionToken) => {
    tools.say(`${name}  started: ${claim.chat.title}`);
    return perform(turnOf(claim, name, executionToken, held, tools));
  });
}
