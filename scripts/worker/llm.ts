import { EventSourceParserStream } from 'eventsource-parser/stream';
import { z } from 'zod';
import type { Turn, TurnEnd } from './chat.ts';
import { type FileContents, readFiles } from './chat_files.ts';
import type { Conversation } from './chat_schemas.ts';
import { modelMessages } from './chat_text.ts';
import type { Usage } from './result.ts';
import { reasonOf } from './retry.ts';

/** Of one event; a piece of an answer has a few hundred. */
const LONGEST_EVENT = 1024 * 1024;
const LONGEST_REASON = 300;

export type LlmOptions = Readonly<{
  /** Where `/chat/completions` lies below. */
  url: string;
  model: string;
  /** Sent as a bearer token, where there is one. */
  key: string | undefined;
  /** In the place of the usual first words to the model. */
  instructions: string | undefined;
  /** Whether the model takes images. */
  images: boolean;
  /** The longest silence: before the answer begins, and between its pieces. */
  silenceMs: number;
  /** The longest time for an answer. */
  timeoutMs: number;
}>;

/** The model gave no answer; in the words of the message's error. */
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
        delta: z.looseObject({ content: z.string().nullish() }).nullish(),
        finish_reason: z.string().nullish(),
      }),
    )
    .nullish(),
  usage: z.looseObject({ prompt_tokens: count, completion_tokens: count }).nullish(),
});

/** What an endpoint says is wrong, without the key, which some of them repeat. */
function reasonIn(body: unknown, key: string | undefined): string {
  const { data } = errorSchema.safeParse(body);
  if (!data) return '';
  const said = typeof data.error === 'string' ? data.error : data.error.message;
  const safe = key ? said.replaceAll(key, '…') : said;
  return `: ${safe.replace(/[\p{Cc}\s]+/gu, ' ').slice(0, LONGEST_REASON)}`;
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
      return JSON.parse(text.slice(0, LONGEST_EVENT));
    } catch {
      return undefined;
    }
  })();
  const why = `HTTP ${status}${reasonIn(body, key)}`;
  if (status === 429) return new ModelError('model_busy', `The model takes no more requests now (${why})`, true);
  if (status >= 500) return new ModelError('model_failed', `The model's endpoint failed (${why})`, true);
  return new ModelError('model_refused', `The model's endpoint refused the request (${why})`, status === 408);
}

/** Aborts when nothing was heard for `ms`. */
function silence(ms: number) {
  const over = new AbortController();
  const late = () => over.abort(new ModelError('model_timeout', `The model was silent for ${ms / 1000} s`, true));
  const timer = setTimeout(late, ms);
  return { signal: over.signal, heard: () => timer.refresh(), end: () => clearTimeout(timer) };
}

function parseChunk(data: string, key: string | undefined) {
  const invalid = () => new ModelError('model_invalid', 'The model sent what is no piece of an answer', true);
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

/** Reads the stream to its end. Returns what was used, as far as it was said. */
async function read(turn: Turn, body: ReadableStream<Uint8Array>, options: LlmOptions, heard: () => void) {
  const events = body
    .pipeThrough(new TextDecoderStream())
    .pipeThrough(new EventSourceParserStream({ maxBufferSize: LONGEST_EVENT, onError: 'terminate' }));
  let finished: string | undefined;
  let usage: Usage | undefined;
  for await (const { data } of events) {
    heard();
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

/** An abort is the turn's own, ours for a silence, or the other side's: told apart by who asked for it. */
function failureOf(error: unknown, turn: Turn, limits: AbortSignal): ModelError {
  turn.signal.throwIfAborted();
  if (limits.aborted && limits.reason instanceof ModelError) return limits.reason;
  if (error instanceof ModelError) return error;
  if (error instanceof Error && error.name === 'ParseError')
    return new ModelError('model_invalid', 'The model sent what is no event stream', true);
  // What fetch throws; anything else is a mistake of ours.
  if (!(error instanceof TypeError)) throw error;
  const reached = error.message !== 'fetch failed';
  const code = reached ? 'model_broke_off' : 'model_unreachable';
  const what = reached ? 'The connection to the model broke off' : "The model's endpoint was not reached";
  turn.tools.say(`${turn.name}  ${what}: ${reasonOf(error)}`);
  return new ModelError(code, what, true);
}

async function ask(
  turn: Turn,
  conversation: Conversation,
  files: FileContents,
  options: LlmOptions,
  signal: AbortSignal,
  heard: () => void,
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
    // A key goes nowhere but where it was meant for.
    redirect: 'manual',
    signal,
  });
  heard();
  if (!response.ok) throw await refusal(response, key);
  if (!response.headers.get('content-type')?.startsWith('text/event-stream') || !response.body) {
    await response.body?.cancel();
    throw new ModelError('model_invalid', "The model's endpoint sent no event stream", false);
  }
  return read(turn, response.body, options, heard);
}

/**
 * Answers through an endpoint that speaks OpenAI's chat completions, as the model's words come. When the turn has to stop
 * the request is aborted, so that nobody pays for words that nobody reads.
 * @throws the reason of `turn.signal` when that aborted
 */
export async function answerByModel(turn: Turn, conversation: Conversation, options: LlmOptions): Promise<TurnEnd> {
  // Before the clocks of the model run.
  const files = await readFiles(turn, conversation, options.images);
  const { code, message } = {
    code: 'model_timeout',
    message: `The model took longer than ${options.timeoutMs / 1000} s`,
  };
  const whole = new AbortController();
  const timer = setTimeout(() => whole.abort(new ModelError(code, message, true)), options.timeoutMs);
  const quiet = silence(options.silenceMs);
  const limits = AbortSignal.any([whole.signal, quiet.signal]);
  const signal = AbortSignal.any([turn.signal, limits]);
  try {
    const { finished, usage } = await ask(turn, conversation, files, options, signal, quiet.heard);
    if (finished === undefined) throw new ModelError('model_broke_off', 'The model broke off in the middle', true);
    const used = usage ? { usage } : {};
    if (finished === 'content_filter') {
      const why = 'The endpoint of the model holds back the answer';
      return { kind: 'fail', code: 'model_filtered', message: why, retryable: false, ...used };
    }
    return { kind: 'complete', ...used };
  } catch (error) {
    const { code, message, retryable } = failureOf(error, turn, limits);
    return { kind: 'fail', code, message, retryable };
  } finally {
    quiet.end();
    clearTimeout(timer);
  }
}
