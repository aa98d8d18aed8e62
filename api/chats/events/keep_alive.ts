import { type ChatStream, sendKeepAlive } from './stream.ts';

const KEEP_ALIVE_MS = 15_000;
const PARTS = 30;

export type KeepAlive = Readonly<{
  add(stream: ChatStream): void;
  remove(stream: ChatStream): void;
  stop(): void;
}>;

/**
 * A comment line to each stream every `everyMs`, by one timer for all: a part of them at each of its ticks, so that
 * thousands of lines do not hold up a revision.
 */
export function createKeepAlive(everyMs = KEEP_ALIVE_MS): KeepAlive {
  const parts = Array.from({ length: PARTS }, () => new Set<ChatStream>());
  let count = 0;
  let next = 0;
  let tick = 0;
  let timer: NodeJS.Timeout | undefined;

  function onTick(): void {
    for (const stream of parts[tick] ?? []) sendKeepAlive(stream);
    tick = (tick + 1) % PARTS;
  }

  function stop(): void {
    clearInterval(timer);
    timer = undefined;
  }

  return {
    add(stream) {
      parts[next]?.add(stream);
      next = (next + 1) % PARTS;
      count += 1;
      timer ??= setInterval(onTick, everyMs / PARTS);
    },
    remove(stream) {
      if (!parts.some((part) => part.delete(stream))) return;
      count -= 1;
      if (count === 0) stop();
    },
    stop,
  };
}
