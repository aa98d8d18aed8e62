import type { Covered, Fact, FactPage, Interval } from '../../providers/dataset.ts';

export type GatherLimits = Readonly<{ pages: number; records: number; bytes: number; ms: number }>;

/** What the pages of a unit brought together. */
export type Gathered = Readonly<{
  pages: number;
  records: number;
  bytes: number;
  /** Of each key the newest, by revision, then by page. */
  facts: readonly Fact[];
  exhaustive: readonly Interval[];
  covered: readonly Covered[];
  /** Behind the last page. */
  cursor: unknown;
  done: boolean;
  totals: readonly number[];
  /** What ended it, behind pages that are good. */
  error?: unknown;
}>;

/** Where rows move meanwhile, a later page may report an earlier state. */
function isOlder(fact: Fact, known: Fact | undefined): boolean {
  const revision = (of: Fact) => of.revision ?? Number.NEGATIVE_INFINITY;
  return known !== undefined && revision(fact) < revision(known);
}

/**
 * Takes pages until they end, one of the limits is reached, or `signal` is aborted. What fails behind a first page leaves the pages that
 * came before: the cursor says how far they go.
 * @throws what the first page throws; the signal's reason where it brought none
 */
export async function gather(
  pages: AsyncIterable<FactPage>,
  limits: GatherLimits,
  signal: AbortSignal,
): Promise<Gathered> {
  const end = performance.now() + limits.ms;
  const facts = new Map<string, Fact>();
  const got = { pages: 0, records: 0, bytes: 0, cursor: undefined as unknown, done: false };
  const exhaustive: Interval[] = [];
  const covered: Covered[] = [];
  const totals: number[] = [];
  let failure: { error?: unknown } = {};
  try {
    for await (const page of pages) {
      got.pages += 1;
      got.records += page.records;
      got.bytes += page.bytes;
      got.cursor = page.cursor;
      got.done = page.done;
      for (const fact of page.facts) if (!isOlder(fact, facts.get(fact.key))) facts.set(fact.key, fact);
      if (page.exhaustive) exhaustive.push(page.exhaustive);
      covered.push(...(page.covered ?? []));
      if (page.total !== undefined) totals.push(page.total);
      const isFull = got.pages >= limits.pages || got.records >= limits.records || got.bytes >= limits.bytes;
      if (page.done || isFull || performance.now() >= end || signal.aborted) break;
    }
  } catch (error) {
    if (got.pages === 0) throw error;
    // Its time is over, or the process stops: the next unit goes on.
    if (!signal.aborted) failure = { error };
  }
  if (got.pages === 0) signal.throwIfAborted();
  return { ...got, facts: [...facts.values()], exhaustive, covered, totals, ...failure };
}
