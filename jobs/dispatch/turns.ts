import type { Logger } from 'pino';
import { createThrottle, logThrottled } from '../../engine/log.ts';
import type { Due, DueRead, Processor } from './due.ts';

/** Organizations that are served at the same time; one connection is left for reading. */
export const DISPATCH_SLOTS = 3;
/** How long one is served while others wait; what it has begun it ends. */
const TURN_MS = 50;

export type Turns = Readonly<{
  /** Organizations that wait for their turn. */
  waiting(): number;
  /** Lets those take turns of which something is due. One that waits already keeps its place; one that is served is left out. */
  take(read: () => Promise<DueRead>): Promise<void>;
  /** Fulfilled when nobody waits any more, more is due than was taken, and some of it was moved: read again at once. */
  drained(): Promise<void>;
  /** Fulfilled when nobody is served. */
  idle(): Promise<void>;
}>;

/**
 * Serves organizations side by side, each by one lane at a time, and in turns: however much is due of one, or however slowly it
 * goes, another one waits for the turns of those that came before it, and for no more of what they have.
 */
export function createTurns(processor: Processor, log: Logger, signal: AbortSignal): Turns {
  const throttle = createThrottle();
  /** In the order of their turns. */
  const waiting = new Map<string, readonly Due[]>();
  const served = new Map<string, Promise<void>>();
  let moved = 0;
  let more = false;
  let drained = Promise.withResolvers<void>();

  async function serve(organizationId: string, dues: readonly Due[]): Promise<void> {
    const end = Date.now() + TURN_MS;
    try {
      const turn = await processor.process(dues, () => !signal.aborted && (waiting.size === 0 || Date.now() < end));
      moved += turn.moved;
      more ||= turn.left;
    } catch (error) {
      logThrottled(log, throttle, 'dispatch cannot move what is due', error);
    } finally {
      served.delete(organizationId);
      next();
    }
  }

  function next(): void {
    for (const [organizationId, dues] of waiting) {
      if (served.size >= DISPATCH_SLOTS || signal.aborted) return;
      waiting.delete(organizationId);
      served.set(organizationId, serve(organizationId, dues));
    }
    if (waiting.size === 0 && more && moved > 0) drained.resolve();
  }

  return {
    waiting: () => waiting.size,
    async take(read) {
      drained = Promise.withResolvers();
      moved = 0;
      more = false;
      const found = await read();
      more ||= found.more;
      for (const [organizationId, dues] of found.due) {
        if (!served.has(organizationId)) waiting.set(organizationId, dues);
      }
      next();
    },
    drained: () => drained.promise,
    async idle() {
      await Promise.all(served.values());
    },
  };
}
