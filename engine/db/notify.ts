import type { Logger } from 'pino';
import { createThrottle, logThrottled } from '../log.ts';
import { keepConnected, send } from './reconnect.ts';

export type Notifier = Readonly<{
  /** Sends the notification within a few milliseconds; equal ones are merged. Call it after the commit. */
  mark(channel: string, payload?: string): void;
  /** The process number of the connection that sends, once known: listeners tell by it what comes from here. */
  sender(): number | undefined;
  /** Sends what is left, where a connection exists. */
  close(): Promise<void>;
}>;

/** Between two batches: the first notification after a silence goes at once, those that follow it go together. */
const INTERVAL_MS = 5;
const MAX_PENDING = 10_000;
const MAX_PAYLOAD_BYTES = 7_999;

/** Postgres flushes a commit that notifies under one lock: without a flush it holds nobody up (docs/decisions/0002). */
function asynchronous(url: string): string {
  const parsed = new URL(url);
  const options = parsed.searchParams.get('options');
  parsed.searchParams.set('options', [options, '-c synchronous_commit=off'].filter(Boolean).join(' '));
  return parsed.href;
}

/**
 * Notifications of a process, sent apart from the transactions that cause them. What cannot be sent waits for the
 * next connection; a lost one costs latency alone, because waiters look again by themselves.
 */
export function openNotifier(options: {
  url: string;
  log: Logger;
  onSent?: (result: 'sent' | 'failed') => void;
}): Notifier {
  let pending = new Map<string, readonly [string, string]>();
  const throttle = createThrottle();
  let timer: NodeJS.Timeout | undefined;
  let sending: Promise<void> | undefined;
  let closed = false;
  let sender: number | undefined;
  let flushedAt = Number.NEGATIVE_INFINITY;

  const connection = keepConnected({
    url: asynchronous(options.url),
    async prepare(client) {
      const { rows } = await send<{ pid: number }>(client, 'select pg_backend_pid() as pid');
      sender = rows[0]?.pid;
      schedule();
    },
    onLost: (error) => logThrottled(options.log, throttle, 'the notifying connection is lost', error),
  });

  function schedule(): void {
    if (timer || closed || pending.size === 0) return;
    const waitMs = Math.max(0, flushedAt + INTERVAL_MS - performance.now());
    timer = setTimeout(() => {
      timer = undefined;
      sending = flush();
    }, waitMs);
  }

  async function flush(): Promise<void> {
    const client = connection.client();
    if (!client || pending.size === 0) return;
    flushedAt = performance.now();
    const batch = [...pending];
    // Another one: an emptied one keeps its entries alive until the next full collection.
    pending = new Map();
    const pairs = batch.map(([, pair]) => pair);
    try {
      await send(
        client,
        'select pg_notify(channel, payload) from unnest($1::text[], $2::text[]) as n(channel, payload)',
        [pairs.map(([channel]) => channel), pairs.map(([, payload]) => payload)],
      );
      options.onSent?.('sent');
    } catch {
      // The connection's own error handler reports it; the next connection sends what is pending.
      options.onSent?.('failed');
      for (const [key, pair] of batch) pending.set(key, pair);
    }
    schedule();
  }

  return {
    mark(channel, payload = '') {
      if (Buffer.byteLength(payload) > MAX_PAYLOAD_BYTES) throw new RangeError('a notification carries ids alone');
      // Postgres is gone for long: the oldest are dropped, their waiters look again every 2 s.
      if (pending.size >= MAX_PENDING) pending.delete(pending.keys().next().value ?? '');
      pending.set(`${channel} ${payload}`, [channel, payload]);
      schedule();
    },
    sender: () => sender,
    async close() {
      closed = true;
      clearTimeout(timer);
      const late = new Promise<void>((resolve) => setTimeout(resolve, 1_000).unref());
      await Promise.race([sending?.then(flush) ?? flush(), late]);
      await connection.close();
    },
  };
}
