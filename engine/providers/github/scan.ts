import { z } from 'zod';
import type { FactPage } from '../dataset.ts';
import { issueFact, place, pullFact, readItems } from './items.ts';
import type { Collecting } from './repository.ts';
import { readTotals } from './totals.ts';

const cursor = z.object({ begun: z.int(), first: z.int(), place });

/** All of them, in the order of their creation: what changes stays in its place, and what is new comes last. */
export async function* allItems(call: Collecting, list: 'issues' | 'pulls'): AsyncGenerator<FactPage, void, void> {
  const factOf = list === 'issues' ? issueFact : pullFact;
  let at = call.cursor === null ? undefined : cursor.parse(call.cursor);
  for (;;) {
    const begun = at?.begun ?? call.now.getTime();
    const query = { sort: 'created', direction: 'asc' };
    const { items, bytes, next } = await readItems(call, list, query, at?.place);
    const first = at?.first ?? items[0]?.created_at ?? begun;
    // At both ends: what is gone by both of them was not just left out.
    const totals = at === undefined || next === null ? await readTotals(call) : undefined;
    const page = {
      records: items.length,
      bytes: bytes + (totals?.bytes ?? 0),
      facts: items.filter((one) => one.pull_request === undefined).map(factOf),
      ...(totals ? { total: totals.data[list] } : {}),
    };
    if (next === null) {
      const covered = first < begun ? [{ start: first, end: begun, state: 'complete' as const }] : [];
      yield { ...page, cursor: null, done: true, covered };
      return;
    }
    at = { begun, first, place: next };
    yield { ...page, cursor: at, done: false };
  }
}
