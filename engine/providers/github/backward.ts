import { z } from 'zod';
import type { FactPage } from '../dataset.ts';
import { issueFact, place, pullFact, readItems } from './items.ts';
import type { Collecting } from './repository.ts';
import { isSeen, OVERLAP_MS, seen, seenSince } from './seen.ts';

/** Until which change it reads, and what it knows already of the time right behind that. */
const start = z.object({ until: z.int(), seen: seen.default({}) });

const cursor = start.extend({
  /** Of the round under way. */
  round: z
    .object({
      begun: z.int(),
      /** What changed before then has not been read. */
      reached: z.int(),
      place,
      following: start,
    })
    .optional(),
});

type Options = Readonly<{ list: 'issues' | 'pulls'; until: number }>;

/**
 * What has changed, newest change first: each page tells all that was opened, closed or merged since its last change. What changes
 * meanwhile moves to the front, so that pages repeat what moves behind for it, and leave nothing out.
 */
export async function* changedBefore(
  call: Collecting,
  { list, until: first }: Options,
): AsyncGenerator<FactPage, void, void> {
  const factOf = list === 'issues' ? issueFact : pullFact;
  let at = call.cursor === null ? cursor.parse({ until: first }) : cursor.parse(call.cursor);
  for (let done = false; !done; ) {
    const { until, round, seen: known } = at;
    // Of pull requests there is no `since`.
    const since = list === 'issues' ? { since: new Date(until).toISOString() } : {};
    const query = { ...since, sort: 'updated', direction: 'desc' };
    const { items, bytes, next } = await readItems(call, list, query, round?.place);
    const facts = items
      .filter((one) => one.pull_request === undefined && one.updated_at >= until && !isSeen(known, one))
      .map(factOf);

    const begun = round?.begun ?? call.now.getTime();
    // What is dated later than now says nothing of what comes until then.
    const from = Math.max(until, Math.min(items[0]?.updated_at ?? until, begun) - OVERLAP_MS);
    const following = round?.following ?? { until: from, seen: seenSince(from, known, items) };
    const before = round?.reached ?? begun;
    // A page without any, behind which there are others, is not the end.
    const last = items.at(-1)?.updated_at ?? (next === null ? until : before);
    done = next === null || last < until;
    const reached = done ? until : Math.max(until, Math.min(last, before));
    at = next === null || done ? following : { until, seen: known, round: { begun, reached, place: next, following } };
    yield {
      records: items.length,
      bytes,
      facts,
      cursor: at,
      done,
      covered: reached < before ? [{ start: reached, end: before, state: 'complete' }] : [],
    };
  }
}
