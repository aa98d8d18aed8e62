import { setTimeout as delay } from 'node:timers/promises';

/** Waits until the condition holds, looking every few milliseconds; fails with `what` after `withinMs`. */
export async function until<T>(
  what: string,
  condition: () => T | Promise<T>,
  withinMs = 60_000,
): Promise<Exclude<T, false | undefined | null>> {
  const deadline = Date.now() + withinMs;
  for (;;) {
    const value = await condition();
    if (value !== false && value !== undefined && value !== null) return value as Exclude<T, false | undefined | null>;
    if (Date.now() > deadline) throw new Error(`${what}: not within ${withinMs} ms`);
    await delay(5);
  }
}
