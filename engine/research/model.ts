import { createParser } from 'eventsource-parser';
import { z } from 'zod';
import { modelContentSchema } from '../model_content.ts';
import { NetError, type WebClient, type WebResponse } from '../net/index.ts';
import type { ModelSettings } from './model_settings.ts';

export type ModelMessage = Readonly<{ role: 'system' | 'user'; content: string }>;

/** The model did not do its part; the message is for people, and names no secret. */
export class ModelError extends Error {
  override name = 'ModelError';
}

const MAX_REPLY_CHARACTERS = 256 * 1024;
/** Each word comes with a few hundred bytes around it. */
const MAX_BYTES = 16 * 1024 * 1024;
/** A large model thinks for a while before its first word. */
const IDLE_MS = 60_000;
export const MODEL_MS = 120_000;

const delta = z.object({
  choices: z.array(z.object({ delta: z.object({ content: modelContentSchema.nullish() }).nullish() })).default([]),
  error: z.unknown().optional(),
});
const whole = z.object({ choices: z.array(z.object({ message: z.object({ content: modelContentSchema }) })).min(1) });

function address(url: string): string {
  return /\/chat\/completions\/?$/.test(url) ? url : `${url.replace(/(?<!\/)\/+$/, '')}/chat/completions`;
}

function parse<S extends z.ZodType>(text: string, schema: S): z.output<S> {
  try {
    return schema.parse(JSON.parse(text));
  } catch (error) {
    throw new ModelError('The model replies in a form that is not that of chat completions.', { cause: error });
  }
}

/** The words of a stream of chat completions, in order. */
async function streamed(response: WebResponse): Promise<string> {
  let text = '';
  let done = false;
  const parser = createParser({
    onEvent({ data }) {
      if (done) return;
      if (data === '[DONE]') {
        done = true;
        return;
      }
      const part = parse(data, delta);
      if (part.error !== undefined) throw new ModelError('The model broke off with an error.');
      text += part.choices[0]?.delta?.content ?? '';
      if (text.length > MAX_REPLY_CHARACTERS) throw new ModelError('The reply of the model is too long.');
    },
  });
  const decoder = new TextDecoder();
  for await (const chunk of response.body) {
    parser.feed(decoder.decode(chunk, { stream: true }));
    if (done) break;
  }
  // Some servers close without a last word; half a reply shows itself when it is read.
  return text;
}

async function inOnePiece(response: WebResponse): Promise<string> {
  let text = '';
  const decoder = new TextDecoder();
  for await (const chunk of response.body) {
    text += decoder.decode(chunk, { stream: true });
    if (text.length > 2 * MAX_REPLY_CHARACTERS) throw new ModelError('The reply of the model is too long.');
  }
  return parse(text, whole).choices[0]?.message.content ?? '';
}

/**
 * Asks the model once, streamed, so that a silent one is noticed.
 * @param client one that may reach private addresses: the operator chose this server, and may run it next door
 * @throws ModelError, or the signal's reason
 */
export async function askModel(
  client: WebClient,
  settings: ModelSettings,
  messages: readonly ModelMessage[],
  options: Readonly<{ signal?: AbortSignal | undefined; totalMs?: number; idleMs?: number }> = {},
): Promise<string> {
  const { signal, totalMs = MODEL_MS, idleMs = IDLE_MS } = options;
  try {
    const response = await client.fetch(address(settings.url), {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'text/event-stream, application/json;q=0.5',
        ...(settings.key === undefined ? {} : { authorization: `Bearer ${settings.key}` }),
      },
      body: JSON.stringify({ model: settings.model, messages, stream: true, temperature: 0 }),
      signal,
      totalMs,
      idleMs: Math.min(idleMs, totalMs),
      maxBytes: MAX_BYTES,
    });
    if (response.status !== 200) {
      response.discard();
      throw new ModelError(`The model responds with status ${response.status}.`);
    }
    return /event-stream/i.test(response.headers['content-type'] ?? '')
      ? await streamed(response)
      : await inOnePiece(response);
  } catch (error) {
    signal?.throwIfAborted();
    // Where it runs is the operator's business: that stays in the cause, for the log.
    if (error instanceof NetError) {
      const late = error.reason === 'timed_out';
      throw new ModelError(late ? 'The model did not respond in time.' : 'The model cannot be reached.', {
        cause: error,
      });
    }
    throw error;
  }
}
