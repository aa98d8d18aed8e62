import { Problem } from '../../engine/db/problem.ts';

/** Costly calls of one organization that a process works on at a time: far fewer than it has connections. */
const AT_ONCE = 8;

/** A limit for each organization of its own, so that none takes the connections of all. */
export type ConcurrencyLimit = Readonly<{
  /** @throws Problem 429 `too_many_requests` where the organization has as much in work as it may */
  run<T>(organizationId: string, work: () => Promise<T>): Promise<T>;
}>;

export function createConcurrencyLimit(atOnce = AT_ONCE): ConcurrencyLimit {
  const running = new Map<string, number>();
  return {
    async run(organizationId, work) {
      const id = organizationId.toLowerCase();
      const others = running.get(id) ?? 0;
      if (others >= atOnce) {
        const message = `${atOnce} such calls of this organization are in work. Send it again later.`;
        throw new Problem(429, 'too_many_requests', message, undefined, { 'Retry-After': '1' });
      }
      running.set(id, others + 1);
      try {
        return await work();
      } finally {
        const left = (running.get(id) ?? 1) - 1;
        if (left > 0) running.set(id, left);
        else running.delete(id);
      }
    },
  };
}
