import { STOP_CHANNEL } from '../../engine/db/channels.ts';
import type { Listener } from '../../engine/db/listen.ts';
import type { Notifier } from '../../engine/db/notify.ts';

/** A heartbeat that waits for the cancel of its run. */
export type RunWatch = Disposable &
  Readonly<{
    /** Resolves after `waitMs`, earlier with true when the run may have been cancelled; with false when the wait is over. */
    wait: (waitMs: number, signal: AbortSignal) => Promise<boolean>;
  }>;

export type RunStops = Readonly<{
  /** From now on no cancel is missed. */
  watch: (runId: string) => RunWatch;
  /** The payload of a notification: a run that may have to stop. */
  wake: (runId: string) => void;
  /** Ends all waits, and all later ones. */
  close: () => void;
}>;

/** Wakes heartbeats whose run is cancelled, by any process. A lost notification costs the rest of the wait. */
export function createRunStops(options: {
  listener: Pick<Listener, 'subscribe' | 'onResync'>;
  notifier: Pick<Notifier, 'sender'>;
}): RunStops {
  const { listener, notifier } = options;
  const watchers = new Map<string, Set<(stopped: boolean) => void>>();
  let closed = false;

  function settle(runId: string, stopped: boolean): void {
    for (const resolve of watchers.get(runId) ?? []) resolve(stopped);
  }
  function settleAll(stopped: boolean): void {
    for (const runId of watchers.keys()) settle(runId, stopped);
  }
  const stopListening = [
    listener.subscribe(STOP_CHANNEL, (runId, sender) => {
      // What this process marked has woken its own waiters already.
      if (sender !== notifier.sender()) settle(runId, true);
    }),
    // Something may have been missed.
    listener.onResync(() => settleAll(true)),
  ];

  return {
    watch(given) {
      const runId = given.toLowerCase();
      const { promise, resolve } = Promise.withResolvers<boolean>();
      const known = watchers.get(runId) ?? new Set();
      watchers.set(runId, known.add(resolve));
      let timer: NodeJS.Timeout | undefined;
      return {
        wait(waitMs, signal) {
          if (closed || signal.aborted) resolve(false);
          timer = setTimeout(resolve, waitMs, false);
          signal.addEventListener('abort', () => resolve(false), { once: true });
          return promise;
        },
        [Symbol.dispose]() {
          clearTimeout(timer);
          known.delete(resolve);
          if (known.size === 0 && watchers.get(runId) === known) watchers.delete(runId);
        },
      };
    },
    wake: (runId) => settle(runId, true),
    close() {
      closed = true;
      for (const stop of stopListening) stop();
      settleAll(false);
    },
  };
}
