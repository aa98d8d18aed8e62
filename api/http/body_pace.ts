import { Problem } from '../../engine/db/problem.ts';
import { UnavailableError } from './errors.ts';
import type { HttpTiming } from './timing.ts';

export type BodyPace = Readonly<{
  arrived(bytes: number): void;
  /** Whether the client is waited for. It does not answer for the time in which we take nothing. */
  reading(now: boolean): void;
  stop(): void;
}>;

const tooSlow = () => new Problem(408, 'request_timeout', 'The body did not arrive in time.');

/**
 * Watches a body while it is read, until `stop`. `fail` is called once: with 408 where the client sends too slowly or pauses
 * for too long, with an error of ours where we have taken nothing for as long.
 */
export function bodyPace(timing: HttpTiming, fail: (error: Error) => void): BodyPace {
  let received = 0;
  /** In earlier periods of reading. */
  let waitedMs = 0;
  let reading = false;
  /** When this period began. */
  let since = performance.now();
  let lastAt = since;
  let timer: NodeJS.Timeout | undefined;
  let armedFor = Number.POSITIVE_INFINITY;

  function dueAt(): number {
    if (!reading) return lastAt + timing.pauseMs;
    const allowedMs = timing.bodyMs + (received * 1000) / timing.bodyBytesPerSecond;
    return Math.min(since + allowedMs - waitedMs, lastAt + timing.pauseMs);
  }

  function look(): void {
    if (performance.now() < dueAt()) arm();
    else fail(reading ? tooSlow() : new UnavailableError('The service is too slow to take the body. Try again.'));
  }

  /** What arrives only moves the time on: it is looked at when the timer ends, not with every piece. */
  function arm(): void {
    clearTimeout(timer);
    armedFor = dueAt();
    timer = setTimeout(look, Math.max(1, Math.ceil(armedFor - performance.now())));
  }

  arm();
  return {
    arrived(bytes) {
      received += bytes;
      lastAt = performance.now();
    },
    reading(now) {
      if (now === reading) return;
      const at = performance.now();
      if (reading) waitedMs += at - since;
      reading = now;
      since = at;
      lastAt = at;
      if (dueAt() < armedFor) arm();
    },
    stop: () => clearTimeout(timer),
  };
}
