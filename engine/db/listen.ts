import type pg from 'pg';
import type { Logger } from 'pino';
import { createThrottle, logThrottled } from '../log.ts';
import { keepConnected, send } from './reconnect.ts';

type Subscriber = (payload: string, sender: number) => void;

export type Listener = Readonly<{
  /** Calls back with the payload of each notification and the process number of its sender. @returns the way to stop */
  subscribe(channel: string, callback: Subscriber): () => void;
  /** Called after each connect: notifications may have been missed, so look at the tables again. */
  onResync(callback: () => void): () => void;
  /** True while notifications arrive. */
  connected(): boolean;
  close(): Promise<void>;
}>;

const channelFormat = /^[a-z][a-z0-9_]{0,62}$/;

/**
 * The one LISTEN connection of a process.
 * @param options.url a direct connection: a transaction pooler does not carry notifications
 */
export function openListener(options: { url: string; log: Logger }): Listener {
  const subscribers = new Map<string, Set<Subscriber>>();
  const resyncs = new Set<() => void>();
  const throttle = createThrottle();
  let listening: pg.Client | undefined;
  let synced: pg.Client | undefined;

  function guarded(work: () => void): void {
    try {
      work();
    } catch (error) {
      // One subscriber's fault must not keep the others from being called, nor end the connection.
      options.log.error({ err: error }, 'a notification callback failed');
    }
  }

  const connection = keepConnected({
    url: options.url,
    async prepare(client) {
      client.on('notification', ({ channel, payload, processId }) => {
        for (const callback of subscribers.get(channel) ?? []) guarded(() => callback(payload ?? '', processId));
      });
      for (const channel of subscribers.keys()) await send(client, `listen ${channel}`);
      listening = client;
      // Subscribed while the loop above waited: listening twice is harmless.
      for (const channel of subscribers.keys()) await send(client, `listen ${channel}`);
      for (const callback of resyncs) guarded(callback);
      synced = client;
    },
    onLost(error) {
      listening = undefined;
      synced = undefined;
      logThrottled(options.log, throttle, 'the LISTEN connection is lost', error);
    },
  });

  return {
    subscribe(channel, callback) {
      if (!channelFormat.test(channel)) throw new RangeError(`not a channel name: ${channel}`);
      const known = subscribers.get(channel);
      const callbacks = known ?? new Set();
      subscribers.set(channel, callbacks);
      callbacks.add(callback);
      // A failure shows as a lost connection, after which every channel is listened to again.
      if (!known && listening) send(listening, `listen ${channel}`).catch(() => undefined);
      return () => {
        callbacks.delete(callback);
      };
    },
    onResync(callback) {
      resyncs.add(callback);
      return () => {
        resyncs.delete(callback);
      };
    },
    connected: () => synced !== undefined && connection.client() === synced,
    close: () => connection.close(),
  };
}
