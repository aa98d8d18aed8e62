import { type ChatEvent, chatEvents, type StreamedMessage, streamedText } from '../chat_events.ts';
import type { Recorder } from './facts.ts';
import type { Random } from './random.ts';

const FINAL = ['complete', 'failed', 'cancelled'];

/** The last that a reader saw of a message; the database is asked whether that is its last revision. */
export type LastSeen = Readonly<{ messageId: string; revision: number; status: string; text: string }>;

export type ChatReader = Readonly<{
  /** What it saw last of each message, in their order. */
  lastSeen: () => readonly LastSeen[];
  /** Resolves when the message was seen like that. */
  until: (messageId: string, like: (seen: LastSeen) => boolean) => Promise<void>;
}>;

export function isFinal({ status }: Pick<LastSeen, 'status'>): boolean {
  return FINAL.includes(status);
}

/** What may follow upon what; a rule for each thing that may not. */
function judge(before: LastSeen | undefined, seen: LastSeen, event: ChatEvent): string | undefined {
  if (event.id !== `${seen.messageId}:${seen.revision}`) return 'an event is named by its message and revision';
  if (!before) return undefined;
  const same = before.revision === seen.revision && before.status === seen.status && before.text === seen.text;
  // Who comes back after the last of one message is shown that again, before the next message.
  if (isFinal(before)) return same ? undefined : 'nothing follows upon the end of a reply';
  if (before.revision >= seen.revision) return 'revisions rise, also over connections';
  if (!seen.text.startsWith(before.text)) return 'the text of a reply only grows';
  return undefined;
}

export type ReaderOptions = Readonly<{
  name: string;
  urls: readonly string[];
  path: string;
  random: Random;
  recorder: Recorder;
  /** Leaves its connection every now and then. */
  restless: boolean;
  signal: AbortSignal;
}>;

/**
 * A person who follows a chat, now through this API, now through that one, and comes back with `Last-Event-ID`. Returns
 * the reader, and a promise that rejects when it cannot go on.
 */
export function readChat(options: ReaderOptions): { reader: ChatReader; reading: Promise<void> } {
  const { name, urls, path, random, recorder, restless, signal } = options;
  const seenOf = new Map<string, LastSeen>();
  const waiting = new Set<() => void>();
  let current: string | undefined;
  let lastEventId: string | undefined;

  function take(event: ChatEvent, message: StreamedMessage): void {
    const { id: messageId, revision, status } = message;
    const seen = { messageId, revision, status, text: streamedText(message) };
    const before = seenOf.get(messageId);
    const left = before !== undefined && current !== messageId;
    const rule = left ? 'a message that was left does not come back' : judge(before, seen, event);
    if (rule) recorder.violation(rule, { reader: name, path, lastEventId, before, seen, event: event.id });
    current = messageId;
    lastEventId = event.id;
    seenOf.set(messageId, seen);
    for (const look of waiting) look();
  }

  async function connectOnce(): Promise<void> {
    const leaving = restless ? AbortSignal.timeout(random.between(50, 2_500)) : undefined;
    const events = chatEvents({
      url: () => `${random.pick(urls)}${path}`,
      lastEventId,
      retryMs: () => random.between(20, 300),
      signal: leaving ? AbortSignal.any([signal, leaving]) : signal,
    });
    try {
      for await (const event of events) if (event.message) take(event, event.message);
    } catch (error) {
      if (!leaving?.aborted) throw error;
      recorder.count('an event stream left');
    }
  }

  async function read(): Promise<void> {
    while (!signal.aborted) {
      try {
        await connectOnce();
      } catch (error) {
        if (signal.aborted) return;
        throw error;
      }
    }
  }

  const reader: ChatReader = {
    lastSeen: () => [...seenOf.values()],
    until(messageId, like) {
      return new Promise((resolve, reject) => {
        const stop = () => {
          waiting.delete(look);
          reject(signal.reason);
        };
        const look = () => {
          const seen = seenOf.get(messageId);
          if (!seen || !like(seen)) return;
          waiting.delete(look);
          signal.removeEventListener('abort', stop);
          resolve();
        };
        signal.addEventListener('abort', stop, { once: true });
        waiting.add(look);
        look();
      });
    },
  };
  return { reader, reading: read() };
}
