import { Problem } from '../../engine/db/problem.ts';

const MAX_AT_ONCE = 8;

/** A limit for each organization of its own, so that none takes the connections of all. */
export type ConcurrencyLimit = Readonly<{
  /** @throws Problem 429 `too_many_requests` where the organization has as much in work as it may */
  run<T>(organizationId: string, work: () => Promise<T>): Promise<T>;
}>;

/** @param connections of the process: half of them are left to others */
export function createConcurrencyLimit(connections: number): ConcurrencyLimit {
  const atOnce = Math.max(1, Math.min(MAX_AT_ONCE, Math.floor(connections / 2)));
  const running = new Map<string, number>();
  return {
    async run(organizationId, work) {
      const id = organizationId.toLowerCase();
      const others = running.get(id) ?? 0;
      if (others >= atOnce) {
        const code = 'too_many_requests';
        const message = `${atOnce} such calls of this organization are in progress. Send it again later.`;
        const issue = { path: '', message: 'may have no more calls like this in progress', code };
        throw new Problem(429, code, message, [issue], { 'Retry-After': '1' });
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
