import type { DatasetAdapter, Interval } from '../../providers/dataset.ts';
import {
  type Collected,
  compareAge,
  contentMonth,
  type StoredFact,
  saysTheSame,
  storedFact,
  withdrawnFact,
} from '../facts.ts';
import type { CollectUnit } from './claim.ts';
import type { Gathered } from './gather.ts';
import { factsOfMonth, type Kept, publishedSegments } from './known.ts';

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

/** Whether it would count before what is known. Where a provider reports the past anew, what is known stays. */
function isNews(fact: StoredFact, before: StoredFact | undefined): boolean {
  return before === undefined || (compareAge(fact, before) > 0 && !saysTheSame(before, fact));
}

/**
 * What is new of what a unit has gathered: facts that say what is known are left out, and known ones that should be among them and are
 * not have been withdrawn. A backfill is taken as it comes, since little of the past is known, and so are a snapshot, whose facts are new,
 * and a month of which more is known than fits into memory.
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
  const months = [...new Set([...byMonth.keys(), ...exhaustive.flatMap(monthsOf)])].sort();
  if (months.length === 0) return [];
  const isListed = ({ effectiveAt }: StoredFact) =>
    exhaustive.some(({ start, end }) => effectiveAt >= start && effectiveAt < end);
  const changes: StoredFact[] = [];
  const segments = await publishedSegments(kept.db, unit, { from: months[0], to: months.at(-1) });
  for (const month of months) {
    const found = byMonth.get(month) ?? [];
    const known = await factsOfMonth(kept, segments, month, adapter.columns);
    if (known === undefined) {
      changes.push(...found.filter(({ deleted }) => !deleted));
      continue;
    }
    const keys = new Set(found.map(({ key }) => key));
    for (const fact of found) {
      const before = known.get(fact.key);
      const { evidence } = fact;
      if (evidence !== null) {
        // It keeps the revision of what is known, without which that would count before it.
        if (before && !before.deleted) changes.push(withdrawnFact(before, evidence, collected));
      } else if (isNews(fact, before)) changes.push(fact);
    }
    for (const fact of known.values()) {
      const isAbsent = !fact.deleted && !keys.has(fact.key) && isListed(fact);
      if (isAbsent) changes.push(withdrawnFact(fact, 'absent', collected));
    }
  }
  return changes;
}
