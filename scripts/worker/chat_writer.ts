import { setTimeout as sleep } from 'node:timers/promises';
import type { Written } from './chat_schemas.ts';

/** Revisions are for eyes: more of them a second than this helps nobody. */
const EVERY_MS = 100;
/** Of one write, in UTF-16 units; well below what the API takes in one. */
const LONGEST_WRITE = 50_000;
/** The API keeps 1 MiB a message, as JSON: what is longer is refused there, at the latest. */
const LONGEST_BYTES = 1_000_000;
/** A turn is started once, and nobody else writes its answer: this is where it begins. */
const FIRST_REVISION = 1;

/** The answer is longer than a message can be. */
export class AnswerTooLongError extends Error {
  override name = 'AnswerTooLongError';
  constructor() {
    super('The answer is longer than a message can be');
  }
}

export type AnswerWriter = Readonly<{
  /** Adds text to the answer: sent at once or with what follows. After the end it is dropped. */
  append: (text: string) => void;
  /** Aborted, with the reason, when the answer cannot go on. */
  signal: AbortSignal;
  /** Whether anything was written. */
  empty: () => boolean;
  /** Resolves when all is sent. @throws what `send` threw, or AnswerTooLongError */
  end: () => Promise<void>;
}>;

/** Up to `length` of it, but not between the halves of a character. */
function wholeLength(text: string, length: number): number {
  const last = text.charCodeAt(length - 1);
  return last >= 0xd800 && last <= 0xdbff ? length - 1 : length;
}

/**
 * Streams an answer as revisions: the first text at once, what follows gathered to one write each `everyMs`, each upon the
 * revision that the one before was answered with. `send` repeats a write until it is answered. After a cancel nothing is
 * written any more, and `onCancelled` is called.
 */
export function answerWriter(options: {
  send: (baseRevision: number, append: string) => Promise<Written>;
  onCancelled: () => void;
  everyMs?: number;
}): AnswerWriter {
  const { send, onCancelled, everyMs = EVERY_MS } = options;
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
      const length = wholeLength(waiting, Math.min(waiting.length, LONGEST_WRITE));
      const text = waiting.slice(0, length);
      waiting = waiting.slice(length);
      const written = await send(revision, text);
      revision = written.revision;
      if (written.status !== 'pending') {
        cancelled = true;
        onCancelled();
        return;
      }
      await sleep(everyMs, undefined, { signal: ending.signal }).catch(() => {});
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

  return {
    append(text) {
      // A message holds no NUL and no half of a character.
      const given = half + text.replaceAll('\0', '');
      const whole = wholeLength(given, given.length);
      half = given.slice(whole);
      const clean = given.slice(0, whole).toWellFormed();
      if (clean === '' || broken.signal.aborted || ending.signal.aborted || cancelled) return;
      bytes += Buffer.byteLength(clean);
      if (bytes > LONGEST_BYTES) {
        broken.abort(new AnswerTooLongError());
        return;
      }
      waiting += clean;
      start();
    },
    signal: broken.signal,
    empty: () => bytes === 0,
    async end() {
      ending.abort();
      while (writing) await writing;
      broken.signal.throwIfAborted();
    },
  };
}
