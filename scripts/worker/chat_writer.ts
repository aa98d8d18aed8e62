import { setTimeout as sleep } from 'node:timers/promises';
import type { Written } from './chat_schemas.ts';
import { redactingStream } from './redact.ts';

/** People watch the revisions: more than ten a second help nobody. */
const WRITE_INTERVAL_MS = 100;
/** One write, in UTF-16 units; well below the limit of the API. */
const MAX_WRITE_LENGTH = 50_000;
/** The API stores 1 MiB of JSON for a message, and refuses more. */
const MAX_REPLY_BYTES = 1_000_000;
/** A turn starts once, and nobody else writes its reply: it begins at this revision. */
const FIRST_REVISION = 1;

/** The reply is longer than a message can be. */
export class ReplyTooLongError extends Error {
  override name = 'ReplyTooLongError';
  constructor() {
    super('The reply is longer than a message can be');
  }
}

export type ReplyWriter = Readonly<{
  /** Appends text to the reply, sent at once or with what follows. After `end` it is dropped. */
  append: (text: string) => void;
  /** Aborted, with the reason, when the reply cannot go on. */
  signal: AbortSignal;
  /** Whether anything was written. */
  empty: () => boolean;
  /** Resolves when all is sent. @throws what `send` threw, or ReplyTooLongError */
  end: () => Promise<void>;
}>;

/** Up to `length` of it, but not between the halves of a character. */
function wholeLength(text: string, length: number): number {
  const last = text.charCodeAt(length - 1);
  return last >= 0xd800 && last <= 0xdbff ? length - 1 : length;
}

/**
 * Streams a reply as revisions: the first text at once, the rest in one write each `writeIntervalMs`, each based on the
 * revision that the previous write returned. `send` repeats a write until it gets a response. After a cancel nothing more
 * is written, and `onCancelled` is called.
 */
export function replyWriter(options: {
  send: (baseRevision: number, append: string) => Promise<Written>;
  onCancelled: () => void;
  writeIntervalMs?: number;
  /** Left out of the reply, also where one comes in pieces. */
  secrets?: readonly string[];
}): ReplyWriter {
  const { send, onCancelled, writeIntervalMs = WRITE_INTERVAL_MS } = options;
  const redacting = redactingStream(options.secrets ?? []);
  const broken = new AbortController();
  const ending = new AbortController();
  let revision = FIRST_REVISION;
  let waiting = '';
  /** The first half of a character whose second half is still to come. */
  let half = '';
  let bytes = 0;
  let cancelled = false;
  let writing: Promise<void> | undefined;

  async function write(): Promise<void> {
    while (waiting !== '' && !cancelled && !broken.signal.aborted) {
      const length = wholeLength(waiting, Math.min(waiting.length, MAX_WRITE_LENGTH));
      const text = waiting.slice(0, length);
      waiting = waiting.slice(length);
      const written = await send(revision, text);
      revision = written.revision;
      if (written.status !== 'pending') {
        cancelled = true;
        onCancelled();
        return;
      }
      await sleep(writeIntervalMs, undefined, { signal: ending.signal }).catch(() => {});
    }
  }

  function start(): void {
    writing ??= write()
      .catch((error: unknown) => broken.abort(error))
      .finally(() => {
        writing = undefined;
        // What came while the last write ended.
        if (waiting !== '' && !cancelled && !broken.signal.aborted) start();
      });
  }

  function take(text: string): void {
    // A message holds no half of a character.
    const given = half + text;
    const whole = wholeLength(given, given.length);
    half = given.slice(whole);
    const clean = given.slice(0, whole).toWellFormed();
    if (clean === '' || broken.signal.aborted || ending.signal.aborted || cancelled) return;
    bytes += Buffer.byteLength(clean);
    if (bytes > MAX_REPLY_BYTES) {
      broken.abort(new ReplyTooLongError());
      return;
    }
    waiting += clean;
    start();
  }

  return {
    // Nor does it hold a NUL.
    append: (text) => take(redacting.next(text.replaceAll('\0', ''))),
    signal: broken.signal,
    empty: () => bytes === 0,
    async end() {
      take(redacting.end());
      ending.abort();
      while (writing) await writing;
      broken.signal.throwIfAborted();
    },
  };
}
