import { EventSourceParserStream } from 'eventsource-parser/stream';
import { z } from 'zod';
import { modelContentSchema } from '../../engine/model_content.ts';
import { type FileContents, readFiles } from './chat_files.ts';
import type { TurnReport } from './chat_report.ts';
import type { Conversation } from './chat_schemas.ts';
import { modelMessages } from './chat_text.ts';
import type { ChatTurn } from './context.ts';
import type { LlmOptions } from './options.ts';
import type { Usage } from './result_files.ts';
import { errorText } from './retry.ts';

/** The longest event; a piece of a reply has a few hundred characters. */
const MAX_EVENT_LENGTH = 1024 * 1024;
const MAX_REASON_LENGTH = 300;

/** The model gave no reply; becomes the error of the message. */
class ModelError extends Error {
  override name = 'ModelError';
  readonly code: string;
  readonly retryable: boolean;
  constructor(code: string, message: string, retryable: boolean) {
    super(message);
    this.code = code;
    this.retryable = retryable;
  }
}

const errorSchema = z.looseObject({ error: z.union([z.string(), z.looseObject({ message: z.string() })]) });
const count = z.int().min(0).catch(0);
const chunkSchema = z.looseObject({
  choices: z
    .array(
      z.looseObject({
        delta: z.looseObject({ content: modelContentSchema.nullish() }).nullish(),
        finish_reason: z.string().nullish(),
      }),
    )
    .nullish(),
  usage: z.looseObject({ prompt_tokens: count, completion_tokens: count }).nullish(),
});

/** The endpoint's own error message, without the key, which some endpoints repeat. */
function reasonIn(body: unknown, key: string | undefined): string {
  const { data } = errorSchema.safeParse(body);
  if (!data) return '';
  const said = typeof data.error === 'string' ? data.error : data.error.message;
  const safe = key ? said.replaceAll(key, '…') : said;
  return `: ${safe.replace(/[\p{Cc}\s]+/gu, ' ').slice(0, MAX_REASON_LENGTH)}`;
}

async function refusal(response: Response, key: string | undefined): Promise<ModelError> {
  const { status } = response;
  if (status === 401 || status === 403) {
    await response.body?.cancel();
    return new ModelError('model_refused', `The model's endpoint refused the key (HTTP ${status})`, false);
  }
  const text = await response.text();
  const body = (() => {
    try {
      return JSON.parse(text.slice(0, MAX_EVENT_LENGTH));
    } catch {
      return undefined;
    }
  })();
  const why = `HTTP ${status}${reasonIn(body, key)}`;
  if (status === 429) return new ModelError('model_busy', `The model takes no more requests now (${why})`, true);
  if (status >= 500) return new ModelError('model_failed', `The model's endpoint failed (${why})`, true);
  return new ModelError('model_refused', `The model's endpoint refused the request (${why})`, status === 408);
}

/** Aborts `ms` after the last `refresh`. */
function idleTimeout(ms: number) {
  const controller = new AbortController();
  const expire = () =>
    controller.abort(new ModelError('model_timeout', `The model was silent for ${ms / 1000} s`, true));
  const timer = setTimeout(expire, ms);
  return { signal: controller.signal, refresh: () => timer.refresh(), clear: () => clearTimeout(timer) };
}

function parseChunk(data: string, key: string | undefined) {
  const invalid = () => new ModelError('model_invalid', 'The model sent what is no piece of a reply', true);
  let value: unknown;
  try {
    value = JSON.parse(data);
  } catch {
    throw invalid();
  }
  if (errorSchema.safeParse(value).success)
    throw new ModelError('model_failed', `The model broke off${reasonIn(value, key)}`, true);
  const { data: chunk } = chunkSchema.safeParse(value);
  if (!chunk) throw invalid();
  return chunk;
}

