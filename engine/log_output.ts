import { write, writeSync } from 'node:fs';
import type { DestinationStream } from 'pino';

/** What is written at once at most, and kept while nothing can be written, in characters. */
const MAX_KEPT = 1024 * 1024;
const RETRY_MS = 1_000;
/** A reader of a pipe who takes nothing for so long does not hold up the end of the process. */
const PATIENCE_MS = 1_000;
const PAUSE_MS = 10;

/** Told when lines cannot be written (`reason`), and when they can be again: so many were left out meanwhile. */
export type LogTrouble = Readonly<{ reason: string } | { reason: null; leftOut: number }>;

export type LogOutput = DestinationStream & Readonly<{ flushSync: () => void }>;

type Options = Readonly<{
  onTrouble: (trouble: LogTrouble) => void;
  maxKept?: number;
  retryMs?: number;
}>;

const codeOf = (error: unknown) => (error as NodeJS.ErrnoException).code;
/** Nobody reads the pipe any more, or the descriptor is closed. */
const isGone = (error: unknown) => ['EPIPE', 'EBADF'].includes(codeOf(error) ?? '');

/**
 * Lines to a descriptor, which may be a file on a full disk. Lines that come while some are being written go out together:
 * under load a write is shared by many. While nothing can be written, the oldest are kept and the newest left out and counted;
 * it is tried again, and nothing throws. (pino's own destination throws then, and its last flush never returns.)
 */
export function openLogOutput(descriptor: number, options: Options): LogOutput {
  const { onTrouble, maxKept = MAX_KEPT, retryMs = RETRY_MS } = options;
  let waiting = '';
  /** What is left of the lines that are being written: a disk may take a part of them. */
  let current: Buffer | undefined;
  let writing = false;
  let pause: NodeJS.Timeout | undefined;
  let gone = false;
  let failing = false;
  let leftOut = 0;

  function take(): Buffer | undefined {
    if (current === undefined && waiting !== '') {
      current = Buffer.from(waiting);
      waiting = '';
    }
    return current;
  }

  function written(bytes: Buffer, length: number): void {
    if (bytes === current) current = length < bytes.length ? bytes.subarray(length) : undefined;
  }

  function failed(error: NodeJS.ErrnoException): void {
    if (isGone(error)) {
      gone = true;
      waiting = '';
      return;
    }
    // A pipe that is full for a moment is no trouble before lines are left out.
    const isBusy = codeOf(error) === 'EAGAIN';
    if (!failing && !isBusy) {
      failing = true;
      onTrouble({ reason: error.message });
    }
    pause = setTimeout(
      () => {
        pause = undefined;
        next();
      },
      isBusy ? PAUSE_MS : retryMs,
    ).unref();
  }

  function next(): void {
    if (writing || pause !== undefined) return;
    const bytes = take();
    if (bytes === undefined) {
      if (failing || leftOut > 0) recovered();
      return;
    }
    writing = true;
    write(descriptor, bytes, (error, length) => {
      writing = false;
      if (error) return failed(error);
      written(bytes, length);
      next();
    });
  }

  function recovered(): void {
    const trouble = { reason: null, leftOut };
    failing = false;
    leftOut = 0;
    onTrouble(trouble);
  }

  /** The rest, before the process ends, as far as that is possible. What is being written already is left to the system. */
  function flushSync(): void {
    if (gone) return;
    if (writing) current = undefined;
    const deadline = Date.now() + PATIENCE_MS;
    for (let bytes = take(); bytes !== undefined; bytes = take()) {
      try {
        written(bytes, writeSync(descriptor, bytes));
      } catch (error) {
        if (codeOf(error) !== 'EAGAIN' || Date.now() > deadline) return;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE_MS);
      }
    }
  }

  let isFlushed = false;
  return {
    write(line) {
      if (gone) return;
      if (!isFlushed) process.once('exit', flushSync);
      isFlushed = true;
      if (waiting !== '' && waiting.length + line.length > maxKept) {
        leftOut += 1;
        return;
      }
      waiting += line;
      next();
    },
    flushSync,
  };
}
