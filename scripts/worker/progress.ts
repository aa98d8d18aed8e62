import { open } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { ApiError, type LogEntry } from './api.ts';

const BATCH = 100;
const MAX_ENTRIES = 10_000;
const MAX_LINE = 4_096;
const CATEGORIES = ['planning', 'execution', 'tool', 'verification', 'sync', 'system'];
const STATUSES = ['running', 'completed', 'failed', 'skipped'];

export type LogNote = Readonly<{ category?: string; status?: string; label: string; detail?: string }>;

function oneLine(text: unknown, length: number): string {
  const flat = String(text ?? '').toWellFormed();
  return flat
    .replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ')
    .trim()
    .slice(0, length)
    .toWellFormed();
}

/** A line of PROGRESS_FILE: plain text, or JSON with `label` and perhaps `detail`, `category`, `status`. Null: nothing. */
export function parseProgressLine(line: string): LogNote | null {
  const text = line.trim();
  if (text === '') return null;
  if (!text.startsWith('{')) return { label: text };
  try {
    const { label, detail, category, status } = JSON.parse(text);
    return label === undefined ? null : { label, detail, category, status };
  } catch {
    return { label: text };
  }
}

export type LogShipper = Readonly<{
  note: (note: LogNote) => void;
  /** Sends what is waiting. Never throws: a log is worth less than its run. */
  flush: () => Promise<void>;
  logState: () => 'complete' | 'truncated';
}>;

/**
 * Collects log entries and sends them in batches, each sequence with the same content however often it is sent. `send`
 * retries by itself.
 */
export function logShipper(options: {
  send: (entries: readonly LogEntry[]) => Promise<unknown>;
  print: (line: string) => void;
  /** Before a text is cut to its length: half a token would not be found any more. */
  redact?: (text: string) => string;
}): LogShipper {
  const { redact = (text) => text } = options;
  const waiting: LogEntry[] = [];
  let sequence = 0;
  let dropped = false;
  let sending: Promise<void> = Promise.resolve();

  async function sendBatch(entries: readonly LogEntry[]): Promise<void> {
    try {
      await options.send(entries);
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 400) {
        dropped = true;
        return;
      }
      // A batch is refused whole, for instance for one line that looks like a credential: the others are still wanted.
      if (entries.length > 1) for (const entry of entries) await sendBatch([entry]);
      else options.print(`a log line was refused and left out: ${error.message}`);
    }
  }

  async function sendAll(): Promise<void> {
    while (waiting.length > 0) await sendBatch(waiting.splice(0, BATCH));
  }

  return {
    note({ category, status, label, detail }) {
      if (sequence >= MAX_ENTRIES) dropped = true;
      const text = oneLine(redact(String(label ?? '')), 200);
      if (sequence >= MAX_ENTRIES || text === '') return;
      sequence += 1;
      waiting.push({
        sequence,
        category: category && CATEGORIES.includes(category) ? category : 'execution',
        status: status && STATUSES.includes(status) ? status : 'running',
        label: text,
        detail: oneLine(redact(String(detail ?? '')), 2000),
        occurredAt: new Date().toISOString(),
      });
    },
    flush() {
      sending = sending.then(sendAll);
      return sending;
    },
    logState: () => (dropped ? 'truncated' : 'complete'),
  };
}

/**
 * Follows `file` as lines are appended to it, until `signal` aborts; then reads what is left and returns. Calls `onPoll`
 * after each read, every `pollIntervalMs`.
 */
export async function followLines(
  file: string,
  options: { onLine: (line: string) => void; onPoll: () => void; pollIntervalMs: number; signal: AbortSignal },
): Promise<void> {
  const handle = await open(file, 'r');
  const decoder = new TextDecoder();
  const chunk = Buffer.alloc(16_384);
  let rest = '';
  let position = 0;
  const readNew = async () => {
    for (;;) {
      const { bytesRead } = await handle.read(chunk, 0, chunk.length, position);
      if (bytesRead === 0) return;
      position += bytesRead;
      const lines = (rest + decoder.decode(chunk.subarray(0, bytesRead), { stream: true })).split('\n');
      // Of a line without an end only the beginning is kept: memory does not grow with what a command writes.
      rest = (lines.pop() ?? '').slice(0, MAX_LINE);
      for (const line of lines) options.onLine(line.slice(0, MAX_LINE));
    }
  };
  try {
    while (!options.signal.aborted) {
      await readNew();
      options.onPoll();
      await sleep(options.pollIntervalMs, undefined, { signal: options.signal }).catch(() => {});
    }
    await readNew();
    if (rest !== '') options.onLine(rest);
  } finally {
    await handle.close();
  }
}
