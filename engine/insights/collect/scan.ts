import { z } from 'zod';
import { call } from '../../db/call.ts';
import type { DatasetAdapter } from '../../providers/dataset.ts';
import { type Collected, type StoredFact, withdrawnFact } from '../facts.ts';
import type { CollectUnit } from './claim.ts';
import type { Gathered } from './gather.ts';
import { factsOfMonth, type Kept, publishedSegments, segmentsSchema } from './known.ts';

/** Of absent keys, as many characters are remembered until the next scan: what is behind them waits for another one. */
const MAX_ABSENT = 40_000;

/** What is kept of a rescan until it is done, and of the one before: the keys that it did not show. */
const roundSchema = z
  .object({ first: z.int().nullable(), absent: z.array(z.string()) })
  .nullable()
  .catch(null);
export type ScanRound = NonNullable<z.output<typeof roundSchema>>;

/** The facts that a rescan has told, with nothing but their keys, to be kept until it is done. */
export function seenFacts(unit: CollectUnit, facts: Gathered['facts'], collected: Collected): StoredFact[] {
  if (unit.mode !== 'rescan') return [];
  return facts
    .filter(({ deleted }) => deleted === undefined)
    .map(({ key, effectiveAt, contentAt = effectiveAt }) => {
      return { key, effectiveAt, contentAt, revision: null, ...collected, deleted: false, evidence: null, values: {} };
    });
}

async function stagedSegments({ db }: Kept, { organizationId, source }: CollectUnit) {
  const args = { organizationId, sourceId: source.id };
  return (await call(db.of(organizationId), 'insight_staged_read', args, segmentsSchema)).segments;
}

/** Known facts that a whole rescan has not told, in the order of months: those that are still counted, and that it should tell. */
async function* absentFacts(kept: Kept, unit: CollectUnit, adapter: DatasetAdapter, last: readonly StoredFact[]) {
  const { isRescanned = () => true } = adapter;
  const [published, staged] = [await publishedSegments(kept.db, unit), await stagedSegments(kept, unit)];
  for (const month of [...new Set(published.map((segment) => segment.month))].sort()) {
    const earlier = await factsOfMonth(kept, staged, month, {});
    const known = await factsOfMonth(kept, published, month, adapter.columns);
    if (!earlier || !known) continue;
    const seen = new Set([...earlier.keys(), ...last.map(({ key }) => key)]);
    for (const fact of known.values()) if (!fact.deleted && !seen.has(fact.key) && isRescanned(fact.values)) yield fact;
  }
}

/**
 * Goes on with a rescan. Where this unit ends it, and the provider has counted as many things at its end as at its beginning, facts that
 * neither this one nor the whole rescan before it has told have been withdrawn: one alone may have missed what moved from page to page.
 * `last`: what this unit has seen, which is not stored yet.
 */
export async function endScan(
  kept: Kept,
  unit: CollectUnit,
  adapter: DatasetAdapter,
  given: Readonly<{ gathered: Gathered; last: readonly StoredFact[]; collected: Collected }>,
): Promise<Readonly<{ round: ScanRound | null; withdrawn: readonly StoredFact[] }>> {
  const { gathered, last, collected } = given;
  if (unit.mode !== 'rescan') return { round: null, withdrawn: [] };
  const before = roundSchema.parse(unit.round ?? null) ?? { first: null, absent: [] };
  const first = before.first ?? gathered.totals[0] ?? null;
  if (!gathered.done) return { round: { ...before, first }, withdrawn: [] };
  const isWhole = first !== null && first === gathered.totals.at(-1);
  // What it did not show may be there: the one before says nothing any more either.
  if (!isWhole) return { round: { first: null, absent: [] }, withdrawn: [] };
  const suspects = new Set(before.absent);
  const withdrawn: StoredFact[] = [];
  const absent: string[] = [];
  let left = MAX_ABSENT;
  for await (const fact of absentFacts(kept, unit, adapter, last)) {
    if (suspects.has(fact.key)) withdrawn.push(withdrawnFact(fact, 'absent', collected));
    else {
      left -= fact.key.length;
      if (left >= 0) absent.push(fact.key);
    }
  }
  return { round: { first: null, absent }, withdrawn };
}
