import type { Pool, PoolClient } from 'pg';
import type { WithPgClient } from 'postgraphile/@dataplan/pg';
import type { NodePostgresPgClient } from 'postgraphile/adaptors/pg';
import { invalid } from '../../http/errors.ts';

type Reader = WithPgClient<NodePostgresPgClient>;

/** What one request may read, and how long its response may be, in bytes. */
export const MAX_BYTES = 16 * 1024 * 1024;

export const tooLarge = () =>
  invalid('query', 'has a response of more than 16 MiB: ask for shorter pages, or leave documents out', 'too_large');

type Budget = { left: number };

/** Ends a connection whose statement sends more than its request may read, before the memory is full of it. */
export function countBytes(pool: Pool): WeakMap<PoolClient, Budget> {
  const budgets = new WeakMap<PoolClient, Budget>();
  pool.on('connect', (client) => {
    client.connection.stream.on('data', (bytes: Buffer) => {
      const budget = budgets.get(client);
      if (!budget || budget.left < 0) return;
      budget.left -= bytes.length;
      if (budget.left < 0) client.connection.stream.destroy(new Error('the result of the statement is too large'));
    });
  });
  return budgets;
}

/**
 * What one request reads by: one connection at a time, so that a request of many lists leaves the others theirs; nothing
 * more once `signal` is aborted; and no more than `MAX_BYTES` in all.
 * @throws Problem 400 `too_large`, or the signal's reason
 */
export function readingOf(withPgClient: Reader, budgets: WeakMap<PoolClient, Budget>, signal: AbortSignal): Reader {
  const budget: Budget = { left: MAX_BYTES };
  let last: Promise<unknown> = Promise.resolve();
  return (settings, work) => {
    async function read() {
      signal.throwIfAborted();
      if (budget.left < 0) throw tooLarge();
      try {
        return await withPgClient(settings, async (client) => {
          budgets.set(client.rawClient, budget);
          try {
            return await work(client);
          } finally {
            if (budget.left >= 0) budgets.delete(client.rawClient);
          }
        });
      } catch (error) {
        throw budget.left < 0 ? tooLarge() : error;
      }
    }
    const turn = last.then(read);
    last = turn.catch(() => undefined);
    return turn;
  };
}

/** True when the response would be longer than `limit`, found out without making it. */
export function isLonger(response: unknown, limit: number): boolean {
  let left = limit;
  function take(value: unknown): void {
    if (left < 0) return;
    if (typeof value === 'string') left -= value.length + 3;
    else if (typeof value !== 'object' || value === null) left -= 6;
    else if (Array.isArray(value)) for (const one of value) take(one);
    else {
      for (const [key, one] of Object.entries(value)) {
        left -= key.length + 4;
        take(one);
        if (left < 0) return;
      }
    }
  }
  take(response);
  return left < 0;
}
