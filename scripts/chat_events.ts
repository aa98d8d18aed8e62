import { setTimeout as sleep } from 'node:timers/promises';
import { EventSourceParserStream } from 'eventsource-parser/stream';
import { z } from 'zod';

/** Until the server says otherwise. */
const RETRY_MS = 2_000;

const messageSchema = z.looseObject({
  id: z.string(),
  status: z.string(),
  revision: z.int(),
  parts: z.array(z.looseObject({ kind: z.string(), text: z.string().optional() })),
  error: z.looseObject({ code: z.string(), message: z.string() }).nullable(),
});
export type StreamedMessage = z.output<typeof messageSchema>;
const dataSchema = z.looseObject({ type: z.string(), message: messageSchema.optional() });

/** An event of a chat (docs/interface.md 6): `type` is chat.snapshot, chat.message or chat.closed. */
export type ChatEvent = Readonly<{ id: string | undefined; type: string; message: StreamedMessage | undefined }>;

/** The stream is refused. */
export class ChatEventsError extends Error {
  override name = 'ChatEventsError';
  readonly status: number;

  constructor(status: number) {
    super(`the events of the chat are refused (HTTP ${status})`);
    this.status = status;
  }
}

/** The text of a message. */
export function streamedText(message: StreamedMessage): string {
  return message.parts.map((part) => (part.kind === 'text' ? (part.text ?? '') : '')).join('');
}

/**
 * Follows the events of a chat until it is closed or `signal` aborts. A stream that breaks off, or a server that is away,
 * is connected to again with `Last-Event-ID`; `url` says each time where.
 * @throws ChatEventsError where the stream is refused, and the signal's reason
 */
export async function* chatEvents(options: {
  url: () => string;
  headers?: Readonly<Record<string, string>>;
  /** The event that was processed last, by another connection. */
  lastEventId?: string | undefined;
  /** Until the next try; default: what the server asks for. */
  retryMs?: () => number;
  signal: AbortSignal;
}): AsyncGenerator<ChatEvent> {
  const { signal } = options;
  let { lastEventId } = options;
  let retryMs = RETRY_MS;

  async function connect(): Promise<ReadableStream<Uint8Array> | null> {
    const resume = lastEventId === undefined ? {} : { 'last-event-id': lastEventId };
    const headers = { accept: 'text/event-stream', ...options.headers, ...resume };
    const response = await fetch(options.url(), { headers, signal });
    if (response.ok) return response.body;
    await response.body?.cancel();
    if (response.status === 503) return null;
    throw new ChatEventsError(response.status);
  }

  async function* events(): AsyncGenerator<ChatEvent> {
    const onRetry = (ms: number) => {
      retryMs = ms;
    };
    const parser = new EventSourceParserStream({ onRetry });
    const body = await connect();
    for await (const { id, data } of body?.pipeThrough(new TextDecoderStream()).pipeThrough(parser) ?? []) {
      const { type, message } = dataSchema.parse(JSON.parse(data));
      yield { id, type, message };
      // Processed: whoever asks for the next one is done with this one.
      lastEventId = id ?? lastEventId;
      if (type === 'chat.closed') return;
    }
  }

  for (;;) {
    try {
      for await (const event of events()) {
        yield event;
        if (event.type === 'chat.closed') return;
      }
    } catch (error) {
      signal.throwIfAborted();
      // What fetch throws, for a connection that is refused or breaks off.
      if (!(error instanceof TypeError)) throw error;
    }
    await sleep(options.retryMs?.() ?? retryMs, undefined, { signal });
  }
}
