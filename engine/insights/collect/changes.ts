import type { Database } from '../../db/database.ts';
import type { DatasetAdapter, Interval } from '../../providers/dataset.ts';
import type { Storage } from '../../storage/index.ts';
import { type Collected, contentMonth, type StoredFact, saysTheSame, storedFact, withdrawnFact } from '../facts.ts';
import { readMonth } from '../segments/index.ts';
import type { CollectUnit } from './claim.ts';
import type { Gathered } from './gather.ts';
import { publishedSegments } from './known.ts';

type Kept = Readonly<{ db: Database; storage: Storage }>;

/** The months that an interval touches, as facts lie in them. */
function monthsOf({ start, end }: Interval): string[] {
  const months: string[] = [];
  for (let at = start; at < end; ) {
    const date = new Date(at);
    months.push(contentMonth(at));
    at = Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1);
  }
  return months;
}

/** What is known of the months that a unit touches, month by month. */
async function* knownFacts(
  { db, storage }: Kept,
  unit: CollectUnit,
  adapter: DatasetAdapter,
  months: readonly string[],
) {
  const sorted = months.toSorted();
  const segments = await publishedSegments(db, unit, { from: sorted[0], to: sorted.at(-1) });
  for (const month of sorted) {
    const ofMonth = segments.filter((segment) => segment.month === month);
    yield { month, known: await readMonth(storage, ofMonth, adapter.columns) };
  }
}

/**
 * Of what a unit has gathered that which is new: facts that say what is known are left out, and known ones that should be among them
 * and are not have been withdrawn. The past is taken as it comes, since little of it is known, and so is a snapshot, whose facts are new.
 * @throws FactRefusedError, what storage and `readMonth` throw
 */
export async function changesOf(
  kept: Kept,
  unit: CollectUnit,
  adapter: DatasetAdapter,
  { facts: gathered, exhaustive }: Gathered,
  collected: Collected,
): Promise<readonly StoredFact[]> {
  const facts = gathered.map((fact) => storedFact(adapter.columns, fact, collected));
  if (adapter.isSnapshot || (unit.mode === 'backfill' && exhaustive.length === 0)) return facts;
  const byMonth = Map.groupBy(facts, ({ contentAt }) => contentMonth(contentAt));
  const months = new Set([...byMonth.keys(), ...exhaustive.flatMap(monthsOf)]);
  if (months.size === 0) return [];
  const isListed = ({ effectiveAt }: StoredFact) =>
    exhaustive.some(({ start, end }) => effectiveAt >= start && effectiveAt < end);
  const changes: StoredFact[] = [];
  for await (const { month, known } of knownFacts(kept, unit, adapter, [...months])) {
    const found = byMonth.get(month) ?? [];
    const keys = new Set(found.map(({ key }) => key));
    for (const fact of found) {
      const before = known.get(fact.key);
      const { evidence } = fact;
      if (evidence !== null) {
        // It keeps the revision of what is known, without which that would count before it.
        if (before && !before.deleted) changes.push(withdrawnFact(before, evidence, collected));
      } else if (!before || !saysTheSame(before, fact)) changes.push(fact);
    }
    for (const fact of known.values()) {
      if (!fact.deleted && !keys.has(fact.key) && isListed(fact))
        changes.push(withdrawnFact(fact, 'absent', collected));
    }
  }
  return changes;
}