/** Reads the stream to its end. Returns the usage, where the endpoint reports it. */
async function readReply(turn: ChatTurn, body: ReadableStream<Uint8Array>, options: LlmOptions, onData: () => void) {
  const events = body.pipeThrough(new TextDecoderStream()).pipeThrough(
    // A comment says that the endpoint still works on it.
    new EventSourceParserStream({ maxBufferSize: MAX_EVENT_LENGTH, onError: 'terminate', onComment: onData }),
  );
  let finished: string | undefined;
  let usage: Usage | undefined;
  for await (const { data } of events) {
    onData();
    if (data === '[DONE]') {
      finished ??= 'stop';
      break;
    }
    const chunk = parseChunk(data, options.key);
    const [choice] = chunk.choices ?? [];
    if (choice?.delta?.content) turn.writer.append(choice.delta.content);
    finished = choice?.finish_reason ?? finished;
    const { prompt_tokens: inputTokens = 0, completion_tokens: outputTokens = 0 } = chunk.usage ?? {};
    if (chunk.usage) usage = { inputTokens, outputTokens, toolCalls: 0 };
  }
  return { finished, usage };
}

/** Tells an abort of the turn from a time-out of ours and from a failure of the endpoint. */
function failureOf(error: unknown, turn: ChatTurn, limits: AbortSignal): ModelError {
  turn.signal.throwIfAborted();
  if (limits.aborted && limits.reason instanceof ModelError) return limits.reason;
  if (error instanceof ModelError) return error;
  if (error instanceof Error && error.name === 'ParseError')
    return new ModelError('model_invalid', 'The model sent what is no event stream', true);
  // fetch throws a TypeError; anything else is a bug here.
  if (!(error instanceof TypeError)) throw error;
  const reached = error.message !== 'fetch failed';
  const code = reached ? 'model_broke_off' : 'model_unreachable';
  const what = reached ? 'The connection to the model broke off' : "The model's endpoint was not reached";
  turn.worker.print(`${turn.name}  ${what}: ${errorText(error)}`);
  return new ModelError(code, what, true);
}

async function requestReply(
  turn: ChatTurn,
  conversation: Conversation,
  files: FileContents,
  options: LlmOptions,
  signal: AbortSignal,
  onData: () => void,
) {
  const { url, model, key, instructions } = options;
  const response = await fetch(`${url}/chat/completions`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'text/event-stream',
      ...(key ? { authorization: `Bearer ${key}` } : {}),
    },
    body: JSON.stringify({
      model,
      messages: modelMessages(conversation, turn.claim.agentProfile.name, instructions, files),
      stream: true,
      stream_options: { include_usage: true },
    }),
    // The key must not follow a redirect to another host.
    redirect: 'manual',
    signal,
  });
  onData();
  if (!response.ok) throw await refusal(response, key);
  if (!response.headers.get('content-type')?.startsWith('text/event-stream') || !response.body) {
    await response.body?.cancel();
    throw new ModelError('model_invalid', "The model's endpoint sent no event stream", false);
  }
  return readReply(turn, response.body, options, onData);
}

/**
 * Replies through an OpenAI-compatible endpoint of chat completions, streamed. When the turn has to stop, the request is
 * aborted: nobody pays for tokens that nobody reads.
 * @throws the reason of `turn.signal` when that aborted
 */
export async function replyByModel(
  turn: ChatTurn,
  conversation: Conversation,
  options: LlmOptions,
): Promise<TurnReport> {
  // Before the time-outs of the model start.
  const files = await readFiles(turn, conversation, options.images);
  const { code, message } = {
    code: 'model_timeout',
    message: `The model took longer than ${options.timeoutMs / 1000} s`,
  };
  const whole = new AbortController();
  const timer = setTimeout(() => whole.abort(new ModelError(code, message, true)), options.timeoutMs);
  const idle = idleTimeout(options.silenceMs);
  const limits = AbortSignal.any([whole.signal, idle.signal]);
  const signal = AbortSignal.any([turn.signal, limits]);
  try {
    const { finished, usage } = await requestReply(turn, conversation, files, options, signal, idle.refresh);
    if (finished === undefined) throw new ModelError('model_broke_off', 'The model broke off in the middle', true);
    const used = usage ? { usage } : {};
    if (finished === 'content_filter') {
      const why = 'The endpoint of the model holds back the reply';
      return { kind: 'fail', code: 'model_filtered', message: why, retryable: false, ...used };
    }
    return { kind: 'complete', ...used };
  } catch (error) {
    const { code, message, retryable } = failureOf(error, turn, limits);
    return { kind: 'fail', code, message, retryable };
  } finally {
    idle.clear();
    clearTimeout(timer);
  }
}
