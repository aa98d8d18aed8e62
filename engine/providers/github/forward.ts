import { z } from 'zod';
import type { FactPage } from '../dataset.ts';
import { DAY_MS } from '../periods.ts';
import { issueFact, place, readItems } from './items.ts';
import type { Collecting } from './repository.ts';
import { isSeen, OVERLAP_MS, seen, seenSince } from './seen.ts';

const SECOND_MS = 1_000;
/** The backfill, which begins about the same time, reads what lies before. */
const FIRST_MS = 7 * DAY_MS;

const cursor = z.object({
  since: z.int(),
  seen: seen.default({}),
  /** More has changed within one second than a page holds. */
  crowd: z.object({ begun: z.int(), place: place.optional() }).optional(),
});
type Cursor = z.output<typeof cursor>;

const firstCursor = (now: number): Cursor => ({
  since: Math.floor((now - FIRST_MS) / SECOND_MS) * SECOND_MS,
  seen: {},
});

/**
 * Issues that have changed, oldest change first. Each page begins at the last change of the one before: an issue that changes meanwhile
 * moves behind, and page numbers would leave out what moves up for it.
 */
export async function* changedIssues(call: Collecting): AsyncGenerator<FactPage, void, void> {
  const now = call.now.getTime();
  let at = call.cursor === null ? firstCursor(now) : cursor.parse(call.cursor);
  for (let done = false; !done; ) {
    const { since, crowd } = at;
    // Where `since` cannot get on, by creation: whatever changes stays in its place, so that no page leaves it out.
    const query = { since: new Date(since).toISOString(), sort: crowd ? 'created' : 'updated', direction: 'asc' };
    const { items, bytes, next } = await readItems(call, 'issues', query, crowd?.place);
    const facts = items.filter((one) => one.pull_request === undefined && !isSeen(at.seen, one)).map(issueFact);
    // What is dated later than now says nothing of what comes until then.
    const last = Math.min(items.at(-1)?.updated_at ?? since, now);
    let known = now;
    if (crowd && next) {
      at = { ...at, crowd: { ...crowd, place: next } };
      known = since;
    } else if (crowd) {
      at = { since: Math.max(since, crowd.begun - OVERLAP_MS), seen: {} };
      known = crowd.begun;
      done = true;
    } else if (next) {
      const from = last - SECOND_MS;
      at =
        from > since
          ? { since: from, seen: seenSince(from, at.seen, items) }
          : { ...at, seen: seenSince(since, at.seen, items), crowd: { begun: now } };
      known = last;
    } else {
      const from = Math.max(since, last - OVERLAP_MS);
      at = { since: from, seen: seenSince(from, at.seen, items) };
      done = true;
    }
    yield {
      records: items.length,
      bytes,
      facts,
      cursor: at,
      done,
      covered: known > since ? [{ start: since, end: known, state: 'complete' }] : [],
    };
  }
}
