import { z } from 'zod';
import { client } from './http_lifecycle.ts';
import { rate } from './measure.ts';

const page = z.object({ data: z.array(z.unknown()), pagination: z.object({ nextCursor: z.string().nullable() }) });
const SORTS = ['createdAt', 'updatedAt', 'priority', 'dueAt', 'identifierNumber'] as const;
/** How deep the later pages lie: keysets cost the same everywhere, and this shows it. */
const DEPTH = 20;

export type ListRate = Readonly<{ query: string; perSecond: number }>;

/** Task list requests a second over HTTP, by sort: the first page of 50, and one a thousand rows on. */
export async function measureLists(url: string, organizationId: string, seconds: number): Promise<readonly ListRate[]> {
  const { get, close } = client(url, 8);
  const base = `/organizations/${organizationId}/tasks?limit=50`;
  const queries: { query: string; path: string }[] = SORTS.map((sort) => ({
    query: sort,
    path: `${base}&sortBy=${sort}`,
  }));
  let cursor = '';
  for (let depth = 0; depth < DEPTH - 1; depth += 1) {
    const { body } = await get(`${base}${cursor}`, undefined);
    const next = page.parse(body).pagination.nextCursor;
    if (next === null) break;
    cursor = `&cursor=${encodeURIComponent(next)}`;
  }
  queries.push({ query: 'createdAt, a later page', path: `${base}${cursor}` });
  queries.push({ query: 'status filter', path: `${base}&status=completed` });
  const rates: ListRate[] = [];
  for (const { query, path } of queries) {
    const perSecond = await rate(8, seconds, async () => {
      const { status } = await get(path, undefined);
      if (status !== 200) throw new Error(`${path}: ${status}`);
      return 1;
    });
    rates.push({ query, perSecond });
  }
  close();
  return rates;
}
