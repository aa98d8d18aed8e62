// Files of facts of a source, stored and published as its units would.
import { Readable } from 'node:stream';
import { adapterOf } from '../../engine/insights/adapters.ts';
import { factsSha256, type StoredFact, storedFact, withdrawnFact } from '../../engine/insights/facts.ts';
import { readMonth, writeSegment } from '../../engine/insights/segments/index.ts';
import { insightSegmentKey, type Storage } from '../../engine/storage/index.ts';
import { segmentsOf } from './collected_facts.ts';
import type { Month } from './compaction_fixtures.ts';
import { claimed, commit, DATASET, type Place } from './insight_fixtures.ts';
import type { Sql } from './transitions.ts';

const COLUMNS = adapterOf('stripe', DATASET)?.columns ?? {};
const NOTHING = Object.fromEntries(Object.keys(COLUMNS).map((name) => [name, null]));
const JANUARY = Date.UTC(2026, 0, 15);

export type Told = Readonly<{ key: string; amount?: string; isGone?: boolean; month?: number }>;

/** A unit collects facts: a file for each of their months, counted from January 2026. */
export async function publishFacts(
  sql: Pick<Sql, 'jobs'>,
  storage: Storage,
  place: Place,
  told: readonly Told[],
  { staged = false, publishStaged = false }: Readonly<{ staged?: boolean; publishStaged?: boolean }> = {},
): Promise<Month> {
  const unit = await claimed(sql.jobs, place);
  const { organizationId } = place;
  const sourceId = unit.source?.id ?? '';
  const collected = { collectedAt: Date.now(), unit: unit.id };
  const months = Map.groupBy(told, ({ month = 0 }) => month);
  const segments = [];
  for (const [number, ofMonth] of months) {
    const at = JANUARY + number * 31 * 86_400_000;
    const facts = ofMonth.map(({ key, amount = '1', isGone = false }): StoredFact => {
      const values = { ...NOTHING, amount };
      const fact = storedFact(COLUMNS, { key, effectiveAt: at, revision: null, values }, collected);
      return isGone ? withdrawnFact(fact, 'absent', collected) : fact;
    });
    const { bytes, sha256, rows, month, minAt, maxAt } = await writeSegment(COLUMNS, facts);
    const objectKey = insightSegmentKey(organizationId, { sourceId, unitId: unit.id, fence: unit.fence, month });
    await storage.put(objectKey, Readable.from([bytes]));
    const times = { minAt: new Date(minAt).toISOString(), maxAt: new Date(maxAt).toISOString() };
    segments.push({ month, objectKey, rowCount: rows, sizeBytes: bytes.length, sha256, ...times, staged });
  }
  await commit(sql.jobs, unit, { segments, publishStaged });
  return { organizationId, sourceId, month: '2026-01' };
}

/** As many units as there are lists of facts, one after the other. */
export async function publishAll(
  sql: Pick<Sql, 'jobs'>,
  storage: Storage,
  place: Place,
  all: readonly (readonly Told[])[],
) {
  let month: Month | undefined;
  for (const told of all) month = await publishFacts(sql, storage, place, told);
  if (month === undefined) throw new Error('there are no facts');
  return month;
}

/** So many units, each of which tells of one thing more, and of the first one again. */
export const tellings = (count: number): Told[][] =>
  Array.from({ length: count }, (_, number) => [
    { key: 'first', amount: `${number}` },
    { key: `txn_${number}`, amount: '2' },
  ]);

/** What a query sees of a month, now or at a revision: SHA-256, in hex, and how many files that takes. */
export async function seenOf(
  sql: Pick<Sql, 'jobs'>,
  storage: Pick<Storage, 'get'>,
  { organizationId, sourceId, month }: Month,
  revision: number | null = null,
) {
  const all = await segmentsOf(sql, { organizationId }, sourceId, revision);
  const segments = all.segments.filter((one) => one.month === month);
  const files = segments.map(({ objectKey: key, sizeBytes: size, rowCount: rows, sha256 }) => ({
    key,
    size,
    rows,
    sha256,
  }));
  const facts = await readMonth(storage, files, COLUMNS);
  return { revision: all.revision, files: files.length, facts, sha256: factsSha256(facts.values()) };
}
