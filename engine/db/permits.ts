/** Someone waited too long, or too many wait already; nothing was done. */
export class NoPermitError extends Error {
  override name = 'NoPermitError';
}

export type Permits = Readonly<{
  /** Waits in line. @returns the way to give the permit back, once. @throws NoPermitError */
  take(): Promise<() => void>;
  waiting(): number;
  taken(): number;
}>;

type Waiter = Readonly<{ grant: () => void; timer: NodeJS.Timeout }>;

/** At most `count` at a time, the others in the order they came. */
export function createPermits(options: { count: number; maxWaiting: number; waitTimeoutMs: number }): Permits {
  const line = new Set<Waiter>();
  let taken = 0;

  function giveBack(): () => void {
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      const [next] = line;
      if (next) {
        line.delete(next);
        clearTimeout(next.timer);
        next.grant();
      } else {
        taken -= 1;
      }
    };
  }

  return {
    taken: () => taken,
    waiting: () => line.size,
    async take() {
      if (taken < options.count) {
        taken += 1;
        return giveBack();
      }
      if (line.size >= options.maxWaiting) throw new NoPermitError('too many wait already');
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const timer = setTimeout(() => {
        line.delete(waiter);
        reject(new NoPermitError(`waited ${options.waitTimeoutMs} ms in vain`));
      }, options.waitTimeoutMs);
      const waiter: Waiter = { grant: resolve, timer };
      line.add(waiter);
      await promise;
      return giveBack();
    },
  };
}
